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

/* Several subjects are taken in one after the other, so that a thousand need the memory of one. */
struct sum {
    struct grid grid;
    uint32_t *counts; /* subjects at each point */
};

struct sum *answer_begin(struct history_answer *a, const struct history_ask *ask) {
    struct sum *sum = calloc(1, sizeof *sum);
    if (!sum) abort();
    sum->grid = grid_of(a, ask);
    a->n = sum->grid.n;
    if (!(sum->counts = calloc(a->n + 1, sizeof *sum->counts))) abort();
    a->at_ms = column(a->n);
    a->min = column(a->n);
    a->mean = column(a->n);
    a->max = column(a->n);
    return sum;
}

void answer_add(struct history_answer *a, const struct history_ask *ask, struct sum *sum, struct gathered *g) {
    if (g->n == 0) return;
    roll_sort(g->rolls, g->n);
    struct roll *cell = cells(&sum->grid, g);
    if (ask->subject_count > 1) carry(cell, &sum->grid, spacing(g));
    for (size_t i = 0; i < a->n; i++)
        if (cell[i].count > 0) join(a, i, &cell[i], ask->together, sum->counts[i]++);
    free(cell);
}

void answer_end(struct history_answer *a, const struct history_ask *ask, struct sum *sum) {
    if (!sum) return;
    for (size_t i = 0; i < a->n; i++) {
        uint32_t n = sum->counts[i];
        a->at_ms[i] = sum->grid.from_ms + (int64_t)i * sum->grid.step_ms;
        if (n == 0) a->min[i] = a->mean[i] = a->max[i] = NAN;
        if (ask->together != TOGETHER_MEAN || n < 2) continue;
        a->min[i] /= n;
        a->mean[i] /= n;
        a->max[i] /= n;
    }
    free(sum->counts);
    free(sum);
}

bool answer_is_readings(struct history_answer *a, const struct history_ask *ask, struct gathered *g) {
    size_t wanted = ask->step_ms ? (size_t)((ask->to_ms - ask->from_ms) / ask->step_ms) + 2 : 2 * ask->width;
    if (ask->step_ms) wanted += wanted / 10; /* rounds that are a little early */
    if (a->tier != HISTORY_RAW || ask->subject_count != 1 || g->n > wanted) return false;
    roll_sort(g->rolls, g->n);
    answer_readings(a, g);
    return true;
}
