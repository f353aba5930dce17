#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_query.h"

#define GAP_LEAST_MS 2500 /* readings that are closer are no gap, however close the others are */
#define GAP_TIMES 3
#define SPACINGS 1024

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How far apart points usually are: the median, of a sample where there are many. */
static int64_t spacing(const struct gathered *g) {
    int64_t apart[SPACINGS];
    size_t n = 0;
    if (g->n < 2) return 0;
    for (size_t i = 0, every = (g->n - 2) / SPACINGS + 1; i + 1 < g->n && n < SPACINGS; i += every)
        apart[n++] = g->rolls[i + 1].at_ms - g->rolls[i].at_ms;
    qsort(apart, n, sizeof *apart, by_number);
    return apart[n / 2];
}

static void *column(size_t n) {
    void *c = malloc((n + 1) * sizeof(double));
    if (!c) abort();
    return c;
}

/* As they were read; a gap is a point without a value in its middle. */
static void answer_readings(struct history_answer *a, const struct gathered *g) {
    int64_t gap_ms = GAP_TIMES * spacing(g);
    if (gap_ms < GAP_LEAST_MS) gap_ms = GAP_LEAST_MS;
    a->step_ms = 0;
    a->at_ms = column(2 * g->n);
    a->mean = column(2 * g->n);
    for (size_t i = 0; i < g->n; i++) {
        const struct roll *r = &g->rolls[i];
        if (i && r->at_ms == g->rolls[i - 1].at_ms) a->n--; /* the later counts */
        if (i && r->at_ms - g->rolls[i - 1].at_ms > gap_ms) {
            a->at_ms[a->n] = g->rolls[i - 1].at_ms + (r->at_ms - g->rolls[i - 1].at_ms) / 2;
            a->mean[a->n++] = NAN;
        }
        a->at_ms[a->n] = r->at_ms;
        a->mean[a->n++] = r->min;
    }
}

struct grid {
    int64_t from_ms, step_ms;
    size_t n;
};

static struct grid grid_of(const struct history_answer *a, const struct history_ask *ask) {
    struct grid grid = {roll_floor(ask->from_ms, a->step_ms), a->step_ms, 0};
    grid.n = (size_t)((ask->to_ms - grid.from_ms + a->step_ms - 1) / a->step_ms);
    return grid;
}

static struct roll *cells(const struct grid *grid, const struct gathered *g) {
    struct roll *cell = calloc(grid->n + 1, sizeof *cell);
    if (!cell) abort();
    for (size_t i = 0; i < g->n; i++) {
        int64_t at = g->rolls[i].at_ms - grid->from_ms;
        if (at < 0 || (size_t)(at / grid->step_ms) >= grid->n) continue;
        struct roll *c = &cell[at / grid->step_ms];
        if (c->count > 0)
            roll_join(c, &g->rolls[i]);
        else
            *c = g->rolls[i];
    }
    return cell;
}

/* A cell without a reading takes over the one before while the next is not overdue. */
static void carry(struct roll *cell, const struct grid *grid, int64_t usual_ms) {
    int64_t hold = usual_ms > grid->step_ms ? GAP_TIMES * usual_ms / grid->step_ms : 1;
    int64_t left = 0;
    for (size_t i = 0; i < grid->n; i++) {
        if (cell[i].count > 0)
            left = hold;
        else if (i && left-- > 0)
            cell[i] = cell[i - 1];
    }
}

/* Takes one subject's figures into the answer. n: how many subjects are in there already at this point. */
static void join(struct history_answer *a, size_t i, const struct roll *c, enum together how, uint32_t n) {
    double min = c->min, mean = roll_mean(c), max = c->max;
    if (n == 0) {
        a->min[i] = min;
        a->mean[i] = mean;
        a->max[i] = max;
    } else if (how == TOGETHER_SUM || how == TOGETHER_MEAN) {
        a->min[i] += min;
        a->mean[i] += mean;
        a->max[i] += max;
    } else {
        bool is_max = how == TOGETHER_MAX;
        a->min[i] = is_max ? fmax(a->min[i], min) : fmin(a->min[i], min);
        a->mean[i] = is_max ? fmax(a->mean[i], mean) : fmin(a->mean[i], mean);
        a->max[i] = is_max ? fmax(a->max[i], max) : fmin(a->max[i], max);
    }
}

static void answer_grid(struct history_answer *a, const struct history_ask *ask, struct gathered *g) {
    struct grid grid = grid_of(a, ask);
    uint32_t *counts = calloc(grid.n + 1, sizeof *counts);
    if (!counts) abort();
    a->n = grid.n;
    a->at_ms = column(grid.n);
    a->min = column(grid.n);
    a->mean = column(grid.n);
    a->max = column(grid.n);
    for (size_t s = 0; s < ask->subject_count; s++) {
        if (g[s].n == 0) continue;
        struct roll *cell = cells(&grid, &g[s]);
        if (ask->subject_count > 1) carry(cell, &grid, spacing(&g[s]));
        for (size_t i = 0; i < grid.n; i++)
            if (cell[i].count > 0) join(a, i, &cell[i], ask->together, counts[i]++);
        free(cell);
    }
    for (size_t i = 0; i < grid.n; i++) {
        a->at_ms[i] = grid.from_ms + (int64_t)i * grid.step_ms;
        if (counts[i] == 0) a->min[i] = a->mean[i] = a->max[i] = NAN;
        if (ask->together != TOGETHER_MEAN || counts[i] < 2) continue;
        a->min[i] /= counts[i];
        a->mean[i] /= counts[i];
        a->max[i] /= counts[i];
    }
    free(counts);
}

void answer_make(struct history_answer *a, const struct history_ask *ask, struct gathered *g) {
    for (size_t i = 0; i < ask->subject_count; i++) roll_sort(g[i].rolls, g[i].n);
    size_t wanted = ask->step_ms ? (size_t)((ask->to_ms - ask->from_ms) / ask->step_ms) + 2 : 2 * ask->width;
    if (ask->step_ms) wanted += wanted / 10; /* rounds that are a little early */
    if (a->tier == HISTORY_RAW && ask->subject_count == 1 && g[0].n <= wanted)
        answer_readings(a, &g[0]);
    else
        answer_grid(a, ask, g);
}
