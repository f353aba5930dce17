/* How values lie on the wire, for model/wire* alone: little endian, texts and records with their length before them.
 * Reading never leaves the bytes it was given; the first thing that does not fit makes the whole frame bad, and what is
 * read after that is zero. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

struct wire_in {
    const uint8_t *at, *end;
    bool is_bad;
};

static inline const uint8_t *in_take(struct wire_in *in, size_t n) {
    if (in->is_bad || (size_t)(in->end - in->at) < n) {
        in->is_bad = true;
        return NULL;
    }
    const uint8_t *at = in->at;
    in->at += n;
    return at;
}

static inline uint64_t in_number(struct wire_in *in, size_t bytes) {
    const uint8_t *p = in_take(in, bytes);
    uint64_t v = 0;
    for (size_t i = 0; p && i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline uint8_t in_u8(struct wire_in *in) { return (uint8_t)in_number(in, 1); }
static inline uint16_t in_u16(struct wire_in *in) { return (uint16_t)in_number(in, 2); }
static inline uint32_t in_u32(struct wire_in *in) { return (uint32_t)in_number(in, 4); }
static inline uint64_t in_u64(struct wire_in *in) { return in_number(in, 8); }
static inline int32_t in_i32(struct wire_in *in) { return (int32_t)in_u32(in); }
static inline int64_t in_i64(struct wire_in *in) { return (int64_t)in_u64(in); }
static inline double in_f64(struct wire_in *in) {
    uint64_t bits = in_u64(in);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Any bytes but NUL; what does not fit into room is refused, not cut: a cut key would be another key. */
static inline void in_text(struct wire_in *in, char *to, size_t room) {
    size_t n = in_u16(in);
    const uint8_t *p = in_take(in, n);
    to[0] = 0;
    if (!p) return;
    if (n >= room || memchr(p, 0, n)) {
        in->is_bad = true;
        return;
    }
    memcpy(to, p, n);
    to[n] = 0;
}

/* Something with its length before it: a later version may have appended to it, and that is skipped. */
static inline struct wire_in in_record(struct wire_in *in) {
    size_t n = in_u16(in);
    const uint8_t *p = in_take(in, n);
    return p ? (struct wire_in){.at = p, .end = p + n} : (struct wire_in){.is_bad = true};
}

static inline void out_number(struct buf *b, uint64_t v, size_t bytes) {
    uint8_t p[8];
    for (size_t i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> (8 * i));
    buf_add(b, p, bytes);
}

static inline void out_u8(struct buf *b, uint8_t v) { out_number(b, v, 1); }
static inline void out_u16(struct buf *b, uint16_t v) { out_number(b, v, 2); }
static inline void out_u32(struct buf *b, uint32_t v) { out_number(b, v, 4); }
static inline void out_u64(struct buf *b, uint64_t v) { out_number(b, v, 8); }
static inline void out_i32(struct buf *b, int32_t v) { out_u32(b, (uint32_t)v); }
static inline void out_i64(struct buf *b, int64_t v) { out_u64(b, (uint64_t)v); }
static inline void out_f64(struct buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    out_u64(b, bits);
}

static inline void out_text(struct buf *b, const char *text) {
    size_t n = strlen(text);
    if (n > UINT16_MAX) n = UINT16_MAX;
    out_u16(b, (uint16_t)n);
    buf_add(b, text, n);
}

static inline size_t out_record_begin(struct buf *b) {
    out_u16(b, 0);
    return b->len;
}

static inline void out_record_end(struct buf *b, size_t from) {
    size_t n = b->len - from;
    b->s[from - 2] = (char)(n & 0xff);
    b->s[from - 1] = (char)(n >> 8);
}
