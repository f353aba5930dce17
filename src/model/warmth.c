#include "model/warmth.h"

#include <math.h>

#define MEMORY_MINUTES 20000.0 /* two weeks of one load: slower than dust gathers */
#define YOUNG 2.0 /* a table forgets quicker while it is young: what was learnt first was learnt without neighbours */
#define YOUNG_MINUTES 300.0
#define COOLER_MINUTES 3000.0
#define STEP_MOST_C 3.0 /* one observation pulls no more than this, however odd */
#define REACH_POWER 0.1
#define REACH_MEMORY 0.2
#define WEIGHT_MOST 600.0 /* minutes beyond this make an entry no truer */
#define AFAR 0.002        /* what entries out of reach still count */
#define PRIOR_C 35.0      /* degrees from nothing to full power, before anything is known */
#define PRIOR 0.002

static int bin_of(struct warmth_load l) {
    int p = (int)floor(fmin(fmax(l.power, 0), 0.999) * WARMTH_POWERS);
    int m = (int)floor(fmin(fmax(l.memory, 0), 0.999) * WARMTH_MEMORIES);
    return p * WARMTH_MEMORIES + m;
}

void warmth_learn(struct warmth *w, struct warmth_load l, double warm_c, double minutes) {
    int k = bin_of(l);
    struct warmth_guess g = warmth_guess(w, l);
    double seen = fmin(w->bin[k].minutes, fmin(fmax(g.total / YOUNG, YOUNG_MINUTES), MEMORY_MINUTES)) + minutes;
    double off = w->bin[k].minutes > 0 ? warm_c - g.warm_c : 0;
    double share = minutes / seen;
    if (w->bin[k].minutes > WARMTH_NEAR) off = fmin(fmax(off, -STEP_MOST_C), STEP_MOST_C);
    if (off < 0) share = fmax(share, fmin(minutes / COOLER_MINUTES, 1));
    bool is_first = w->bin[k].minutes <= 0;
    w->bin[k].warm_c = (float)(is_first ? warm_c : w->bin[k].warm_c + off * share);
    double moved = minutes / fmin(seen, WEIGHT_MOST); /* and with the place, along the slope */
    double power = w->bin[k].power + (l.power - w->bin[k].power) * moved;
    double memory = w->bin[k].memory + (l.memory - w->bin[k].memory) * moved;
    if (!is_first) {
        struct warmth_load from = {w->bin[k].power, w->bin[k].memory}, to = {power, memory};
        w->bin[k].warm_c += (float)(warmth_guess(w, to).warm_c - warmth_guess(w, from).warm_c);
    }
    w->bin[k].power = (float)power;
    w->bin[k].memory = (float)memory;
    w->bin[k].minutes = (float)fmin((double)w->bin[k].minutes + minutes, MEMORY_MINUTES);
}

struct plane { /* sums for least squares around a point */
    double n, x, m, y, xx, xm, mm, xy, my;
};

static void plane_add(struct plane *s, double weight, double x, double m, double y) {
    s->n += weight;
    s->x += weight * x;
    s->m += weight * m;
    s->y += weight * y;
    s->xx += weight * x * x;
    s->xm += weight * x * m;
    s->mm += weight * m * m;
    s->xy += weight * x * y;
    s->my += weight * m * y;
}

/* Solves for the height at the point and the slope along x. Slopes are drawn a little towards their prior, which
 * decides where the entries do not. */
static void plane_solve(const struct plane *s, double *ret_y, double *ret_slope) {
    double lambda = PRIOR * s->n + 1e-9;
    double x = s->x / s->n, m = s->m / s->n, y = s->y / s->n;
    double xx = s->xx - s->n * x * x + lambda, mm = s->mm - s->n * m * m + lambda, xm = s->xm - s->n * x * m;
    double xy = s->xy - s->n * x * y + lambda * PRIOR_C, my = s->my - s->n * m * y;
    double det = xx * mm - xm * xm;
    double along_x = (xy * mm - my * xm) / det, along_m = (my * xx - xy * xm) / det;
    *ret_slope = along_x;
    *ret_y = y - along_x * x - along_m * m;
}

struct warmth_guess warmth_guess(const struct warmth *w, struct warmth_load l) {
    struct warmth_guess g = {.warm_c = NAN};
    struct plane near = {0}, all = {0};
    for (int k = 0; k < WARMTH_BINS; k++) {
        double minutes = w->bin[k].minutes;
        if (minutes <= 0) continue;
        double dx = w->bin[k].power - l.power, dm = w->bin[k].memory - l.memory;
        double reach = exp(-0.5 * (dx * dx / REACH_POWER / REACH_POWER + dm * dm / REACH_MEMORY / REACH_MEMORY));
        double weight = fmin(minutes, WEIGHT_MOST);
        plane_add(&near, weight * (reach + AFAR), dx, dm, w->bin[k].warm_c);
        plane_add(&all, weight, dx, dm, w->bin[k].warm_c);
        g.minutes += minutes * reach * reach * reach * reach;
        g.total += minutes;
    }
    if (g.total <= 0) return g;
    double unused;
    plane_solve(&near, &g.warm_c, &unused);
    plane_solve(&all, &unused, &g.slope_c);
    g.rise_c = fmax(g.slope_c, 0) * l.power;
    g.spread = sqrt(fmax(all.xx / all.n - all.x / all.n * all.x / all.n, 0));
    return g;
}
