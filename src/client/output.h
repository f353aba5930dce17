/* What people see: the shape of their terminal, and text written so that a full disk or a closed pipe is noticed.
 * Commands fill a buf and hand it over here; nothing else writes to standard output. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

struct screen {
    int width, height; /* 80 by unlimited when it is no terminal */
    bool is_terminal, has_colour, has_utf8;
};

struct screen screen_look(void);

/* Writes all of it to standard output and empties the buf: 0 or a negative errno. */
int output_write(struct buf *b) MUST_CHECK;

/* The same for a command's last words: says what went wrong, returns the exit code. A closed pipe needs no words. */
int output_exit(struct buf *b) MUST_CHECK;

/* One line on standard error, whatever bytes are in it. */
void output_note(const char *line);
