/* What the frames about jobs have in common, for model/wire_job.c and model/wire_run.c alone: bytes of their own kind (records,
 * seals, logs) with a length of 32 bits before them, and answers that are a number and a sentence. */
#pragma once

#include "model/wire_code.h"
#include "model/wire_job.h"

static inline void out_bytes(struct buf *b, const uint8_t *bytes, size_t n) {
    out_u32(b, (uint32_t)n);
    if (n) buf_add(b, bytes, n);
}

/* They stay in the frame. */
static inline const uint8_t *in_bytes(struct wire_in *in, size_t most, size_t *ret_len) {
    size_t n = in_u32(in);
    if (n > most) in->is_bad = true;
    const uint8_t *p = in_take(in, n);
    *ret_len = p ? n : 0;
    return p;
}

static inline bool in_flag(struct wire_in *in) {
    uint8_t v = in_u8(in);
    if (v > 1) in->is_bad = true;
    return v == 1;
}

/* A refusal says why. */
static inline bool is_result(int32_t result, const char *text) { return result == 0 || (result < 0 && text[0]); }

void wire_put_sealed_job(struct buf *b, const struct wire_sealed *s);
void wire_get_sealed_job(struct wire_in *in, struct wire_sealed *ret);
