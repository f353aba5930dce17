#include "model/guard_filter.h"

#include <math.h>

/* Power and temperature, made alike before they are compared. */
#define LATE_SMOOTH_S 0.158 /* of the temperature alone, where power is a mean of a second and late itself */
#define HASTE_C 22.0        /* power that changed a moment ago makes a reading so uncertain, for the whole range */
#define NOISE_C 0.888       /* of a reading in quiet times; readings a tenth of a second apart are no two */
#define SHAKE_NOISE 1.5     /* of its variance that the swing adds */
#define QUICK_NOISE 20.0    /* of work that is always changing: so many times the variance */
#define SLOW_NOISE_C 2.72   /* readings far apart are so much more uncertain */
#define PEAK_FALL_CS 2.0    /* so fast a peak is forgotten, for the choice of the reading rate */
#define WARMING_CS 0.06

/* The swing of the die with the power of one and the same work. A line through the readings of the last seconds is taken
 * out, so that it is known before the card has stopped warming. */
#define PEAK_SIGMAS 6.5 /* the largest of thousands of readings, against that line, and what a change comes late */
#define SWING_MOST_C 4.0
#define LINE_S 1.2
#define SPREAD_FIRST 0.1   /* variance of readings before any is measured, ... */
#define SPREAD_FIRST_S 6.0 /* ... and for how long it counts */
#define SPREAD_S 90.0
#define STEADY_USE 0.25     /* the power of one and the same work varies by less */
#define STEADY_S 4.0        /* so long after its beginning */
#define ROUNDING (1.0 / 12) /* the variance that rounding to whole degrees adds */

/* Work that comes and goes. */
#define BEYOND_S 45.6
#define BEYOND_MOST_C 12.0
#define CREST_S 3.0 /* crests are smoothed over this time, ... */
#define RISE_S 5.0  /* ... and how fast they rise over this */
#define ROUGH_FIRST 0.5
#define ROUGH_S 30.0
#define ROUGH_MOST 9.0

static double clamp(double v, double least, double most) { return v > most ? most : v > least ? v : least; }

static double share(double dt, double tau_s) { return -expm1(-dt / tau_s); }

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

void filter_begin(struct guard_filter *f) {
    *f = (struct guard_filter){.spread = SPREAD_FIRST};
    heat_begin(&f->heat);
}

double filter_shake_c(const struct guard_filter *f) { return sqrt(fmax(f->spread - ROUNDING, 0)); }

double filter_swing_c(const struct guard_filter *f) { return fmin(PEAK_SIGMAS * filter_shake_c(f), SWING_MOST_C); }

double filter_beyond_c(const struct guard_filter *f) { return f->waves > 0 ? f->beyond : filter_swing_c(f); }

double filter_reach_c(const struct guard_filter *f, double s) {
    struct heat_ahead a = heat_ahead(s);
    double c = 0;
    for (int i = 0; i < HEAT_GUESSES; i++) {
        const struct heat_guess *q = &f->heat.guess[i];
        c += q->weight * (q->x[HEAT_FAST] + q->x[HEAT_MID] + q->x[HEAT_SLOW] * a.slow[i]);
    }
    return c;
}

bool filter_is_warming(const struct guard_filter *f) {
    double drift = 0;
    for (int i = 0; i < HEAT_GUESSES; i++) drift += f->heat.guess[i].weight * f->heat.guess[i].x[HEAT_DRIFT];
    return drift > WARMING_CS;
}

/* How far a reading is from the line through those before it. */
static double line_take(struct guard_filter *f, double read_c, double dt) {
    f->mean += (read_c - f->mean) * share(dt, LINE_S);
    f->late += (f->mean - f->late) * share(dt, LINE_S);
    return read_c - 2 * f->mean + f->late;
}

static void spread_take(struct guard_filter *f, const struct guard_load *l, double swing, double dt, int64_t now_ns) {
    bool is_steady = l->is_on && seconds(now_ns - l->on_ns) > STEADY_S && fabs(l->now - l->use.mid) < STEADY_USE;
    if (!is_steady || fabs(swing) >= SWING_MOST_C) return;
    f->steady_s += dt;
    f->spread += (swing * swing - f->spread) * fmax(share(dt, SPREAD_S), dt / (f->steady_s + SPREAD_FIRST_S));
}

/* How uncertain a reading is: they come late, and power later; while that changes, little is learnt. */
static double noise_c(const struct guard_filter *f, const struct guard_load *l, double dt, int64_t now_ns) {
    double haste = HASTE_C * fabs(l->use.fast - l->late), shake = filter_shake_c(f);
    double still = NOISE_C * NOISE_C + SHAKE_NOISE * shake * shake;
    bool is_quick = l->period_s > 0 && l->period_s < GUARD_QUICK_S && seconds(now_ns - l->on_ns) < GUARD_QUICK_S;
    if (is_quick) still *= QUICK_NOISE;
    return sqrt(still * fmax(0.1 / dt, 1) + haste * haste) + (dt > GUARD_LEARN_S ? SLOW_NOISE_C : 0);
}

void filter_take(struct guard_filter *f, const struct guard_load *l, double read_c, int64_t now_ns) {
    double dt = seconds(now_ns - f->at_ns);
    if (!f->at_ns || dt > GUARD_GAP_S || dt < 0) {
        f->smooth = f->even = f->mean = f->late = read_c;
        f->crest = f->told = -INFINITY;
        heat_settle(&f->heat, &l->use, read_c);
        dt = 0;
    }
    f->read = read_c;
    f->peak = dt > 0 ? fmax(read_c, f->peak - PEAK_FALL_CS * dt) : read_c;
    f->at_ns = now_ns;
    if (dt <= 0) return;
    double noise = noise_c(f, l, dt, now_ns);
    f->smooth += (read_c - f->smooth) * share(dt, GUARD_SMOOTH_S);
    f->even += (read_c - f->even) * share(dt, l->is_late ? LATE_SMOOTH_S : GUARD_SMOOTH_S);
    heat_take(&f->heat, &l->use, f->even, noise, filter_shake_c(f), dt);
    f->crest = fmax(f->crest, read_c);
    f->told = fmax(f->told, heat_now_c(&f->heat, &l->use));
    spread_take(f, l, line_take(f, read_c, dt), dt, now_ns);
}

/* The height of the crests and how fast that changes, by exponential smoothing of both. */
static void crest_take(struct guard_filter *f, double period_s) {
    double ahead = f->crests > 0 ? f->top + f->rise * period_s : f->crest, missed = f->crest - ahead;
    bool is_young = f->crests < 2;
    double gain = is_young ? 1 : share(period_s, CREST_S), turn = is_young ? 1 : gain * share(period_s, RISE_S);
    if (f->crests == 0) f->rough = ROUGH_FIRST;
    if (f->crests == 0) f->rise = 0;
    if (f->crests > 2) f->rough += (fmin(missed * missed, ROUGH_MOST) - f->rough) * share(period_s, ROUGH_S);
    f->top = ahead + gain * missed;
    f->rise += turn * missed / period_s;
    f->crests++;
}

void filter_wave(struct guard_filter *f, double period_s) {
    if (period_s <= 0) f->crests = 0;
    if (period_s > 0 && isfinite(f->crest)) crest_take(f, period_s);
    if (period_s > 0 && isfinite(f->told)) {
        f->waves += period_s;
        double gain = fmax(share(period_s, BEYOND_S), fmin(period_s / f->waves, 1));
        f->beyond += gain * (clamp(f->crest - f->told, -BEYOND_MOST_C, BEYOND_MOST_C) - f->beyond);
    }
    f->crest = f->told = -INFINITY;
}
