#include "client/command.h"

#include <stdio.h>

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
