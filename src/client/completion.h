/* What a shell can complete, read from the help texts of the commands: they are the table, so that a flag that is documented is
 * a flag that is completed. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "client/command.h"

struct completion_flag {
    char name[40];  /* "--gpus" */
    char value[24]; /* "N", "FILE"; "" when it takes none */
    bool value_may_lack;
    char text[120]; /* what it does, up to the line's end */
};

/* The next flag that a help text lists, from *at on (the text itself at first). False: there are no more. */
bool completion_next(const char **at, struct completion_flag *ret);

void completion_bash(struct buf *b);
void completion_zsh(struct buf *b);
