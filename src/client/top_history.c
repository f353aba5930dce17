#include "client/top_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void history_done(struct history *h) {
    for (int i = 0; i < h->count; i++) free(h->of[i].rows);
    free(h->of);
    *h = (struct history){0};
}

const struct history_device *history_find(const struct history *h, const char *uuid) {
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->of[i].uuid, uuid) == 0) return &h->of[i];
    return NULL;
}

struct history_device *history_of(struct history *h, const char *uuid) {
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->of[i].uuid, uuid) == 0) return &h->of[i];
    struct history_device *more = realloc(h->of, (size_t)(h->count + 1) * sizeof *more);
    if (!more) abort();
    h->of = more;
    struct history_device *d = &h->of[h->count++];
    *d = (struct history_device){.rows = calloc(HISTORY_ROWS, sizeof *d->rows)};
    if (!d->rows) abort();
    snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
    return d;
}

static struct history_row *row_at(struct history_device *d, int64_t second) {
    struct history_row *row = &d->rows[second % HISTORY_ROWS];
    if (row->second > second) return NULL; /* older than what is kept */
    if (row->second < second) {
        row->second = second;
        memset(row->has, 0, sizeof row->has);
    }
    if (second > d->newest) d->newest = second;
    return row;
}

static void merge(struct history_row *row, int metric, float value) {
    bool is_first = !bits_test(row->has, metric);
    enum metric_keep keep = metrics[metric].keep;
    if (is_first || keep == KEEP_MEAN || (keep == KEEP_MAX && value > row->value[metric]) ||
        (keep == KEEP_MIN && value < row->value[metric]))
        row->value[metric] = value;
    bits_set(row->has, metric);
}

void history_put(struct history_device *d, int metric, int64_t second, double value) {
    struct history_row *row = second > 0 ? row_at(d, second) : NULL;
    if (row && isfinite(value)) merge(row, metric, (float)value);
}

void history_take(struct history_device *d, const struct sample *s) {
    struct history_row *row = s->boot_ns >= NS_PER_S ? row_at(d, s->boot_ns / NS_PER_S) : NULL;
    for (int m = 0; row && m < METRIC_COUNT; m++)
        if (sample_has(s, m)) merge(row, m, (float)s->value[m]);
}

/* ---- out ---- */

/* A card of which nothing at all has come for so long is not held at its last values. */
enum { SILENT_S = 3 };

struct column {
    double sum, low, high;
    int count;
};

static void column_add(struct column *c, double value) {
    if (!c->count || value < c->low) c->low = value;
    if (!c->count || value > c->high) c->high = value;
    c->sum += value;
    c->count++;
}

static float column_value(const struct column *c, enum metric_keep keep) {
    if (!c->count) return NAN;
    return (float)(keep == KEEP_MAX ? c->high : keep == KEEP_MIN ? c->low : c->sum / c->count);
}

void history_series(const struct history_device *d, int metric, int64_t now_s, int step_s, float *ret, int count) {
    int64_t last = now_s / step_s, from = (last - count + 1) * step_s, held_at = 0;
    double held = NAN;
    if (from < 1) from = 1;
    for (int i = 0; i < count; i++) ret[i] = NAN;
    if (!d) return;
    struct column column = {0};
    int64_t at = last - count + 1;
    for (int64_t s = from - HISTORY_HOLD_S < 1 ? 1 : from - HISTORY_HOLD_S; s <= now_s; s++) {
        const struct history_row *row = &d->rows[s % HISTORY_ROWS];
        if (row->second == s && bits_test(row->has, metric)) {
            held = row->value[metric];
            held_at = s;
        }
        if (s < from) continue;
        if (s / step_s != at) {
            if (at >= last - count + 1) ret[at - (last - count + 1)] = column_value(&column, metrics[metric].keep);
            column = (struct column){0};
            at = s / step_s;
        }
        if (!isnan(held) && s - held_at <= HISTORY_HOLD_S && s <= d->newest + SILENT_S) column_add(&column, held);
    }
    if (at >= last - count + 1) ret[at - (last - count + 1)] = column_value(&column, metrics[metric].keep);
}
