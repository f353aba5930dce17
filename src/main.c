/* gpumgr: picks the command from the table (client/commands.c). Supervisor and sampler are another executable (core/), so that what runs for
 * months stays small; this one holds everything that people call. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "client/command.h"
#include "client/docker.h"
#include "client/output.h"
#include "client/version.h"

static int list_commands(void) {
    AUTO(buf_done) struct buf b = {0};
    buf_puts(&b, "gpumgr watches, guards, shares and schedules GPUs.\n\nusage: gpumgr COMMAND [FLAGS]\n\n");
    for (size_t i = 0; i < commands_count; i++) buf_printf(&b, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    buf_puts(&b, "\n`gpumgr COMMAND --help` says more. Exit codes: 0 done, 1 failed, 2 bad input (nothing was done).\n"
                 "\nexample: gpumgr up --sim 8      # eight simulated GPUs, watched; then, elsewhere:\n"
                 "         gpumgr status --watch\n");
    return output_exit(&b);
}

static int unknown_command(const char *name) {
    struct nearest near = {.typed = name};
    char line[200];
    for (size_t i = 0; i < commands_count; i++) nearest_offer(&near, commands[i]->name);
    if (near.best)
        snprintf(line, sizeof line, "gpumgr: no such command as \"%.60s\"; did you mean %s?", name, near.best);
    else
        snprintf(line, sizeof line, "gpumgr: no such command as \"%.60s\"; `gpumgr help` lists them", name);
    output_note(line);
    return EXIT_INPUT;
}

static int help_for(int argc, char **argv) {
    if (argc < 2) return list_commands();
    const struct command *c = command_find(argv[1]);
    return c ? command_help(c) : unknown_command(argv[1]);
}

static int print_version(void) {
    AUTO(buf_done) struct buf b = {0};
    buf_printf(&b, "gpumgr %s\n", gpumgr_version());
    return output_exit(&b);
}

/* A program started with a closed standard descriptor would write into the next file it opens. */
static void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd ? O_WRONLY : O_RDONLY) < 0) _exit(1);
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    setlocale(LC_CTYPE, "");  /* only to know whether the terminal shows UTF-8; numbers stay as C writes them */
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write, noticed where we write */
    if (docker_plugin_is(argv[0])) return docker_plugin(argc, argv, command_find);
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help_for(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) return print_version();
    const struct command *c = command_find(name);
    return c ? c->run(c, argc - 1, argv + 1) : unknown_command(name);
}
