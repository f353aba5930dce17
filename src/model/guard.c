#include "model/guard.h"

#include <math.h>

#define BIAS_C 0.5   /* aim so far below the target: readings are whole degrees */
#define NOISE_S 60.0 /* and by how far readings swing: their peaks over about this time */
#define NOISE_MOST_C 4.0
#define NOISE_SHARE 0.8
#define LEAD_S 4.0
#define FILTER_S 2.0 /* time constant of the smoothing */
#define BAND 0.012   /* changes smaller than this are not worth a call */
#define URGENT_BAND 0.025
#define URGENT_NS 300000000ll
#define CALM_NS 10000000000ll
#define WINDOW_MOST 120      /* wishes remembered: 12 s at 10 Hz */
#define RAISE_MOST 0.15      /* in one go */
#define JUMP_NS 1500000000ll /* what the die does within this is a jump */
#define JUMP_FIRST_C 25.0    /* before anything is learnt */
#define JUMP_LEAST_C 12.0
#define JUMP_MOST_C 60.0
#define IDLE_USE 0.4 /* a card that idles lies so far below the floor, where power is not known */

static const int metric_of[GUARD_SENSORS] = {METRIC_TEMP_CORE, METRIC_TEMP_MEMORY, METRIC_TEMP_MARGIN};
static const enum guard_reason hot_of[GUARD_SENSORS] = {GUARD_HOT_CORE, GUARD_HOT_MEMORY, GUARD_LOW_MARGIN};

/* Hotter is more for every sensor: a margin is turned round. */
static double heat(int sensor, double v) { return sensor == GUARD_MARGIN ? -v : v; }

double guard_headroom_c(const struct guard_state *g, const struct guard_policy *p) {
    double worst = NAN;
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k] || !g->filter[k].at_ns) continue;
        double h = heat(k, p->target[k]) - g->filter[k].read;
        if (isnan(worst) || h < worst) worst = h;
    }
    return worst;
}

/* How much of the limit's range the card uses now; below 0 when it idles under the floor. */
static double use_now(const struct guard_state *g, const struct guard_policy *p, const struct sample *s) {
    double busy = sample_has(s, METRIC_UTIL_GPU) ? s->value[METRIC_UTIL_GPU] : 1;
    int watts = sample_has(s, METRIC_POWER_INSTANT) ? METRIC_POWER_INSTANT : METRIC_POWER;
    if (p->control == GUARD_BY_POWER && sample_has(s, watts))
        return (s->value[watts] - p->floor) / (p->baseline - p->floor);
    return busy * (g->u + IDLE_USE) - IDLE_USE;
}

/* An alpha-beta filter of the slow part: a sensor of whole degrees has no slope of its own. */
static void filter_take(struct guard_filter *f, double read, double quick, int64_t now_ns) {
    double dt = (double)(now_ns - f->at_ns) * 1e-9, rest = read - quick;
    f->read = read;
    if (!f->at_ns || dt > 10) {
        *f = (struct guard_filter){.rest = rest, .read = read, .at_ns = now_ns, .noise = f->noise};
        return;
    }
    if (dt <= 0) return;
    double alpha = 1 - exp(-dt / FILTER_S), beta = alpha * alpha / (2 - alpha);
    double ahead = f->rest + f->slope * dt, error = rest - ahead;
    f->rest = ahead + alpha * error;
    f->slope += beta / dt * error;
    f->noise *= exp(-dt / NOISE_S);
    f->at_ns = now_ns;
}

/* The die also swings with the power of one and the same work: peaks above the mean that the target must hold, too. */
static void noise_take(struct guard_state *g, struct guard_filter *f, double use_mean) {
    double above = f->read - (f->rest + g->jump_c * use_mean);
    if (above > f->noise && fabs(f->slope) < 0.5) f->noise = fmin(above, NOISE_MOST_C);
}

/* Looks back over the last rounds for a large change of use and what the temperature did with it. */
static void jump_learn(struct guard_state *g, double use, double hot, int64_t now_ns) {
    for (unsigned k = 0; k < GUARD_PAST; k++) {
        if (!g->past_ns[k] || now_ns - g->past_ns[k] > JUMP_NS) continue;
        double du = use - g->use[k], dh = hot - g->hot[k];
        if (du < 0.4 || dh / du <= g->jump_c) continue;
        double jump = fmin(dh / du, JUMP_MOST_C);
        for (int f = 0; f < GUARD_SENSORS; f++)
            g->filter[f].rest -= (jump - g->jump_c) * use; /* what is known stays known */
        g->jump_c = jump;
    }
    g->use[g->past] = use;
    g->hot[g->past] = hot;
    g->past_ns[g->past] = now_ns;
    g->past = (g->past + 1) % GUARD_PAST;
}

static double use_mean(const struct guard_state *g) {
    double sum = 0;
    int n = 0;
    for (unsigned k = 0; k < GUARD_PAST; k++)
        if (g->past_ns[k]) {
            sum += g->use[k];
            n++;
        }
    return n ? sum / n : 0;
}

struct outlook {
    double want; /* the share at which the worst sensor ends at its target */
    double hot;  /* the worst reading, relative to its target */
    enum guard_reason reason;
    bool is_blind, is_known;
};

static struct outlook look(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                           int64_t now_ns) {
    struct outlook o = {.want = INFINITY, .hot = -INFINITY};
    double use = use_now(g, p, s), mean = use_mean(g);
    for (int k = 0; k < GUARD_SENSORS; k++) {
        if (!p->uses[k]) continue;
        struct guard_filter *f = &g->filter[k];
        if (sample_has(s, metric_of[k])) {
            filter_take(f, heat(k, s->value[metric_of[k]]), g->jump_c * use, now_ns);
            noise_take(g, f, mean);
        }
        o.is_blind |= now_ns - (f->at_ns ? f->at_ns : g->begun_ns) > p->grace_ns;
        if (!f->at_ns) continue;
        double aim = heat(k, p->target[k]) - BIAS_C - NOISE_SHARE * f->noise;
        double want = (aim - f->rest - LEAD_S * f->slope) / g->jump_c;
        o.is_known = true;
        o.hot = fmax(o.hot, f->read - heat(k, p->target[k]));
        if (want >= o.want) continue;
        o.want = want;
        o.reason = hot_of[k];
    }
    if (o.is_known) jump_learn(g, use, o.hot, now_ns);
    o.want = o.want < 0 ? 0 : o.want > 1 ? 1 : o.want;
    return o;
}

static struct guard_action change(struct guard_state *g, const struct guard_policy *p, double u, enum guard_reason why,
                                  int64_t now_ns) {
    struct guard_action a = {.verb = u < g->u ? GUARD_LOWER : u > g->u ? GUARD_RAISE : GUARD_HOLD, .reason = why};
    if (a.verb != GUARD_HOLD) {
        g->change_ns = now_ns;
        g->want_count = 0;
        g->u = u;
    }
    a.limit = p->floor + u * (p->baseline - p->floor);
    return a;
}

/* What was wanted since a while: a calm change goes by that and not by the swing of one reading. */
static void window_take(struct guard_state *g, double want) {
    if (g->want_count == 0 || g->want_count >= WINDOW_MOST) {
        g->want_sum = g->want_count ? g->want_sum / 2 : 0;
        g->want_count /= 2;
        g->want_least = want;
    }
    if (want < g->want_least) g->want_least = want;
    g->want_sum += want;
    g->want_count++;
}

struct guard_action guard_step(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                               int64_t now_ns) {
    if (!g->is_begun) {
        *g = (struct guard_state){.u = 1, .jump_c = JUMP_FIRST_C, .begun_ns = now_ns, .is_begun = true};
        g->change_ns = now_ns - CALM_NS;
    }
    struct outlook o = look(g, p, s, now_ns);
    if (p->control == GUARD_BY_NONE) return (struct guard_action){.verb = GUARD_HOLD, .limit = p->baseline};
    if (o.is_blind) return change(g, p, 0, GUARD_BLIND, now_ns);
    enum guard_reason why = g->u < 1 ? o.reason : GUARD_CALM;
    if (!o.is_known) return change(g, p, g->u, why, now_ns);
    window_take(g, o.want);

    int64_t since_ns = now_ns - g->change_ns;
    if (o.want < g->u - URGENT_BAND && since_ns >= URGENT_NS) return change(g, p, o.want, o.reason, now_ns);
    if (since_ns < CALM_NS) return change(g, p, g->u, why, now_ns);
    double mean = g->want_sum / g->want_count;
    if (mean < g->u - BAND) return change(g, p, mean, o.reason, now_ns);
    if (g->want_least > g->u + BAND || (g->want_least >= 1 && g->u < 1))
        return change(g, p, fmin(g->want_least, g->u + RAISE_MOST), GUARD_COOLED, now_ns);
    return change(g, p, g->u, why, now_ns);
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
