/* Rollups: the least, mean and greatest of a minute or an hour, in a form that can be put together: two halves of a
 * minute make the minute, sixty minutes the hour, and late samples are simply one more part.
 *
 * Figures are in steps of the series (whole numbers as long as its values are) or, for real values, in its unit. `rest`
 * is the sum of what each value is above the least: exact below 2^53, where a plain sum of a large counter is not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metrics.h"
#include "model/series.h"
#include "model/series_block.h"

#define MS_PER_MINUTE 60000ll
#define MS_PER_HOUR 3600000ll
#define MS_PER_DAY 86400000ll

struct roll {
    int64_t at_ms; /* when its interval began */
    double count, min, max, rest;
};

/* Never outside of least and greatest, however large the numbers. */
static inline double roll_mean(const struct roll *r) {
    double mean = r->min + r->rest / r->count;
    return mean > r->max ? r->max : mean < r->min ? r->min : mean;
}

/* Takes more into r. Both have a count above zero. */
void roll_join(struct roll *r, const struct roll *more);

/* The start of the interval that holds at_ms, also before 1970. */
static inline int64_t roll_floor(int64_t at_ms, int64_t every_ms) {
    int64_t m = at_ms % every_ms;
    return at_ms - (m < 0 ? m + every_ms : m);
}

/* Rolls up n values of rising times; ret has room for n. How many there are. */
size_t roll_values(const int64_t *at_ms, const double *v, size_t n, int64_t every_ms, struct roll *ret);

/* By time; those of equal times stay in order. Quick for what is a few rising runs one after the other. */
void roll_sort(struct roll *r, size_t n);
/* Moves the first k behind the others. */
void roll_rotate(struct roll *r, size_t n, size_t k);

/* Sorts by time and joins those of the same interval, in place. How many are left. */
size_t roll_settle(struct roll *r, size_t n);

/* As the four columns of a block: whole numbers where they are, else the bits of doubles. columns[i] has room for n.
 * is_whole: figures are steps. Returns whether they still are. */
bool roll_to_columns(const struct roll *r, size_t n, bool is_whole, int64_t *const columns[BLOCK_ROLL_COLUMNS]);
/* The way back; false when a count is not positive or a figure not finite. */
bool roll_from_columns(struct roll *ret, size_t n, bool is_whole, const int64_t *at_ms,
                       int64_t *const columns[BLOCK_ROLL_COLUMNS]);

/* How one figure stands for several GPUs or machines: watts add up, the hottest counts, utilisation is averaged. */
enum together { TOGETHER_SUM, TOGETHER_MEAN, TOGETHER_MAX, TOGETHER_MIN };
enum together metric_together(const struct metric *m);
const char *together_name(enum together t);
