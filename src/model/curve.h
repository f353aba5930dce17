/* What a run has used over its time, in bounded room: sums at moments that are about a step apart. When it is full every second
 * moment goes and the step doubles. Since they are sums, a rate between two moments that stay is the exact mean between them,
 * and a time in which nothing was told costs nothing but detail. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CURVE_POINTS 240u
#define CURVE_STEP_MS 2000u
#define CURVE_UNKNOWN UINT64_MAX

enum curve_column {
    CURVE_CPU_MS, /* sums since the run began ... */
    CURVE_READ_BYTES,
    CURVE_WRITTEN_BYTES,
    CURVE_SUMS,
    CURVE_HOST_BYTES = CURVE_SUMS, /* ... and what it held: the most since the point before */
    CURVE_COLUMNS
};

struct curve_point {
    int64_t at_ms; /* since the run began */
    uint64_t value[CURVE_COLUMNS];
};

struct curve { /* zero is an empty one */
    uint32_t step_ms, count;
    struct curve_point of[CURVE_POINTS];
};

/* The sums of a moment. One that does not come after the last is left out, and no sum goes back. */
void curve_add(struct curve *c, const struct curve_point *p);

/* What a sum grew by in a second, from the point before (the first: from the beginning) to this one; NaN: not known. */
double curve_rate(const struct curve *c, size_t at, enum curve_column column);

void curve_encode(const struct curve *c, struct buf *b);
int curve_decode(const void *bytes, size_t len, struct curve *ret, struct error *e) MUST_CHECK;
