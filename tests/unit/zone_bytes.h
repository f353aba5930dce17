/* Bytes of zones, made here: a machine need not have any. */
#pragma once

#include <string.h>

#include "base/buf.h"

static inline void zone_bytes_number(struct buf *b, int64_t v, int bytes) {
    for (int i = bytes - 1; i >= 0; i--) buf_putc(b, (char)((uint64_t)v >> (8 * i)));
}

static inline void zone_bytes_head(struct buf *b, char version, int times, int types) {
    buf_puts(b, "TZif");
    buf_putc(b, version);
    for (int i = 0; i < 15; i++) buf_putc(b, 0);
    const int counts[] = {0, 0, 0, times, types, 4};
    for (int i = 0; i < 6; i++) zone_bytes_number(b, counts[i], 4);
}

/* A file of version 2: times and offsets of a table, the first offset before it, and the rule after it. */
static inline void zone_bytes_make(struct buf *b, int32_t first_s, const int64_t *at, const int32_t *offset_s,
                                   int count, const char *rule) {
    zone_bytes_head(b, '2', 0, 1);
    zone_bytes_number(b, 0, 6);
    zone_bytes_number(b, 0x41414100, 4);
    zone_bytes_head(b, '2', count, count + 1);
    for (int i = 0; i < count; i++) zone_bytes_number(b, at[i], 8);
    for (int i = 0; i < count; i++) buf_putc(b, (char)(i + 1));
    for (int i = 0; i <= count; i++) {
        zone_bytes_number(b, i ? offset_s[i - 1] : first_s, 4);
        zone_bytes_number(b, 0, 2);
    }
    zone_bytes_number(b, 0x41414100, 4);
    buf_printf(b, "\n%s\n", rule);
}
