#include "model/guard.h"

#include <math.h>
#include <stddef.h>

#include "model/guard_filter.h"

/* Numbers without a measured origin were found on the plants of bench/guard and on random cards of seeds 5001-8000, of
 * which 27 miss a target. On 2000 cards that nobody had looked at (70001-72000) 38 do: 23 pass it by up to 0.7 C more than
 * allowed, the others settle late or lose a little work. Whoever changes a number chooses and judges on different seeds, too.
 *
 * Where to aim. Readings are whole degrees, and the die swings around its mean with the power of one and the same work:
 * the peaks of that swing may pass the target by less than a degree. */
#define ALLOW_C 0.6
#define EASE_C 0.65 /* more where clocks are set: coarse steps, rounded down, and power follows them by what runs */
#define AIM_MOST_C (-0.903)   /* above the target, for a card whose readings stand still ... */
#define AIM_SHAKE 1.7         /* ... and so much lower for each degree that they swing ... */
#define AIM_SHAKE_FREE_C 0.15 /* ... beyond this */

/* Power and temperature, made alike before they are compared. */
#define LATE_S 0.624        /* power that changed within this time is not yet seen in the temperature */
#define CLOCK_EXPONENT 1.35 /* of heat over clock, voltage and all */
#define IDLE_USE 0.05       /* a card idles so far below the floor at least */
#define ACT_LEAST 0.02      /* a smaller range between idling and the limit is taken for this */
#define FILL_MOST 0.06      /* cards keep a little under their limit */

/* How far it looks ahead under steady work, and how sure it must be. */
#define LEAD_S 6.44
#define DRIFT_FREE_CS 0.04 /* a drift that is none: readings of a steady card seem to have it */
#define DRIFT_MORE_S 1.8   /* a drift of the base is seen this late */
#define DOUBT 0.33         /* of the standard deviation that is not counted as room ... */
#define DOUBT_FREE_C 0.374 /* ... beyond this */
#define STEADY_DOUBT 1.58  /* deviations above what it could keep up for ever that are given while it warms ... */
#define STEADY_SLACK 0.06  /* ... and this share */
#define UNDER 0.101        /* so far below that it is not lowered ... */
#define UNDER_C 0.494      /* ... unless readings are this far above the aim */
#define FAR_C 5.5          /* further from its aim nothing is urgent */
#define FIRST_LEAD_S 1.0   /* a card at its baseline is left alone if it stays below the target for this time, ... */
#define FIRST_RISE_CS 0.4  /* ... if it comes as slowly as this: air that warms, not work that begins */
#define GENTLE_C 0.3       /* up to this above the target, and as slowly, it is lowered no further than ... */
#define GENTLE 0.03        /* ... so much below what it can keep up */
#define EVER_S 1000.0
#define ATTACK_S 4.17 /* work that has just begun is taken for steady work at once */

/* What is urgent: expected beyond the aim by this. */
#define URGENT_C 0.572
#define URGENT_SHAKE 0.8 /* and this share of its swing, unless it warms */
#define WAVE_HURRY_C 1.6 /* of work that comes and goes: it was through this before */
#define WAVE_ABOVE 0.1   /* only if its limit is not this far above what it can bear on the whole */
#define URGENT_REACH_S 3.45
#define URGENT_NS 400000000ll
#define EXCESS_GAIN 1.0       /* what is above the aim is taken back so many times ... */
#define EXCESS_MOST_C (-0.45) /* the aim for this: not as low as the other, where readings stand still */
#define EXCESS_FREE_C 0.402   /* ... beyond this, which may be rounding */
#define TOP_FALL 0.1          /* a second, of the use that a late reading belongs to */
#define SLOW_URGENT_C 4.0
#define SLOW_NS 8000000000ll /* an idle card that was read seldom until now may have been seen at odd moments */

/* What is not: once in an interval, part of the way. */
#define CALM_NS 10000000000ll /* 6 a minute */
#define CALM_S 10.0
#define REACH_S 15.0       /* what a change does is counted over this time */
#define LOWER_BAND_C 0.178 /* less is not worth a change */
#define RAISE_BAND_C 1.1
#define LOWER_GAIN 0.8
#define RAISE_GAIN 0.43
#define WAVE_GAIN 0.514
#define RAISE_NEAR_C 5.12    /* up to this below its aim it is raised in one go ... */
#define RAISE_MOST 0.35      /* ... but by no more than this */
#define MUCH_C 5.0           /* so far below its aim a card was lowered too much: ... */
#define MUCH_NS 3000000000ll /* ... it is raised sooner */
#define RAISES_S 60.0
#define RAISES_MOST 1.97  /* in that time; each is followed by a lowering or two where something swings */
#define NEARLY_ALL 0.98   /* so near to the baseline it is the baseline */
#define WANT_LEAST (-0.5) /* shares wanted are counted a little beyond what can be had */
#define WANT_MOST 1.5
#define IDLE_WAIT_S 14.0 /* an idle card is looked at for so long before it is given back what it can bear */

/* Work that comes and goes. */
#define ON_ACT 0.6           /* of what the limit allows: it works ... */
#define OFF_ACT 0.4          /* ... and it pauses */
#define WAVE_MOST_S 120.0    /* it comes and goes if it began twice within this */
#define WAVE_LONGER 1.3      /* it still does if it works or pauses this many times as long as before ... */
#define WAVE_SPARE_S 5.0     /* ... and this */
#define WAVE_AIM_C (-0.4)    /* above the target, for its peaks */
#define WAVE_URGENT_C (-0.3) /* the same for what is urgent */
#define WAVE_LEAD_S 1.21
#define CRESTS_LEAST 2     /* before that many were seen its terms count */
#define CREST_ROUGH 1.5    /* deviations of its crests that are left below the target, ... */
#define CREST_BAND_C 0.6   /* ... which they may be above that */
#define CREST_AHEAD_S 6.0  /* crests that rise are expected to go on for so long, ... */
#define CREST_RAISE_S 7.0  /* ... and for so long before more is given */
#define CREST_AGAIN_S 3.0  /* how long a crest above the target is waited for to go away */
#define CREST_OVER_C 0.5   /* what rounding may be */
#define CREST_LOW_C (-0.8) /* of slower work: so low nothing is urgent, whatever its terms say */
#define MARK_S 17.0        /* beginnings closer than this tell too little of where the slow part goes */

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
static double use_now(const struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                      bool is_seldom) {
    bool is_mean = is_seldom && sample_has(s, METRIC_POWER); /* a moment says little of a second */
    int watts = sample_has(s, METRIC_POWER_INSTANT) && !is_mean ? METRIC_POWER_INSTANT : METRIC_POWER;
    double held = g->u;
    if (p->control == GUARD_BY_POWER && sample_has(s, watts)) return clamp(share_of(p, s->value[watts]), -1, 2);
    if (p->control != GUARD_BY_POWER && sample_has(s, METRIC_CLOCK_GRAPHICS))
        held = clamp(share_of(p, s->value[METRIC_CLOCK_GRAPHICS] * 1e-6), 0, 1);
    double busy = sample_has(s, METRIC_UTIL_GPU) ? s->value[METRIC_UTIL_GPU] : 1;
    double idle =
        heat_of(p, p->floor) / (heat_of(p, p->baseline) - heat_of(p, p->floor)); /* below the floor: no clock */
    return busy * (held + idle) - idle;
}

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

static void work_begins(struct guard_state *g, int64_t now_ns) {
    struct guard_load *l = &g->load;
    l->period_s = l->on_ns ? seconds(now_ns - l->on_ns) : 0;
    l->off_s = l->off_ns ? seconds(now_ns - l->off_ns) : 0;
    if (!l->mark_ns || seconds(now_ns - l->mark_ns) >= MARK_S) {
        l->gap_s = l->mark_ns ? seconds(now_ns - l->mark_ns) : 0;
        l->before = l->mark;
        l->mark = l->act;
        l->mark_ns = now_ns;
    }
    l->on_ns = now_ns;
    l->is_on = true;
    l->cycle[1] = l->cycle[0];
    l->cycle[0] = (struct guard_cycle){.begin = l->act, .top = l->act};
    for (int k = 0; k < GUARD_SENSORS; k++) filter_wave(&g->filter[k], l->period_s < WAVE_MOST_S ? l->period_s : 0);
}

static void load_take(struct guard_state *g, const struct guard_policy *p, const struct sample *s, double dt,
                      int64_t now_ns) {
    struct guard_load *l = &g->load;
    double use = l->now = use_now(g, p, s, dt > GUARD_LEARN_S);
    if (dt > GUARD_GAP_S || !l->is_begun) {
        *l = (struct guard_load){.is_begun = true, .idle = fmin(-IDLE_USE, use), .now = use};
        l->smooth = l->top = l->late = use;
        heat_use_set(&l->use, use);
    }
    /* an average over a second comes late as it is */
    l->is_late = p->control == GUARD_BY_POWER && !sample_has(s, METRIC_POWER_INSTANT);
    l->smooth += (use - l->smooth) * (l->is_late ? 1 : share(dt, GUARD_SMOOTH_S));
    l->idle = fmin(l->idle, l->smooth);
    l->top = fmax(l->smooth, l->top - TOP_FALL * dt);
    heat_use_take(&l->use, l->smooth, dt);
    l->late += (l->use.fast - l->late) * share(dt, LATE_S);
    heat_use_take(&l->act, clamp((l->smooth - l->idle) / fmax(g->u - l->idle, ACT_LEAST), 0, 1), dt);
    heat_use_top(&l->cycle[0].top, &l->act);
    double act = (use - l->idle) / fmax(g->u - l->idle, ACT_LEAST);
    if (!l->is_on && act > ON_ACT) work_begins(g, now_ns);
    if (l->is_on && act < OFF_ACT) {
        l->is_on = false;
        l->off_ns = now_ns;
        l->on_s = seconds(now_ns - l->on_ns);
    }
}

/* Work that comes and goes is expected to go on doing so, until it stays, or stays away. */
static enum guard_habit habit_of(const struct guard_load *l, int64_t now_ns) {
    bool is_known = l->period_s > 0 && l->period_s < WAVE_MOST_S && l->on_s > 0;
    if (l->is_on) {
        bool is_usual = seconds(now_ns - l->on_ns) < WAVE_LONGER * l->on_s + WAVE_SPARE_S;
        return is_known && is_usual ? GUARD_WAVES : GUARD_STEADY;
    }
    return is_known && seconds(now_ns - l->off_ns) < WAVE_LONGER * l->off_s + WAVE_SPARE_S ? GUARD_WAVES : GUARD_IDLE;
}

/* The mean to hold, so that the swing around it stays within what is allowed. */
static double aim_c(const struct guard_filter *f, double target, double ease_c) {
    double most = AIM_MOST_C - AIM_SHAKE * fmax(filter_shake_c(f) - AIM_SHAKE_FREE_C, 0);
    return target + fmin(ALLOW_C + ease_c - filter_swing_c(f), most);
}

struct outset { /* what an outlook starts from */
    struct heat_ahead now, first, then, ever;
    double level, top; /* of what the limit allows, used on the mean and at most */
};

/* How fast the base drifts, in degrees a second, as far as that is sure. */
static double drift_of(const struct heat_guess *q) {
    return q->x[HEAT_DRIFT] - clamp(q->x[HEAT_DRIFT], -DRIFT_FREE_CS, DRIFT_FREE_CS);
}

struct line { /* degrees as a line over the share in force */
    double at0, slope;
};

/* What the sensor will show in a while, if the card works as much as `level` says and at most as `top` does. */
static struct line ahead(const struct guard_state *g, const struct heat_guess *q, int i, const struct heat_ahead *a,
                         double top, double level) {
    const struct guard_load *l = &g->load;
    double mid = q->x[HEAT_MID], slow = q->x[HEAT_SLOW], come = mid * a->mid + slow * a->slow[i];
    double at0 = q->x[HEAT_BASE] + a->drift * drift_of(q);
    at0 += mid * (1 - a->mid) * l->use.mid + slow * (1 - a->slow[i]) * l->use.slow[i];
    at0 += (come * (1 - level) + q->x[HEAT_FAST] * (1 - top)) * l->idle;
    return (struct line){at0, q->x[HEAT_FAST] * top + come * level};
}

/* How far that may be off, in degrees. */
static double ahead_off(const struct guard_state *g, const struct heat_guess *q, int i, const struct heat_ahead *a) {
    const struct heat_use *u = &g->load.use;
    double mid = u->mid + (g->u - u->mid) * a->mid, slow = u->slow[i] + (g->u - u->slow[i]) * a->slow[i];
    return sqrt(heat_variance(q, a->drift, g->u, mid, slow));
}

/* The share at which the sensor is at its aim then. */
static double wanted_ahead(const struct guard_state *g, const struct heat_guess *q, int i, double aim,
                           const struct heat_ahead *a, double top, double level) {
    struct line c = ahead(g, q, i, a, top, level);
    double doubt = DOUBT * fmax(ahead_off(g, q, i, a) - DOUBT_FREE_C, 0);
    double late = DRIFT_MORE_S * fmax(drift_of(q), 0); /* it is seen late */
    return (aim - doubt - late - c.at0) / c.slope;
}

/* It comes slowly, and will not be above this in seconds. */
static bool is_slow_below(const struct guard_state *g, const struct heat_guess *q, int i, const struct outset *s,
                          double most) {
    struct line c = ahead(g, q, i, &s->now, 1, s->level), d = ahead(g, q, i, &s->first, 1, s->level);
    double now_c = c.at0 + c.slope * g->u, then_c = d.at0 + d.slope * g->u;
    return then_c < most && then_c - now_c < FIRST_RISE_CS * FIRST_LEAD_S;
}

/* The share that can be kept up for ever, and how far that may be off. */
static double wanted_steady(const struct guard_state *g, const struct heat_guess *q, const struct outset *s, double aim,
                            double *ret_off) {
    double come = q->x[HEAT_MID] + q->x[HEAT_SLOW], mean = g->load.idle + s->level * (g->u - g->load.idle);
    double all = q->x[HEAT_FAST] + come * s->level;
    double room = aim - q->x[HEAT_BASE] - s->ever.drift * drift_of(q);
    *ret_off = sqrt(heat_variance(q, s->ever.drift, g->u, mean, mean)) / all;
    return (room - come * (1 - s->level) * g->load.idle) / all;
}

/* The constant share at which the peaks of work that comes and goes like this end at the aim. From one beginning to the
 * next the slow part goes part of the way to where it will be at every beginning: that is where. */
static double wanted_waves(const struct guard_state *g, const struct guard_filter *f, const struct heat_guess *q, int i,
                           double target) {
    const struct guard_load *l = &g->load;
    const struct guard_cycle *c = l->cycle;
    double keep = exp(-l->gap_s / heat_slow_s(i));
    double begin = l->mark.slow[i] + (l->mark.slow[i] - l->before.slow[i]) * keep / (1 - keep);
    if (l->gap_s <= 0) begin = l->act.slow[i]; /* not seen yet */
    double rise = fmax(c[0].top.slow[i] - c[0].begin.slow[i], c[1].top.slow[i] - c[1].begin.slow[i]);
    double fast = fmax(c[0].top.fast, c[1].top.fast), mid = fmax(c[0].top.mid, c[1].top.mid);
    double all = q->x[HEAT_FAST] + q->x[HEAT_MID] + q->x[HEAT_SLOW];
    double room = target + WAVE_AIM_C - filter_beyond_c(f) - q->x[HEAT_BASE] - all * l->idle;
    return l->idle + room / (q->x[HEAT_FAST] * fast + q->x[HEAT_MID] * mid +
                             q->x[HEAT_SLOW] * clamp(clamp(begin, 0, 1) + rise, 0.01, 1));
}

struct wish {
    double soon;  /* the share at which the aim is kept in the next seconds */
    double whole; /* and on the whole */
};

/* Work that comes and goes, by the highest readings of each time: whatever is wrong with the terms, or late, is in them.
 * Nobody is lowered for a crest that is not there, nor raised before it was seen to stay low. */
static struct wish wanted_crests(const struct guard_state *g, const struct guard_filter *f, double target) {
    const struct guard_load *l = &g->load;
    double jump = filter_reach_c(f, URGENT_REACH_S), reach = filter_reach_c(f, REACH_S);
    double aim = target - CREST_ROUGH * sqrt(f->rough), rise = fmax(f->rise, 0);
    double most = g->u < 1 ? aim + CREST_BAND_C : fmax(aim + CREST_BAND_C, target);
    double over = f->top + rise * fmin(l->period_s, CREST_AHEAD_S) - most;
    double raised = g->u + (aim - f->top - rise * CREST_RAISE_S) / reach;
    struct wish w = {g->u, fmax(raised, g->u)};
    if (over > 0) w.soon = w.whole = fmin(g->u - (over + most - aim) / reach, raised);
    bool is_due = g->change_ns < l->on_ns || seconds(g->now_ns - g->change_ns) > CREST_AGAIN_S;
    double now = l->period_s < GUARD_QUICK_S ? f->crest : f->smooth;
    if (now > target + CREST_OVER_C && is_due) w.soon = fmin(w.soon, g->u - (now - target) / jump);
    return w;
}

static struct outset outset_of(const struct guard_state *g) {
    const struct guard_load *l = &g->load;
    bool is_wave = g->habit == GUARD_WAVES, is_steady = g->habit == GUARD_STEADY;
    double on_s = l->is_on ? seconds(g->now_ns - l->on_ns) : 0;
    double lead_s = is_steady ? LEAD_S : is_wave ? clamp(l->on_s - on_s, WAVE_LEAD_S, LEAD_S) : 0;
    return (struct outset){
        .now = heat_ahead(0),
        .first = heat_ahead(FIRST_LEAD_S),
        .then = heat_ahead(lead_s),
        .ever = heat_ahead(EVER_S),
        .level = is_steady && l->is_on && on_s < ATTACK_S ? 1 : l->act.mid,
        .top = is_wave ? fmax(l->cycle[0].top.fast, l->cycle[1].top.fast) : 1,
    };
}

/* What one guess at the sensor's ways comes to. */
static struct wish wanted_by(const struct guard_state *g, const struct guard_filter *f, int i, const struct outset *s,
                             double aim, double target) {
    const struct heat_guess *q = &f->heat.guess[i];
    double soon = wanted_ahead(g, q, i, aim, &s->now, s->top, 1);
    soon = fmin(soon, wanted_ahead(g, q, i, aim, &s->then, s->top, s->level));
    if (g->habit == GUARD_STEADY) {
        double off, steady = wanted_steady(g, q, s, aim, &off);
        if (f->smooth < aim + UNDER_C) soon = fmax(soon, steady - UNDER);
        soon = fmin(soon, steady + STEADY_DOUBT * off + STEADY_SLACK);
        /* who comes slowly is not thrown back to the aim at once: it would be raised again, and come again */
        if (is_slow_below(g, q, i, s, target + GENTLE_C - filter_swing_c(f)))
            soon = fmax(soon, fmin(steady, g->u) - GENTLE);
        /* and who was never held is not held before it must be */
        if (g->u >= 1 && is_slow_below(g, q, i, s, target - filter_swing_c(f))) soon = fmax(soon, 1);
    }
    double whole = g->habit == GUARD_WAVES ? wanted_waves(g, f, q, i, target) : soon;
    if (g->habit == GUARD_WAVES && g->u >= 1 && whole >= 1) soon = fmax(soon, 1);
    return (struct wish){clamp(soon, WANT_LEAST, WANT_MOST), clamp(whole, WANT_LEAST, WANT_MOST)};
}

static struct wish wanted(const struct guard_state *g, const struct guard_filter *f, const struct outset *s,
                          double target) {
    const struct guard_load *l = &g->load;
    bool is_wave = g->habit == GUARD_WAVES;
    double aim = is_wave ? target + WAVE_URGENT_C - fmax(filter_beyond_c(f), 0) : aim_c(f, target, g->ease_c), jump = 0;
    struct wish w = {0};
    for (int i = 0; i < HEAT_GUESSES; i++) {
        const struct heat_guess *q = &f->heat.guess[i];
        struct wish one = wanted_by(g, f, i, s, aim, target);
        w.soon += q->weight * one.soon;
        w.whole += q->weight * one.whole;
        jump += q->weight * (q->x[HEAT_FAST] + q->x[HEAT_MID]);
    }
    if (g->habit == GUARD_STEADY && f->peak < aim - FAR_C) w.soon = fmax(w.soon, g->u);
    if (is_wave && !l->is_on) w.soon = fmax(w.soon, g->u); /* what was seen while it went is of no use */
    double excess = f->smooth - fmax(aim, target + fmin(ALLOW_C - filter_swing_c(f), EXCESS_MOST_C)) - EXCESS_FREE_C;
    if (excess > 0) w.soon = fmin(w.soon, (is_wave ? g->u : l->top) - EXCESS_GAIN * excess / jump);
    if (!is_wave) w.whole = w.soon;
    if (!is_wave || f->crests < CRESTS_LEAST) return w;
    struct wish c = wanted_crests(g, f, target);
    if (l->period_s < GUARD_QUICK_S) return c;
    if (fmax(f->top, f->crest) < target + CREST_LOW_C) w.soon = fmax(w.soon, c.soon);
    return w;
}

struct outlook {
    double soon, whole;           /* the shares at which the worst sensor stays at its aim, soon and on the whole */
    double shake_c;               /* of the worst sensor, the swing, unless its base warms */
    double jump_c, reach_c;       /* of that sensor, what the whole range makes within seconds, and in half a minute */
    enum guard_reason now, later; /* which it was */
    bool is_blind, is_known;
    bool is_slow; /* read so seldom that it must be far from its target */
};

static struct outlook look(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                           int64_t now_ns) {
    struct outlook o = {.soon = INFINITY, .whole = INFINITY};
    struct outset start = outset_of(g);
    double unused = g->u - g->load.use.mid, fill = unused > 0 && unused < FILL_MOST ? unused : 0;
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k]) continue;
        struct guard_filter *f = &g->filter[k];
        double read = sample_has(s, metric_of[k]) ? heat(k, s->value[metric_of[k]]) : NAN;
        if (isfinite(read)) filter_take(f, &g->load, read, now_ns);
        o.is_blind |= now_ns - (f->at_ns ? f->at_ns : g->begun_ns) > p->grace_ns;
        if (!f->at_ns) continue;
        struct wish w = wanted(g, f, &start, heat(k, p->target[k]));
        o.is_known = true;
        if (w.soon + fill < o.soon) {
            o.soon = w.soon + fill;
            o.jump_c = filter_reach_c(f, URGENT_REACH_S);
            o.shake_c = filter_is_warming(f) ? 0 : filter_shake_c(f);
            o.now = hot_of[k];
        }
        if (w.whole + fill < o.whole) {
            o.whole = w.whole + fill;
            o.reach_c = filter_reach_c(f, REACH_S);
            o.later = hot_of[k];
        }
    }
    o.soon = clamp(o.soon, WANT_LEAST, WANT_MOST);
    o.whole = clamp(o.whole, WANT_LEAST, WANT_MOST);
    return o;
}

/* A fresh interval. What was seen of the whole time is kept until that is over. */
static void window_begin(struct guard_window *w, bool is_over, int64_t now_ns) {
    w->sum = 0;
    w->count = 0;
    w->begun_ns = now_ns;
    if (is_over) w->whole_ns = now_ns;
}

/* Of work that comes and goes only the second half of each time counts: the peaks are there. */
static void window_take(struct guard_state *g, const struct outlook *o) {
    const struct guard_load *l = &g->load;
    if (g->habit == GUARD_WAVES && (!l->is_on || seconds(g->now_ns - l->on_ns) < l->on_s / 2)) return;
    g->window.sum += o->whole;
    g->window.count++;
}

/* Takes share u from now on; the caller tells the limit. */
static struct guard_action change(struct guard_state *g, double u, enum guard_reason why, int64_t now_ns) {
    struct guard_action a = {.verb = u < g->u ? GUARD_LOWER : u > g->u ? GUARD_RAISE : GUARD_HOLD, .reason = why};
    if (a.verb == GUARD_HOLD) return a;
    for (int k = 0; k < GUARD_SENSORS; k++) { /* the next crests will be as much lower or higher */
        struct guard_filter *f = &g->filter[k];
        f->top += (u - g->u) * filter_reach_c(f, URGENT_REACH_S);
    }
    g->u = u;
    g->change_ns = now_ns;
    window_begin(&g->window, true, now_ns);
    return a;
}

/* Degrees beyond the aim that cannot wait. */
static double urgent_c(const struct guard_state *g, const struct outlook *o) {
    bool is_usual = g->habit == GUARD_WAVES && g->u < o->whole + WAVE_ABOVE;
    return o->is_slow ? SLOW_URGENT_C : is_usual ? WAVE_HURRY_C : URGENT_C + URGENT_SHAKE * o->shake_c;
}

/* Nothing hurries: once an interval, part of the way to what was wanted on the whole. Work that comes and goes is given
 * more only after it was seen a while. */
static struct guard_action calm_change(struct guard_state *g, const struct outlook *o, int64_t now_ns) {
    struct guard_window *w = &g->window;
    enum guard_reason why = g->u < 1 ? o->later : GUARD_CALM;
    double most_c = w->count ? (w->sum / w->count - g->u) * o->reach_c : 0;
    bool is_much = g->habit == GUARD_STEADY && most_c > MUCH_C && (o->soon - g->u) * o->reach_c > MUCH_C;
    if (now_ns - w->begun_ns < (is_much ? MUCH_NS : CALM_NS) || !w->count) return change(g, g->u, why, now_ns);
    const struct guard_load *l = &g->load;
    bool is_wave = g->habit == GUARD_WAVES;
    double whole_s = is_wave ? fmax(1.1 * l->period_s, CALM_S) : g->habit == GUARD_IDLE ? IDLE_WAIT_S : CALM_S;
    bool is_over = is_much || seconds(now_ns - w->whole_ns) >= whole_s;
    bool is_early = g->habit == GUARD_IDLE && seconds(now_ns - l->off_ns) < IDLE_WAIT_S;
    bool is_quick = is_wave && l->period_s < GUARD_QUICK_S; /* what crests say is a mean already */
    double mean = (is_quick ? o->whole : w->sum / w->count) - g->u;
    double down = o->is_slow ? 0 : mean, way = is_over && !is_early ? mean : 0;
    window_begin(w, is_over, now_ns);
    if (down * o->reach_c < -LOWER_BAND_C) return change(g, fmax(g->u + LOWER_GAIN * down, 0), o->later, now_ns);
    double gain = g->habit == GUARD_IDLE ? 1 : is_wave ? WAVE_GAIN : RAISE_GAIN;
    way = way * o->reach_c < RAISE_BAND_C ? 0 : fmax(gain * way, way - RAISE_NEAR_C / o->reach_c);
    bool is_often = g->habit != GUARD_IDLE && !is_much && g->raises > RAISES_MOST;
    if (g->u >= 1 || way <= 0 || is_often) return change(g, g->u, why, now_ns);
    g->raises++;
    double u = g->u + (g->habit == GUARD_IDLE ? way : fmin(way, RAISE_MOST));
    return change(g, u > NEARLY_ALL ? 1 : u, GUARD_COOLED, now_ns);
}

/* Floor or baseline are not what they were: the limit in force stays what it is, as far as it may. */
static void rebase(struct guard_state *g, const struct guard_policy *p) {
    struct guard_policy old = *p;
    old.floor = g->floor;
    old.baseline = g->baseline;
    double low = heat_of(p, p->floor), old_low = heat_of(p, g->floor);
    double range = heat_of(p, p->baseline) - low, scale = range / (heat_of(p, g->baseline) - old_low);
    double shift = (old_low - low) / range;
    if (g->u < 1) g->u = clamp(share_of(p, limit_of(&old, g->u)), 0, 1);
    if (isfinite(scale) && scale > 0 && isfinite(shift)) {
        struct guard_load *l = &g->load;
        double *all[] = {&l->now, &l->smooth, &l->top, &l->late, &l->idle, &l->use.fast, &l->use.mid};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) *all[k] = *all[k] / scale + shift;
        for (int i = 0; i < HEAT_GUESSES; i++) l->use.slow[i] = l->use.slow[i] / scale + shift;
        for (int k = 0; k < GUARD_SENSORS; k++) heat_rescale(&g->filter[k].heat, scale, shift);
    }
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
    window_begin(&g->window, true, now_ns);
    for (int k = 0; k < GUARD_SENSORS; k++) {
        filter_begin(&g->filter[k]);
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
    g->ease_c = p->control == GUARD_BY_POWER ? 0 : EASE_C;
    g->raises -= g->raises * share(dt, RAISES_S);
    load_take(g, p, s, dt, now_ns);
    g->habit = habit_of(&g->load, now_ns);
    struct outlook o = look(g, p, s, now_ns);
    if (dt > GUARD_LEARN_S) g->slow_ns = now_ns;
    o.is_slow = g->habit == GUARD_IDLE && now_ns - g->slow_ns < SLOW_NS;
    window_take(g, &o);

    struct guard_action a;
    if (o.is_blind)
        a = change(g, 0, GUARD_BLIND, now_ns);
    else if (!o.is_known)
        a = change(g, g->u, GUARD_CALM, now_ns);
    else if ((g->u - o.soon) * o.jump_c > urgent_c(g, &o) && now_ns - g->change_ns >= URGENT_NS)
        a = change(g, fmax(o.soon, 0), o.now, now_ns);
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
