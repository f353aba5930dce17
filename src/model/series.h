/* Columns of whole numbers in few bytes: how history keeps values and times. A column is differenced (not at all, once
 * or twice, whichever comes out smallest), split into byte planes, and each plane goes through zstd unless it is one
 * byte repeated or noise. Measured against delta and zstd over varints: a tenth smaller, because the low bytes of a noisy
 * reading no longer spoil the high ones.
 *
 * Pure: bytes in, bytes out. A decoder accepts any bytes and never gives more values than it was asked for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* More values than this are in no column: two hours at 500 Hz. */
#define SERIES_COLUMN_MAX (1u << 22)

/* Scratch memory and zstd's state: one for each thread that codes. */
struct series_coder *series_coder_new(void);
void series_coder_free(struct series_coder *c);

enum series_effort {
    SERIES_QUICK, /* soon to be coded again: differences as varints, no search */
    SERIES_SMALL, /* to stay: the smallest of a few ways */
};

/* Appends; n of 1 to SERIES_COLUMN_MAX. All of int64 is allowed. */
void series_column_put(struct series_coder *c, const int64_t *v, size_t n, enum series_effort effort, struct buf *out);

/* len bytes that must hold exactly n values. */
int series_column_get(struct series_coder *c, const uint8_t *bytes, size_t len, int64_t *ret, size_t n, struct error *e)
    MUST_CHECK;

/* How the readings of a series are whole numbers. */
enum series_kind {
    SERIES_WHOLE, /* steps of the catalogue's scale */
    SERIES_STEP,  /* steps of a size found in the values themselves, where the catalogue gives none */
    SERIES_REAL,  /* the bits of the doubles */
    SERIES_KIND_COUNT
};

/* Finds how n finite values are best kept and writes them to ret. With a scale a value counts as whole when it is within
 * the rounding of a double of a number of steps below 2^50; what is read back is that number times the scale. Without one
 * (0) a step must give back each value bit by bit. *step is set for all kinds: what one of ret is worth (1 for REAL). */
enum series_kind series_scale(const double *v, size_t n, double scale, int64_t *ret, double *step);

/* One of what series_scale wrote, as the value. */
static inline double series_value(enum series_kind kind, double step, int64_t v) {
    double real;
    if (kind != SERIES_REAL) return (double)v * step;
    __builtin_memcpy(&real, &v, sizeof real);
    return real;
}
