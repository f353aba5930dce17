/* Points on their way between blocks: growing columns, sorting, and rollups as columns. */
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"

static void *grown(void *have, size_t n, size_t each) {
    void *more = realloc(have, n * each);
    if (!more) abort();
    return more;
}

void points_reserve(struct points *p, size_t n) {
    if (p->room >= n) return;
    p->room = n + n / 4 + 64;
    p->at_ms = grown(p->at_ms, p->room, sizeof *p->at_ms);
    p->v = grown(p->v, p->room, sizeof *p->v);
    p->rolls = grown(p->rolls, p->room, sizeof *p->rolls);
    for (int i = 0; i < BLOCK_ROLL_COLUMNS; i++) p->column[i] = grown(p->column[i], p->room, sizeof **p->column);
}

void points_done(struct points *p) {
    free(p->at_ms);
    free(p->v);
    free(p->rolls);
    for (int i = 0; i < BLOCK_ROLL_COLUMNS; i++) free(p->column[i]);
    *p = (struct points){0};
}

struct reading {
    int64_t at_ms, v;
    size_t order;
};

static int by_time(const void *a, const void *b) {
    const struct reading *x = a, *y = b;
    if (x->at_ms != y->at_ms) return x->at_ms < y->at_ms ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* What was sent again after a crash is there twice, and counts once: the later. */
static void drop_twins(struct points *p) {
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (kept && p->at_ms[kept - 1] == p->at_ms[i]) kept--;
        p->at_ms[kept] = p->at_ms[i];
        p->column[0][kept++] = p->column[0][i];
    }
    p->n = kept;
}

static void sort(struct points *p) {
    size_t i = 1;
    while (i < p->n && p->at_ms[i - 1] <= p->at_ms[i]) i++;
    if (i >= p->n) return;
    struct reading *r = grown(NULL, p->n, sizeof *r);
    for (i = 0; i < p->n; i++) r[i] = (struct reading){p->at_ms[i], p->column[0][i], i};
    qsort(r, p->n, sizeof *r, by_time);
    for (i = 0; i < p->n; i++) {
        p->at_ms[i] = r[i].at_ms;
        p->column[0][i] = r[i].v;
    }
    free(r);
}

void points_sort(struct points *p) {
    sort(p);
    drop_twins(p);
}

void rolls_put(struct block_writer *w, uint64_t id, struct points *p, struct roll *rolls, size_t n,
               enum series_kind kind, double step) {
    points_reserve(p, n);
    bool is_whole = roll_to_columns(rolls, n, kind != SERIES_REAL, p->column);
    if (!is_whole && kind != SERIES_REAL) { /* steps beyond what can be counted: the unit instead */
        for (size_t i = 0; i < n; i++) {
            rolls[i].min *= step;
            rolls[i].max *= step;
            rolls[i].rest *= step;
        }
        roll_to_columns(rolls, n, false, p->column);
        kind = SERIES_REAL;
    }
    for (size_t i = 0; i < n; i++) p->at_ms[i] = rolls[i].at_ms;
    block_add(w, id, p->at_ms, n, kind, step, (const int64_t *const *)p->column);
}
