#include "client/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "client/output.h"

int command_fail(const struct command *c, const struct error *e, int exit_code) {
    char line[sizeof e->text + 64];
    snprintf(line, sizeof line, "gpumgr %s: %s", c->name, e->text);
    output_note(line);
    return exit_code;
}

int command_help(const struct command *c) {
    AUTO(buf_done) struct buf b = {0};
    buf_puts(&b, c->help);
    return output_exit(&b);
}

char **command_verb_first(int argc, char **argv, int *ret_argc) {
    static char list[] = "list";
    char **words = calloc((size_t)argc + 2, sizeof *words);
    int at = 1, count = 0;
    if (!words) abort();
    while (at < argc && argv[at][0] == '-') at += strcmp(argv[at], "--dir") == 0 ? 2 : 1;
    int next = at < argc ? at + 1 : argc, flags_end = at < argc ? at : argc;
    words[count++] = at < argc ? argv[at] : list;
    if (next < argc && argv[next][0] != '-') words[count++] = argv[next++];
    for (int i = 1; i < flags_end; i++) words[count++] = argv[i];
    while (next < argc) words[count++] = argv[next++];
    *ret_argc = count;
    return words;
}
