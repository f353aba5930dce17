/* The last minutes of every GPU, a row a second, for charts. Filled from the ring's own samples at the start, so that a
 * chart is full at once, and from then on with what comes. Rows hold every catalogue metric that came in that second:
 * the highest, lowest or last value, as the catalogue says what is worth keeping. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/metrics.h"
#include "model/sample.h"

enum { HISTORY_ROWS = 640 };

struct history_row {
    int64_t second; /* by the boot clock; 0: empty */
    uint64_t has[SAMPLE_WORDS];
    float value[METRIC_COUNT];
};

struct history_device {
    char uuid[96];
    unsigned worker; /* whose ring, and up to which of its samples it was read */
    uint64_t number;
    int64_t newest; /* second */
    struct history_row *rows;
};

struct history {
    struct history_device *of;
    int count;
};

void history_done(struct history *h);

/* The device with this UUID; made when it is not there. The pointer holds until the next one is made. */
struct history_device *history_of(struct history *h, const char *uuid);

/* Without making it: NULL when nothing is known. */
const struct history_device *history_find(const struct history *h, const char *uuid);

void history_take(struct history_device *d, const struct sample *s);
void history_put(struct history_device *d, int metric, int64_t second, double value);

/* `count` columns of `step_s` seconds, the last of which holds `now_s`; NaN where nothing was read. Columns begin at whole
 * multiples of the step, so that a chart moves and does not flicker. A value that is read seldom is held for up to
 * HISTORY_HOLD_S. */
#define HISTORY_HOLD_S 15
void history_series(const struct history_device *d, int metric, int64_t now_s, int step_s, float *ret, int count);
