/* A growable byte buffer that is always NUL-terminated once written to. Out of memory ends the process: a program
 * that cannot hold a line of text has nothing better to do, and no caller could. The sampler's loops use none. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/auto.h"

struct buf {
    char *s;
    size_t len, cap;
};

void buf_done(struct buf *b);
void buf_clear(struct buf *b);
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF(2, 0);
