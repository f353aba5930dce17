#include "model/series_roll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void roll_join(struct roll *r, const struct roll *more) {
    double min = more->min < r->min ? more->min : r->min;
    r->rest = r->rest + r->count * (r->min - min) + (more->rest + more->count * (more->min - min));
    r->count += more->count;
    r->min = min;
    if (more->max > r->max) r->max = more->max;
}

size_t roll_values(const int64_t *at_ms, const double *v, size_t n, int64_t every_ms, struct roll *ret) {
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        int64_t began = roll_floor(at_ms[i], every_ms), ends = began + every_ms;
        double min = v[i], max = v[i], rest = 0;
        size_t first = i, last = i;
        while (last < n && at_ms[last] < ends && at_ms[last] >= began) {
            min = v[last] < min ? v[last] : min;
            max = v[last] > max ? v[last] : max;
            last++;
        }
        for (; i < last; i++) rest += v[i] - min;
        ret[count++] = (struct roll){began, (double)(last - first), min, max, rest};
    }
    return count;
}

/* Where the rising run that begins at `from` ends. */
static size_t run_end(const struct roll *r, size_t n, size_t from) {
    size_t i = from + 1;
    while (i < n && r[i - 1].at_ms <= r[i].at_ms) i++;
    return i < n ? i : n;
}

/* Two neighbouring runs into one, the first by way of `spare`. */
static void join_runs(struct roll *r, size_t first, size_t second, struct roll *spare) {
    memcpy(spare, r, first * sizeof *r);
    size_t a = 0, b = first, to = 0;
    while (a < first && b < second) r[to++] = r[b].at_ms < spare[a].at_ms ? r[b++] : spare[a++];
    memcpy(r + to, spare + a, (first - a) * sizeof *r);
}

void roll_sort(struct roll *r, size_t n) {
    if (n < 2 || run_end(r, n, 0) == n) return;
    struct roll *spare = malloc(n * sizeof *spare);
    if (!spare) abort();
    while (run_end(r, n, 0) < n)
        for (size_t at = 0; at < n;) {
            size_t middle = run_end(r, n, at), end = middle < n ? run_end(r, n, middle) : n;
            if (middle < n) join_runs(r + at, middle - at, end - at, spare);
            at = end;
        }
    free(spare);
}

void roll_rotate(struct roll *r, size_t n, size_t k) {
    if (k == 0 || k == n) return;
    struct roll *spare = malloc(k * sizeof *spare);
    if (!spare) abort();
    memcpy(spare, r, k * sizeof *r);
    memmove(r, r + k, (n - k) * sizeof *r);
    memcpy(r + n - k, spare, k * sizeof *r);
    free(spare);
}

size_t roll_settle(struct roll *r, size_t n) {
    if (n == 0) return 0;
    roll_sort(r, n);
    size_t kept = 0;
    for (size_t i = 1; i < n; i++)
        if (r[i].at_ms == r[kept].at_ms)
            roll_join(&r[kept], &r[i]);
        else
            r[++kept] = r[i];
    return kept + 1;
}

static bool is_whole_number(double x) { return fabs(x) < 0x1p53 && (double)(int64_t)x == x; }

bool roll_to_columns(const struct roll *r, size_t n, bool is_whole, int64_t *const columns[BLOCK_ROLL_COLUMNS]) {
    for (size_t i = 0; i < n && is_whole; i++)
        is_whole = is_whole_number(r[i].min) && is_whole_number(r[i].max) && is_whole_number(r[i].rest) &&
                   fabs(r[i].max - r[i].min) < 0x1p53;
    for (size_t i = 0; i < n; i++) {
        columns[0][i] = (int64_t)r[i].count;
        if (is_whole) {
            columns[1][i] = (int64_t)r[i].min;
            columns[2][i] = (int64_t)r[i].max - (int64_t)r[i].min;
            columns[3][i] = (int64_t)r[i].rest;
        } else {
            memcpy(&columns[1][i], &r[i].min, sizeof(double));
            memcpy(&columns[2][i], &r[i].max, sizeof(double));
            memcpy(&columns[3][i], &r[i].rest, sizeof(double));
        }
    }
    return is_whole;
}

bool roll_from_columns(struct roll *ret, size_t n, bool is_whole, const int64_t *at_ms,
                       int64_t *const columns[BLOCK_ROLL_COLUMNS]) {
    for (size_t i = 0; i < n; i++) {
        struct roll *r = &ret[i];
        r->at_ms = at_ms[i];
        if (columns[0][i] <= 0) return false;
        r->count = (double)columns[0][i];
        if (is_whole) {
            r->min = (double)columns[1][i];
            r->max = (double)(int64_t)((uint64_t)columns[1][i] + (uint64_t)columns[2][i]);
            r->rest = (double)columns[3][i];
            continue;
        }
        memcpy(&r->min, &columns[1][i], sizeof(double));
        memcpy(&r->max, &columns[2][i], sizeof(double));
        memcpy(&r->rest, &columns[3][i], sizeof(double));
        if (!isfinite(r->min) || !isfinite(r->max) || isnan(r->rest)) return false;
    }
    return true;
}

/* What a person wants first of an interval decides where the unit does not. */
static enum together by_keep(const struct metric *m) {
    return m->keep == KEEP_MIN ? TOGETHER_MIN : m->keep == KEEP_MAX ? TOGETHER_MAX : TOGETHER_MEAN;
}

enum together metric_together(const struct metric *m) {
    switch (m->unit) {
    case UNIT_WATTS:
    case UNIT_JOULES:
    case UNIT_BYTES:
    case UNIT_BYTES_PER_SECOND: return TOGETHER_SUM;
    case UNIT_CELSIUS: return m->keep == KEEP_MIN ? TOGETHER_MIN : TOGETHER_MAX;
    case UNIT_RATIO:
    case UNIT_HERTZ: return TOGETHER_MEAN;
    case UNIT_BOOL: return TOGETHER_MAX; /* one is enough to be worth a look */
    case UNIT_SECONDS:
    case UNIT_NUMBER: return m->kind == KIND_COUNTER ? TOGETHER_SUM : by_keep(m);
    }
    return TOGETHER_MEAN;
}

const char *together_name(enum together t) {
    static const char *const names[] = {"sum", "mean", "max", "min"};
    return names[t];
}
