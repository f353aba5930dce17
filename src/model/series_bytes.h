/* Whole numbers in few bytes, and a reader that never runs past its end: what blocks and flush rows are made of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static inline uint64_t zigzag(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }
static inline int64_t unzigzag(uint64_t u) { return (int64_t)((u >> 1) ^ (0 - (u & 1))); }

/* Room for ten bytes is the caller's duty. */
static inline uint8_t *varint_write(uint8_t *to, uint64_t v) {
    while (v > 0x7f) {
        *to++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *to++ = (uint8_t)v;
    return to;
}

static inline void varint_put(struct buf *b, uint64_t v) {
    uint8_t bytes[10];
    buf_add(b, bytes, (size_t)(varint_write(bytes, v) - bytes));
}

/* After the first bad read everything reads as zero and is_bad stays: it is looked at once, at the end. */
struct bytes {
    const uint8_t *at, *end;
    bool is_bad;
};

static inline size_t bytes_left(const struct bytes *b) { return (size_t)(b->end - b->at); }

static inline uint64_t bytes_bad(struct bytes *b) {
    b->is_bad = true;
    b->at = b->end;
    return 0;
}

static inline uint64_t bytes_varint(struct bytes *b) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        uint8_t byte = *b->at++;
        if (shift == 63 && byte > 1) return bytes_bad(b);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return v;
    }
    return bytes_bad(b);
}

/* A count or an id: anything above most is bad. */
static inline uint64_t bytes_count(struct bytes *b, uint64_t most) {
    uint64_t v = bytes_varint(b);
    return v <= most ? v : bytes_bad(b);
}

static inline uint8_t bytes_u8(struct bytes *b) { return b->at < b->end ? *b->at++ : (uint8_t)bytes_bad(b); }

static inline uint64_t bytes_u64(struct bytes *b) {
    uint64_t v = 0;
    if (bytes_left(b) < sizeof v) return bytes_bad(b);
    memcpy(&v, b->at, sizeof v);
    b->at += sizeof v;
    return v;
}

/* The next n bytes as a piece of their own. */
static inline struct bytes bytes_take(struct bytes *b, size_t n) {
    if (n > bytes_left(b)) {
        bytes_bad(b);
        return (struct bytes){.is_bad = true};
    }
    struct bytes piece = {.at = b->at, .end = b->at + n};
    b->at += n;
    return piece;
}
