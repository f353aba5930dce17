#include "model/guard.h"

#include <math.h>

/* Where to aim. Readings are whole degrees and the die swings around its mean with the power of one and the same work:
 * the peaks of that swing may pass the target by less than a degree. */
#define ALLOW_C 0.5
#define AIM_MOST_C 0.1 /* above the target, for a card whose readings stand still */
#define JUMP_FIRST_C 30.0
#define PEAK_SIGMAS                                                                                                    \
    4.0 /* the largest of some thousand independent readings, measured against a mean of half a second */
#define SWING_MOST_C 4.0
#define SPREAD_FIRST 0.25 /* variance, before any is measured: 1.6 degrees of swing */
#define SPREAD_S 30.0
#define ROUNDING (1.0 / 12) /* the variance that rounding to whole degrees adds */

/* How a die follows its power: most at once, some within seconds (fitted on an H200: 0.18 s and 1.95 s, 24 %). */
#define SMOOTH_S 0.5 /* half the second over which most cards average their power: temperatures are delayed likewise */
#define FAST_S 0.2
#define MID_S 2.0
#define MID_SHARE 0.25
#define GAIN_USE 0.08 /* smaller changes of use teach nothing */
#define COOLER_S 18.0 /* about the time constant of a cooler: only what it does within the lead matters */
#define CLIMB_LEAST 0.3
#define CLIMB_MOST 10.0
#define JUMP_LEAST_C 8.0
#define JUMP_MOST_C 60.0

#define FILTER_S 2.0      /* time constant of the slow part's filter */
#define UNSETTLED_USE 0.1 /* after a change of use of this size it takes in half */
#define TRUST_LEAST 0.2
#define LEAD_S 5.0
#define PATIENT_LEAD_S 1.0
#define GAP_S 10.0 /* after a silence of this length filters start anew */

#define CALM_NS 10000000000ll /* between changes that are not urgent: 6 a minute */
#define URGENT_NS 300000000ll
#define URGENT_C 1.0 /* expected beyond the aim by so much: now */
#define BAND_C 0.4   /* less is not worth a change */
#define CALM_GAIN 0.7
#define PATIENT_GAIN 1.0
#define RAISE_MOST 0.3
#define NEARLY_ALL 0.98 /* so near to the baseline it is the baseline */
#define NEAR_S 1.5
#define WANT_LEAST (-0.5) /* shares wanted are counted a little beyond what can be had */
#define WANT_MOST 1.5
#define WORK_USE 0.25         /* so far under its limit a card idles */
#define WORK_NS 90000000000ll /* work that began twice within this comes and goes */
#define PATIENT_INTERVALS 6   /* then look over so many calm intervals before raising */
#define FILL_MOST 0.06        /* cards keep a little under their limit */
#define IDLE_USE 0.4          /* a card that idles lies so far below the floor, where power is not known */

/* What is known of gains before anything was seen, and how much that weighs; a full jump weighs half of over_s. */
static const struct {
    double over_s, first_c, weight, weight_most;
} pace[GUARD_PACES] = {
    [GUARD_QUICK] = {4,  JUMP_FIRST_C, 0.3, 6 },
    [GUARD_SLOW] = {40, 30,           2,   20},
};

static const int metric_of[GUARD_SENSORS] = {METRIC_TEMP_CORE, METRIC_TEMP_MEMORY, METRIC_TEMP_MARGIN};
static const enum guard_reason hot_of[GUARD_SENSORS] = {GUARD_HOT_CORE, GUARD_HOT_MEMORY, GUARD_LOW_MARGIN};

/* Hotter is more for every sensor: a margin is turned round. */
static double heat(int sensor, double v) { return sensor == GUARD_MARGIN ? -v : v; }

static double clamp(double v, double least, double most) { return v > most ? most : v > least ? v : least; }

/* The share of the way to a new value that a first-order lag goes in dt. */
static double share(double dt, double tau_s) { return -expm1(-dt / tau_s); }

double guard_headroom_c(const struct guard_state *g, const struct guard_policy *p) {
    double worst = NAN;
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k] || !g->filter[k].at_ns) continue;
        double h = heat(k, p->target[k]) - g->filter[k].read;
        if (isnan(worst) || h < worst) worst = h;
    }
    return worst;
}

static double jump_c(const struct guard_filter *f) {
    const struct guard_gain *q = &f->gain[GUARD_QUICK];
    return clamp(q->moved / q->moves, JUMP_LEAST_C, JUMP_MOST_C);
}

/* How fast the slow part begins to rise when the whole range is used, in degrees a second. */
static double climb_cs(const struct guard_filter *f) {
    const struct guard_gain *s = &f->gain[GUARD_SLOW];
    return clamp(s->moved / s->moves / COOLER_S, CLIMB_LEAST, CLIMB_MOST);
}

/* The part of a jump, as a share of the range, that the die shows by now. */
static double quick(const struct guard_load *l) { return (1 - MID_SHARE) * l->fast + MID_SHARE * l->mid; }

/* Use as the part of that pace feels it. */
static double felt(const struct guard_load *l, int k) { return k == GUARD_QUICK ? quick(l) : l->slow; }

/* How much of the limit's range the card uses now; below 0 when it idles under the floor. */
static double use_now(const struct guard_state *g, const struct guard_policy *p, const struct sample *s) {
    int watts = sample_has(s, METRIC_POWER_INSTANT) ? METRIC_POWER_INSTANT : METRIC_POWER;
    double range = p->baseline - p->floor, held = g->u;
    if (p->control == GUARD_BY_POWER && sample_has(s, watts)) return clamp((s->value[watts] - p->floor) / range, -1, 2);
    if (p->control != GUARD_BY_POWER && sample_has(s, METRIC_CLOCK_GRAPHICS))
        held = clamp((s->value[METRIC_CLOCK_GRAPHICS] * 1e-6 - p->floor) / range, 0, 1);
    double busy = sample_has(s, METRIC_UTIL_GPU) ? s->value[METRIC_UTIL_GPU] : 1;
    return busy * (held + IDLE_USE) - IDLE_USE;
}

static void load_take(struct guard_state *g, const struct guard_policy *p, const struct sample *s, double dt,
                      int64_t now_ns) {
    struct guard_load *l = &g->load;
    double use = use_now(g, p, s);
    if (dt > GAP_S) {
        l->smooth = l->fast = l->mid = use;
        l->slow = quick(l);
        for (int k = 0; k < GUARD_PACES; k++) l->base[k] = felt(l, k);
    }
    /* an average over a second comes late as it is */
    bool is_late = p->control == GUARD_BY_POWER && !sample_has(s, METRIC_POWER_INSTANT);
    l->smooth += (use - l->smooth) * (is_late ? 1 : share(dt, SMOOTH_S));
    l->fast += (l->smooth - l->fast) * share(dt, FAST_S);
    l->mid += (l->smooth - l->mid) * share(dt, MID_S);
    l->slow += (quick(l) - l->slow) * share(dt, COOLER_S);
    for (int k = 0; k < GUARD_PACES; k++) l->base[k] += (felt(l, k) - l->base[k]) * share(dt, pace[k].over_s);
    bool is_idle = l->fast < g->u - WORK_USE;
    if (l->is_idle && !is_idle) {
        l->before_ns = l->begun_ns;
        l->begun_ns = now_ns;
    }
    l->is_idle = is_idle;
}

/* Least squares of how far the temperature moved with use, in what both did within the time of that pace. */
static void gain_learn(struct guard_gain *g, int k, const struct guard_load *l, double warm_c, double dt) {
    double q = felt(l, k) - l->base[k];
    g->base += (warm_c - g->base) * share(dt, pace[k].over_s);
    if (fabs(q) < GAIN_USE || dt > 2) return;
    g->moves += q * q * dt;
    g->moved += q * (warm_c - g->base) * dt;
    if (g->moves <= pace[k].weight_most) return;
    g->moved *= pace[k].weight_most / g->moves;
    g->moves = pace[k].weight_most;
}

/* An alpha-beta filter of the slow part: a sensor of whole degrees has no slope of its own. What use does to the slope is
 * known; the filter finds what else does. */
static void filter_take(struct guard_filter *f, const struct guard_load *l, double read, int64_t now_ns) {
    double dt = (double)(now_ns - f->at_ns) * 1e-9;
    if (!f->at_ns || dt > GAP_S || dt < 0) {
        f->smooth = read;
        f->rest = read - jump_c(f) * quick(l);
        f->gain[GUARD_QUICK].base = read;
        f->gain[GUARD_SLOW].base = f->rest;
        f->drift = -climb_cs(f) * quick(l);
        dt = 0;
    }
    f->read = read;
    f->at_ns = now_ns;
    if (dt <= 0) return;
    f->smooth += (read - f->smooth) * share(dt, SMOOTH_S);
    double jump = jump_c(f), climb = climb_cs(f);
    gain_learn(&f->gain[GUARD_QUICK], GUARD_QUICK, l, f->smooth, dt);
    gain_learn(&f->gain[GUARD_SLOW], GUARD_SLOW, l, f->smooth - jump_c(f) * quick(l), dt);
    f->rest -= (jump_c(f) - jump) * quick(l); /* what is known of the sums stays known */
    f->drift -= (climb_cs(f) - climb) * quick(l);

    double unsettled = (l->fast - l->mid) / UNSETTLED_USE;
    double trust = fmax(1 / (1 + unsettled * unsettled), TRUST_LEAST);
    double alpha = trust * share(dt, FILTER_S), beta = alpha * alpha / (2 - alpha);
    double ahead = f->rest + (f->drift + climb_cs(f) * quick(l)) * dt;
    double error = f->smooth - jump_c(f) * quick(l) - ahead;
    f->rest = ahead + alpha * error;
    f->drift += beta / dt * error;
    double swing = read - f->smooth;
    if (!l->is_idle && fabs(unsettled) < 1) f->spread += (swing * swing - f->spread) * share(dt, SPREAD_S);
}

/* Work that comes and goes, or none. */
static bool is_patient(const struct guard_state *g) {
    return g->load.is_idle || (g->load.before_ns && g->now_ns - g->load.before_ns < WORK_NS);
}

/* The share of the range at which this sensor stays at its aim: if all of it is used this instant; if it goes on like this
 * for LEAD_S; and, where it is above already, by the reading itself. */
static double wanted(const struct guard_state *g, const struct guard_filter *f, double target) {
    const struct guard_load *l = &g->load;
    double jump = jump_c(f), fast_c = (1 - MID_SHARE) * jump, climb = climb_cs(f);
    double swing = fmin(PEAK_SIGMAS * sqrt(fmax(f->spread - ROUNDING, 0)), SWING_MOST_C);
    double aim = target + fmin(ALLOW_C - swing, AIM_MOST_C);
    double want = WANT_MOST, leads[] = {0, is_patient(g) ? PATIENT_LEAD_S : LEAD_S};
    double slope = f->drift + climb * (l->base[GUARD_QUICK] - g->u);
    for (int k = 0; k < 2; k++) {
        double mid_c = MID_SHARE * jump, come = share(leads[k], MID_S);
        double room = aim - f->rest - mid_c * (1 - come) * l->mid - leads[k] * slope;
        want = fmin(want, room / (fast_c + mid_c * come + leads[k] * climb));
    }
    if (f->smooth > aim) want = fmin(want, l->fast - (f->smooth - aim) / fast_c);
    return want;
}

struct outlook {
    double want;   /* the share at which the worst sensor ends at its target */
    double jump_c; /* of that sensor */
    enum guard_reason reason;
    bool is_blind, is_known;
};

static struct outlook look(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                           int64_t now_ns) {
    struct outlook o = {.want = INFINITY, .jump_c = JUMP_FIRST_C};
    double unused = g->u - g->load.mid, fill = unused > 0 && unused < FILL_MOST ? unused : 0;
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k]) continue;
        struct guard_filter *f = &g->filter[k];
        if (sample_has(s, metric_of[k])) filter_take(f, &g->load, heat(k, s->value[metric_of[k]]), now_ns);
        o.is_blind |= now_ns - (f->at_ns ? f->at_ns : g->begun_ns) > p->grace_ns;
        if (!f->at_ns) continue;
        double want = wanted(g, f, heat(k, p->target[k])) + fill;
        o.is_known = true;
        if (!(want < o.want)) continue;
        o.want = want;
        o.jump_c = jump_c(f);
        o.reason = hot_of[k];
    }
    o.want = clamp(o.want, WANT_LEAST, WANT_MOST);
    return o;
}

/* A fresh interval; what was least wanted is kept when the one before goes on. */
static void window_begin(struct guard_window *w, double least, int64_t now_ns) {
    *w = (struct guard_window){.near = w->near, .least = least, .intervals = w->intervals, .begun_ns = now_ns};
}

static void window_take(struct guard_window *w, double want, double dt) {
    w->near += (want - w->near) * share(dt, NEAR_S);
    w->least = fmin(w->least, w->near);
    w->sum += want;
    w->count++;
}

static struct guard_action change(struct guard_state *g, double u, enum guard_reason why, int64_t now_ns) {
    struct guard_action a = {.verb = u < g->u ? GUARD_LOWER : u > g->u ? GUARD_RAISE : GUARD_HOLD, .reason = why};
    if (a.verb != GUARD_HOLD) {
        g->u = u;
        g->change_ns = now_ns;
        g->window.intervals = 0;
        window_begin(&g->window, INFINITY, now_ns);
    }
    a.limit = g->floor + u * (g->baseline - g->floor);
    return a;
}

/* Nothing hurries: once an interval, part of the way to what was wanted on the whole. Work that comes and goes is
 * judged by its hottest moments, and over a longer time before it is given more. */
static struct guard_action calm_change(struct guard_state *g, const struct outlook *o, int64_t now_ns) {
    struct guard_window *w = &g->window;
    enum guard_reason why = g->u < 1 ? o->reason : GUARD_CALM;
    if (now_ns - w->begun_ns < CALM_NS) return change(g, g->u, why, now_ns);
    bool patient = is_patient(g);
    double way = (patient ? w->least : w->sum / w->count) - g->u;
    bool is_over = !patient || ++w->intervals >= PATIENT_INTERVALS;
    if (is_over) w->intervals = 0;
    window_begin(w, is_over ? INFINITY : w->least, now_ns);

    if (way * o->jump_c < -BAND_C) return change(g, fmax(g->u + CALM_GAIN * way, 0), o->reason, now_ns);
    if (!is_over || g->u >= 1 || way * o->jump_c < BAND_C) return change(g, g->u, why, now_ns);
    double u = g->u + fmin((patient ? PATIENT_GAIN : CALM_GAIN) * way, RAISE_MOST);
    return change(g, u > NEARLY_ALL ? 1 : u, GUARD_COOLED, now_ns);
}

/* Floor or baseline are not what they were: the limit in force stays what it is, as far as it may. */
static void rebase(struct guard_state *g, const struct guard_policy *p) {
    double limit = g->floor + g->u * (g->baseline - g->floor), range = p->baseline - p->floor;
    double scale = range / (g->baseline - g->floor);
    if (g->u < 1) g->u = range > 0 ? clamp((limit - p->floor) / range, 0, 1) : 1;
    for (int k = 0; k < GUARD_SENSORS && isfinite(scale) && scale > 0; k++) {
        for (int n = 0; n < GUARD_PACES; n++) g->filter[k].gain[n].moved *= scale;
    }
    g->floor = p->floor;
    g->baseline = p->baseline;
}

void guard_begin(struct guard_state *g, const struct guard_policy *p, double limit, int64_t now_ns) {
    double range = p->baseline - p->floor;
    *g = (struct guard_state){.u = range > 0 ? clamp((limit - p->floor) / range, 0, 1) : 1,
                              .floor = p->floor,
                              .baseline = p->baseline,
                              .begun_ns = now_ns,
                              .now_ns = now_ns,
                              .is_begun = true};
    g->change_ns = now_ns - URGENT_NS;
    g->window.near = 1;
    window_begin(&g->window, INFINITY, now_ns);
    for (int k = 0; k < GUARD_SENSORS; k++) {
        g->filter[k].spread = SPREAD_FIRST;
        for (int n = 0; n < GUARD_PACES; n++)
            g->filter[k].gain[n] =
                (struct guard_gain){.moves = pace[n].weight, .moved = pace[n].weight * pace[n].first_c};
    }
}

struct guard_action guard_step(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                               int64_t now_ns) {
    if (!g->is_begun) guard_begin(g, p, p->baseline, now_ns);
    if (p->control == GUARD_BY_NONE || !(p->baseline > p->floor))
        return (struct guard_action){.verb = GUARD_HOLD, .limit = p->baseline};
    double before = g->floor + g->u * (g->baseline - g->floor);
    if (p->floor != g->floor || p->baseline != g->baseline) rebase(g, p);
    double dt = fmax((double)(now_ns - g->now_ns) * 1e-9, 0);
    g->now_ns = now_ns;
    load_take(g, p, s, dt, now_ns);
    struct outlook o = look(g, p, s, now_ns);
    window_take(&g->window, o.want, dt);

    struct guard_action a;
    if (o.is_blind)
        a = change(g, 0, GUARD_BLIND, now_ns);
    else if (!o.is_known)
        a = change(g, g->u, GUARD_CALM, now_ns);
    else if ((g->u - o.want) * o.jump_c > URGENT_C && now_ns - g->change_ns >= URGENT_NS)
        a = change(g, fmax(o.want, 0), o.reason, now_ns);
    else
        a = calm_change(g, &o, now_ns);
    if (a.verb == GUARD_HOLD && a.limit != before) a.verb = a.limit < before ? GUARD_LOWER : GUARD_RAISE;
    return a;
}

const char *guard_reason_words(enum guard_reason r) {
    static const char *const words[] = {"calm",
                                        "the core nears its target temperature",
                                        "the memory nears its target temperature",
                                        "the margin to the thermal limit is small",
                                        "a temperature cannot be read",
                                        "it has cooled down"};
    return words[r];
}
