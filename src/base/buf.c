#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b) {
    free(b->s);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b) {
    b->len = 0;
    if (b->s) b->s[0] = 0;
}

void buf_reserve(struct buf *b, size_t more) {
    if (b->cap - b->len > more) return;
    if (more >= SIZE_MAX / 4 || b->len >= SIZE_MAX / 4) abort();
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->len <= more) cap *= 2;
    char *s = realloc(b->s, cap);
    if (!s) abort();
    b->s = s;
    b->s[b->len] = 0; /* also where nothing follows: what is reserved first is not a text yet */
    b->cap = cap;
}

void buf_add(struct buf *b, const void *bytes, size_t n) {
    buf_reserve(b, n);
    if (n) memcpy(b->s + b->len, bytes, n);
    b->len += n;
    b->s[b->len] = 0;
}

void buf_puts(struct buf *b, const char *s) { buf_add(b, s, strlen(s)); }

void buf_putc(struct buf *b, char c) { buf_add(b, &c, 1); }

void buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n >= 0) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}
