#include "model/guard.h"

#include <math.h>

/* Numbers without a measured origin were found by a search over the plants of bench/guard and a hundred random cards. Some
 * rows of the bench have little to spare (the rule's work on application clocks, 97 % on slow square waves): whoever
 * changes a number runs it.
 *
 * Where to aim. Readings are whole degrees, and the die swings around its mean with the power of one and the same work:
 * the peaks of that swing may pass the target by less than a degree. */
#define ALLOW_C 0.5
#define AIM_MOST_C 0.0  /* above the target, for a card whose readings stand still */
#define PEAK_SIGMAS 4.1 /* the largest of thousands of readings, against a mean of half a second */
#define SWING_MOST_C 4.0
#define SPREAD_FIRST 0.1 /* variance of readings before any is measured */
#define SPREAD_S 45.0
#define STEADY_USE 0.25     /* the power of one and the same work varies by less */
#define ROUNDING (1.0 / 12) /* the variance that rounding to whole degrees adds */

/* How a die follows its power: most at once, some within seconds (fitted on an H200: 0.18 s and 1.95 s, 24 %). */
#define SMOOTH_S 0.5 /* half the second over which most cards average their power: temperatures are delayed likewise */
#define FAST_S 0.2
#define MID_S 2.07
#define MID_SHARE 0.22
#define JUMP_FIRST_C 22.0
#define JUMP_LEAST_C 8.0
#define JUMP_MOST_C 60.0
#define COOLER_S 18.6 /* about the time constant of a cooler: only what it does within the lead matters */
#define CLIMB_LEAST 0.97
#define CLIMB_MOST 10.0
#define GAIN_USE 0.08       /* smaller changes of use teach nothing */
#define LEARN_S 0.3         /* readings further apart tell power and temperature of different moments */
#define CLOCK_EXPONENT 1.35 /* of heat over clock, voltage and all */
#define IDLE_USE 0.1        /* a card that idles lies so far below the floor, where power is not known */
#define FILL_MOST 0.06      /* cards keep a little under their limit */

/* The slow part: an observer, and how far ahead it looks. */
#define FILTER_S 1.61
#define UNSETTLED_USE 0.1 /* after a change of use of this size it takes in half, but ... */
#define TRUST_LEAST 0.62  /* ... never less than this, and ... */
#define LATE_MOST_C 3.0   /* ... no more than this at once: a sensor comes late */
#define LEAD_S 6.3
#define PATIENT_LEAD_S 0.66 /* of work that comes and goes: it was through this before */
#define GAP_S 10.0          /* after a silence of this length it starts anew */
#define PEAK_FALL_CS 2.0    /* so fast a peak is forgotten, for the choice of the reading rate */

/* What is urgent: expected beyond the aim by URGENT_C, and neither far from it nor falling already. */
#define URGENT_C 0.72
#define URGENT_NS 400000000ll
#define FAR_C 4.0
#define FALL_C 0.07 /* below its mean of TRAIL_S */
#define TRAIL_S 1.0
#define EXCESS_GAIN 1.3 /* what is above the aim is taken back more than in full */
#define TOP_FALL 0.1    /* a second, of the use that a late reading belongs to */
#define SLOW_URGENT_C 4.0
#define SLOW_NS 8000000000ll /* an idle card that was read seldom until now may have been seen at odd moments */

/* What is not: once in an interval, part of the way. */
#define CALM_NS 10000000000ll /* 6 a minute */
#define LOWER_BAND_C 0.1      /* less is not worth a change */
#define RAISE_BAND_C 1.0
#define LOWER_GAIN 0.7
#define RAISE_GAIN 0.32
#define PATIENT_GAIN 1.1
#define RAISE_MOST 0.35
#define NEARLY_ALL 0.98 /* so near to the baseline it is the baseline */
#define NEAR_S 1.16
#define WANT_LEAST (-0.5) /* shares wanted are counted a little beyond what can be had */
#define WANT_MOST 1.5
#define WORK_USE 0.23            /* so far under its limit a card idles */
#define FULL_USE 0.1             /* so near to it, it is at its limit */
#define WORK_NS 90000000000ll    /* work that began twice within this comes and goes ... */
#define PATIENT_NS 60000000000ll /* ... and is looked at for so long at most before it is given more */
#define TREND_MOST_C 3.0         /* if its peaks rise from interval to interval they will rise so much more at most */
#define CREST_FALL_C 0.5         /* of the peaks before, an interval */
#define STEADY_NS 40000000000ll  /* steady work may have more after this time ... */
#define NUDGE_C 0.08             /* ... if all readings of it were below the target */
#define REACH_S 16.0             /* what more power does is counted over this time */

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
        double h = heat(k, p->target[k]) - g->filter[k].peak;
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

/* Heat goes with watts, but with a power of the clock: in between lies where a limit stands as a share of the heat. */
static double heat_of(const struct guard_policy *p, double limit) {
    return p->control == GUARD_BY_POWER ? limit : pow(fmax(limit, 0), CLOCK_EXPONENT);
}

static double share_of(const struct guard_policy *p, double limit) {
    double low = heat_of(p, p->floor), range = heat_of(p, p->baseline) - low;
    return range > 0 ? (heat_of(p, limit) - low) / range : 1;
}

static double limit_of(const struct guard_policy *p, double u) {
    double low = heat_of(p, p->floor), heat = low + u * (heat_of(p, p->baseline) - low);
    if (u <= 0 || u >= 1) return u <= 0 ? p->floor : p->baseline;
    return p->control == GUARD_BY_POWER ? heat : pow(heat, 1 / CLOCK_EXPONENT);
}

/* How much of the limit's range the card uses now; below 0 when it idles under the floor. */
static double use_now(const struct guard_state *g, const struct guard_policy *p, const struct sample *s) {
    int watts = sample_has(s, METRIC_POWER_INSTANT) ? METRIC_POWER_INSTANT : METRIC_POWER;
    double held = g->u;
    if (p->control == GUARD_BY_POWER && sample_has(s, watts)) return clamp(share_of(p, s->value[watts]), -1, 2);
    if (p->control != GUARD_BY_POWER && sample_has(s, METRIC_CLOCK_GRAPHICS))
        held = clamp(share_of(p, s->value[METRIC_CLOCK_GRAPHICS] * 1e-6), 0, 1);
    double busy = sample_has(s, METRIC_UTIL_GPU) ? s->value[METRIC_UTIL_GPU] : 1;
    return busy * (held + IDLE_USE) - IDLE_USE;
}

static void load_take(struct guard_state *g, const struct guard_policy *p, const struct sample *s, double dt,
                      int64_t now_ns) {
    struct guard_load *l = &g->load;
    double use = l->now = use_now(g, p, s);
    if (dt > GAP_S || !l->is_begun) {
        l->is_begun = true;
        l->smooth = l->top = l->fast = l->mid = use;
        l->slow = quick(l);
        for (int k = 0; k < GUARD_PACES; k++) l->base[k] = felt(l, k);
    }
    /* an average over a second comes late as it is */
    bool is_late = p->control == GUARD_BY_POWER && !sample_has(s, METRIC_POWER_INSTANT);
    l->smooth += (use - l->smooth) * (is_late ? 1 : share(dt, SMOOTH_S));
    l->top = fmax(l->smooth, l->top - TOP_FALL * dt);
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
    double moved = q * (warm_c - g->base); /* apart from each other they move for another reason: cooling fails */
    if (fabs(q) < GAIN_USE || dt > LEARN_S || moved < 0) return;
    g->moves += q * q * dt;
    g->moved += moved * dt;
    if (g->moves <= pace[k].weight_most) return;
    g->moved *= pace[k].weight_most / g->moves;
    g->moves = pace[k].weight_most;
}

/* An alpha-beta filter of the slow part: a sensor of whole degrees has no slope of its own. What use does to the slope is
 * known; the filter finds what else does. */
static void filter_take(struct guard_filter *f, const struct guard_load *l, double read, int64_t now_ns) {
    double dt = (double)(now_ns - f->at_ns) * 1e-9;
    if (!f->at_ns || dt > GAP_S || dt < 0) {
        f->smooth = f->trail = read;
        f->rest = read - jump_c(f) * quick(l);
        f->gain[GUARD_QUICK].base = read;
        f->gain[GUARD_SLOW].base = f->rest;
        f->drift = -climb_cs(f) * quick(l);
        dt = 0;
    }
    f->read = read;
    f->peak = dt > 0 ? fmax(read, f->peak - PEAK_FALL_CS * dt) : read;
    f->at_ns = now_ns;
    if (dt <= 0) return;
    f->smooth += (read - f->smooth) * share(dt, SMOOTH_S);
    f->trail += (f->smooth - f->trail) * share(dt, TRAIL_S);
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
    if (fabs(unsettled) > 1) error = clamp(error, -LATE_MOST_C, LATE_MOST_C);
    f->rest = ahead + alpha * error;
    f->drift += beta / dt * error;
    double swing = read - f->smooth;
    bool is_steady = !l->is_idle && fabs(l->now - l->mid) < STEADY_USE && fabs(swing) < SWING_MOST_C;
    if (is_steady) f->spread += (swing * swing - f->spread) * share(dt, SPREAD_S);
}

/* Work that comes and goes, or none. */
static bool is_patient(const struct guard_state *g) {
    return g->load.is_idle || (g->load.before_ns && g->now_ns - g->load.before_ns < WORK_NS);
}

/* How long to look at it before it is given more: longer than from one beginning to the next. */
static int64_t patience_ns(const struct guard_state *g) {
    int64_t period_ns = g->load.begun_ns - g->load.before_ns;
    if (g->load.is_idle || !g->load.before_ns || period_ns > PATIENT_NS) return PATIENT_NS;
    return period_ns * 9 / 8 > 2 * CALM_NS ? period_ns * 9 / 8 : 2 * CALM_NS;
}

/* The mean to hold, so that the swing around it stays within what is allowed. */
static double aim_c(const struct guard_filter *f, double target) {
    double swing = fmin(PEAK_SIGMAS * sqrt(fmax(f->spread - ROUNDING, 0)), SWING_MOST_C);
    return target + fmin(ALLOW_C - swing, AIM_MOST_C);
}

/* Working, but cooling already or still far from its aim: whatever was done shows, there is time to see more. */
static bool can_wait(const struct guard_state *g, const struct guard_filter *f, double target) {
    double aim = aim_c(f, target);
    if (f->smooth >= aim) return false;
    return f->smooth < f->trail - FALL_C || (!g->load.is_idle && f->smooth < aim - FAR_C);
}

/* The share of the range at which this sensor stays at its aim: if all of it is used this instant; if it goes on like this
 * for LEAD_S; and, where it is above already, by the reading itself. */
static double wanted(const struct guard_state *g, const struct guard_filter *f, double target) {
    const struct guard_load *l = &g->load;
    double jump = jump_c(f), fast_c = (1 - MID_SHARE) * jump, climb = climb_cs(f);
    double aim = aim_c(f, target);
    double want = WANT_MOST, leads[] = {0, is_patient(g) ? PATIENT_LEAD_S : LEAD_S};
    double slope = f->drift + climb * (l->base[GUARD_QUICK] - g->u);
    for (int k = 0; k < 2; k++) {
        double mid_c = MID_SHARE * jump, come = share(leads[k], MID_S);
        double room = aim - f->rest - mid_c * (1 - come) * l->mid - leads[k] * slope;
        want = fmin(want, room / (fast_c + mid_c * come + leads[k] * climb));
    }
    if (f->smooth > aim) want = fmin(want, l->top - EXCESS_GAIN * (f->smooth - aim) / fast_c);
    return want;
}

struct outlook {
    double want;             /* the share at which the worst sensor ends at its target */
    double jump_c, climb_cs; /* of that sensor */
    double hot_c;            /* the worst reading, above its target */
    enum guard_reason reason;
    bool is_blind, is_known;
    bool can_wait;
    bool is_slow; /* read so seldom that it must be far from its target */
};

static struct outlook look(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                           int64_t now_ns) {
    struct outlook o = {.want = INFINITY, .hot_c = -INFINITY, .jump_c = JUMP_FIRST_C};
    double unused = g->u - g->load.mid, fill = unused > 0 && unused < FILL_MOST ? unused : 0;
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k]) continue;
        struct guard_filter *f = &g->filter[k];
        if (sample_has(s, metric_of[k])) filter_take(f, &g->load, heat(k, s->value[metric_of[k]]), now_ns);
        o.is_blind |= now_ns - (f->at_ns ? f->at_ns : g->begun_ns) > p->grace_ns;
        if (!f->at_ns) continue;
        double want = wanted(g, f, heat(k, p->target[k])) + fill;
        o.is_known = true;
        o.hot_c = fmax(o.hot_c, f->read - heat(k, p->target[k]));
        if (!(want < o.want)) continue;
        o.want = want;
        o.jump_c = jump_c(f);
        o.climb_cs = climb_cs(f);
        o.can_wait = can_wait(g, f, heat(k, p->target[k]));
        o.reason = hot_of[k];
    }
    o.want = clamp(o.want, WANT_LEAST, WANT_MOST);
    return o;
}

/* A fresh interval. What was seen of the whole time is kept until that is over. */
static void window_begin(struct guard_window *w, bool is_over, int64_t now_ns) {
    w->sum = 0;
    w->count = 0;
    w->begun_ns = now_ns;
    if (!is_over) return;
    w->least = INFINITY;
    w->hottest = -INFINITY;
    w->is_full = false;
    w->whole_ns = now_ns;
}

static void window_take(struct guard_window *w, const struct outlook *o, bool is_full, double dt) {
    w->near += (o->want - w->near) * share(dt, NEAR_S);
    w->least = fmin(w->least, w->near);
    w->hottest = fmax(w->hottest, o->hot_c);
    w->peak = fmax(w->peak, o->hot_c);
    w->is_full |= is_full;
    w->sum += o->want;
    w->count++;
}

/* Takes share u from now on; the caller tells the limit. */
static struct guard_action change(struct guard_state *g, double u, enum guard_reason why, int64_t now_ns) {
    struct guard_action a = {.verb = u < g->u ? GUARD_LOWER : u > g->u ? GUARD_RAISE : GUARD_HOLD, .reason = why};
    if (a.verb == GUARD_HOLD) return a;
    g->u = u;
    g->change_ns = now_ns;
    window_begin(&g->window, true, now_ns);
    return a;
}

/* How far to go by what the readings of the whole time say, for a card that was at its limit: they know its swing and its
 * rhythm better than any outlook. */
static double way_by_readings(const struct guard_window *w, const struct outlook *o, bool patient) {
    double room_c = patient ? ALLOW_C - w->hottest : w->hottest < 0 ? NUDGE_C - w->hottest / 2 : 0;
    return room_c / (o->jump_c + REACH_S * o->climb_cs);
}

/* Nothing hurries: once an interval, part of the way to what was wanted on the whole. Work that comes and goes is given
 * more only after it was seen a while. */
static struct guard_action calm_change(struct guard_state *g, const struct outlook *o, int64_t now_ns) {
    struct guard_window *w = &g->window;
    enum guard_reason why = g->u < 1 ? o->reason : GUARD_CALM;
    if (now_ns - w->begun_ns < CALM_NS) return change(g, g->u, why, now_ns);
    bool patient = is_patient(g), is_over = now_ns - w->whole_ns >= (patient ? patience_ns(g) : STEADY_NS);
    double told = is_over && w->is_full ? way_by_readings(w, o, patient) : 0;
    double steady = w->sum / w->count - g->u, down = patient ? w->least - g->u : steady;
    double way = patient ? (!is_over ? 0 : w->is_full ? told : down) : steady;
    double rise = clamp(w->peak - w->crest, 0, TREND_MOST_C);
    bool is_quick = patient && g->load.begun_ns - g->load.before_ns < CALM_NS;
    double hot = is_quick && rise >= 1 ? fmax(w->hottest, w->peak + rise) : w->hottest;
    w->crest = fmax(w->peak, w->crest - CREST_FALL_C);
    w->peak = -INFINITY;
    if (hot >= 1) down = fmin(down, (0.5 - hot) / o->jump_c);
    if (o->is_slow || (patient && w->is_full && hot < 0)) down = 0; /* it went well */
    window_begin(w, is_over, now_ns);

    if (down * o->jump_c < -LOWER_BAND_C) return change(g, fmax(g->u + LOWER_GAIN * down, 0), o->reason, now_ns);
    way = way * o->jump_c < RAISE_BAND_C ? 0 : (patient ? PATIENT_GAIN : RAISE_GAIN) * way;
    if (!patient) way = fmax(way, told);
    if (g->u >= 1 || way <= 0) return change(g, g->u, why, now_ns);
    double u = g->u + fmin(way, RAISE_MOST);
    return change(g, u > NEARLY_ALL ? 1 : u, GUARD_COOLED, now_ns);
}

/* Floor or baseline are not what they were: the limit in force stays what it is, as far as it may. */
static void rebase(struct guard_state *g, const struct guard_policy *p) {
    struct guard_policy old = *p;
    old.floor = g->floor;
    old.baseline = g->baseline;
    double scale = (heat_of(p, p->baseline) - heat_of(p, p->floor)) / (heat_of(p, g->baseline) - heat_of(p, g->floor));
    if (g->u < 1) g->u = clamp(share_of(p, limit_of(&old, g->u)), 0, 1);
    for (int k = 0; k < GUARD_SENSORS * GUARD_PACES && isfinite(scale) && scale > 0; k++)
        g->filter[k / GUARD_PACES].gain[k % GUARD_PACES].moved *= scale;
    g->floor = p->floor;
    g->baseline = p->baseline;
}

void guard_begin(struct guard_state *g, const struct guard_policy *p, double limit, int64_t now_ns) {
    *g = (struct guard_state){.u = clamp(share_of(p, limit), 0, 1),
                              .limit = limit,
                              .floor = p->floor,
                              .baseline = p->baseline,
                              .begun_ns = now_ns,
                              .now_ns = now_ns,
                              .is_begun = true};
    g->change_ns = now_ns - URGENT_NS;
    g->window.near = 1;
    g->window.peak = g->window.crest = -INFINITY;
    window_begin(&g->window, true, now_ns);
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
    if (now_ns < g->now_ns)
        guard_begin(g, p, limit_of(p, g->u), now_ns); /* a clock that went back: nothing known counts */
    if (p->control == GUARD_BY_NONE || !(p->baseline > p->floor))
        return (struct guard_action){.verb = GUARD_HOLD, .limit = p->baseline};
    if (p->floor != g->floor || p->baseline != g->baseline) rebase(g, p);
    double dt = fmax((double)(now_ns - g->now_ns) * 1e-9, 0);
    g->now_ns = now_ns;
    load_take(g, p, s, dt, now_ns);
    struct outlook o = look(g, p, s, now_ns);
    if (dt > LEARN_S) g->slow_ns = now_ns;
    o.is_slow = g->load.is_idle && now_ns - g->slow_ns < SLOW_NS;
    window_take(&g->window, &o, g->load.fast > g->u - FULL_USE, dt);

    struct guard_action a;
    if (o.is_blind)
        a = change(g, 0, GUARD_BLIND, now_ns);
    else if (!o.is_known)
        a = change(g, g->u, GUARD_CALM, now_ns);
    else if ((g->u - o.want) * o.jump_c > (o.is_slow ? SLOW_URGENT_C : URGENT_C) && !o.can_wait &&
             now_ns - g->change_ns >= URGENT_NS)
        a = change(g, fmax(o.want, 0), o.reason, now_ns);
    else
        a = calm_change(g, &o, now_ns);
    a.limit = limit_of(p, g->u);
    if (a.limit != g->limit) a.verb = a.limit < g->limit ? GUARD_LOWER : GUARD_RAISE;
    g->limit = a.limit;
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
