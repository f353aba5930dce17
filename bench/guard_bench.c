/* The guard against the simulated plants: each scenario under the guard, under the simple rule, under nothing but the
 * card's own slowdown, and under the best constant limit that meets the target, found by search. Same seeds, same load.
 * Prints a table, charts, and one line of JSON; exits 1 when a target is missed. For script/bench guard. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "model/guard.h"
#include "sim/plant.h"

#define DT 0.02        /* of the plant */
#define CARDS_MAX 8
#define TRACE_MAX 4000
#define NS 1e9

/* ---- scenarios ---- */

struct world { /* what a scenario does to a card at a moment */
    double demand, cooling, air_c;
    bool fans_dead, blind;
};

struct scenario {
    const char *name, *model;
    double seconds, target_c;
    int cards;
    void (*at)(double t, struct world *w);
    double overshoot_c; /* what may be exceeded */
    bool is_blind;      /* judged by the floor, not by work */
};

static void step_load(double t, struct world *w) {
    w->cooling = 2.4;
    w->demand = t < 10 ? 0 : 1;
}
static void cool_step(double t, struct world *w) { w->demand = t < 10 ? 0 : 1; }
static void half_cooling(double t, struct world *w) {
    w->demand = t < 10 ? 0 : 1;
    w->cooling = t < 200 ? 1.2 : 2.6;
}
static void warm_air(double t, struct world *w) {
    w->demand = t < 10 ? 0 : 1;
    w->cooling = 1.6;
    w->air_c = 27 + 15 * fmin(1, fmax(0, (t - 200) / 60));
}
static void fan_stops(double t, struct world *w) {
    w->demand = t < 10 ? 0 : 1;
    w->fans_dead = t >= 200;
}
static void square_load(double t, struct world *w) {
    w->cooling = 2.4;
    w->demand = fmod(t, 40) < 20 ? 1 : 0;
}
static void hot_air_shared(double t, struct world *w) {
    w->cooling = 1.4;
    w->demand = t < 10 ? 0 : 1;
}
static void blind_load(double t, struct world *w) {
    w->demand = t < 10 ? 0 : 1;
    w->blind = t >= 100;
}
static void small_card(double t, struct world *w) {
    w->demand = t < 10 ? 0 : 1;
    w->cooling = 2.2;
}

/* clang-format off */
static const struct scenario scenarios[] = {
    {"step, cool card",          "h200",    600, 84, 1, cool_step,      1, false},
    {"step, weak cooling",       "h200",    600, 84, 1, step_load,      1, false},
    {"cooling loses half",       "h200",    600, 84, 1, half_cooling,   2, false},
    {"air 15 degrees warmer",    "h200",    600, 84, 1, warm_air,       1, false},
    {"fan stops",                "rtx4090", 600, 80, 1, fan_stops,      2, false},
    {"square-wave load",         "h200",    600, 84, 1, square_load,    1, false},
    {"eight share hot air",      "h200",    600, 84, 8, hot_air_shared, 1, false},
    {"sensor lost under load",   "h200",    200, 84, 1, blind_load,     1, true},
    {"clocks only",              "t1000",   600, 80, 1, small_card,     1, false},
    {"application clocks only",  "p100",    600, 80, 1, small_card,     1, false},
};
/* clang-format on */

/* ---- a rig: cards in their world, and who limits them ---- */

enum who { BY_GUARD, BY_RULE, BY_NOBODY, BY_CONSTANT };

struct rig {
    const struct scenario *sc;
    struct shm_card card[CARDS_MAX];
    struct plant plant[CARDS_MAX];
    struct guard_state guard[CARDS_MAX];
    struct guard_policy policy;
    enum who who;
    double constant, limit[CARDS_MAX], reference_mhz;
};

struct outcome {
    double peak_c, work, settled_s, changes_per_min, floor_s, throttled_s;
    float temp[TRACE_MAX], limit[TRACE_MAX];
    int points;
};

static enum guard_control control_of(const struct shm_card *c) {
    if (c->abilities & CAN(POWER_SET)) return GUARD_BY_POWER;
    if (c->abilities & CAN(LOCKED_CLOCKS)) return GUARD_BY_CLOCKS;
    if (c->abilities & CAN(APP_CLOCKS)) return GUARD_BY_APP_CLOCKS;
    return GUARD_BY_NONE;
}

static void rig_init(struct rig *r, const struct scenario *sc, enum who who, double constant) {
    const struct model *m = model_by_key(sc->model);
    memset(r, 0, sizeof *r);
    r->sc = sc;
    r->who = who;
    r->constant = constant;
    for (int i = 0; i < sc->cards; i++) {
        model_card(m, 7, (uint32_t)i, false, &r->card[i]);
        plant_init(&r->plant[i], m, &r->card[i], (uint64_t)i + 1, 27);
    }
    struct guard_policy *p = &r->policy;
    p->control = control_of(&r->card[0]);
    p->target[GUARD_CORE] = sc->target_c;
    p->target[GUARD_MEMORY] = 95;
    p->uses[GUARD_CORE] = true;
    p->uses[GUARD_MEMORY] = r->card[0].abilities & CAN(MEM_TEMP);
    p->grace_ns = 2000000000ll;
    p->floor = p->control == GUARD_BY_POWER ? m->limit_min_w : m->clocks[0].min_mhz;
    p->baseline = p->control == GUARD_BY_POWER ? m->limit_default_w : m->clocks[0].max_mhz;
    for (int i = 0; i < sc->cards; i++) r->limit[i] = p->baseline;
    r->reference_mhz = plant_reference_mhz(&r->plant[0], KIND_MATMUL);
}

static void limit_set(struct rig *r, int i, double limit) {
    struct plant_settings *s = &r->plant[i].set;
    r->limit[i] = limit;
    uint32_t mhz = (uint32_t)limit;
    if (r->policy.control == GUARD_BY_POWER) s->limit_w = limit;
    if (r->policy.control == GUARD_BY_CLOCKS) {
        s->lock_gr_min_mhz = (uint32_t)r->policy.floor;
        s->lock_gr_max_mhz = mhz;
    }
    if (r->policy.control == GUARD_BY_APP_CLOCKS) s->app_gr_mhz = limit >= r->policy.baseline ? 0 : mhz;
}

static void readings(const struct rig *r, int i, const struct world *w, struct sample *s) {
    const struct plant *p = &r->plant[i];
    memset(s, 0, sizeof *s);
    if (!w->blind) sample_put(s, METRIC_TEMP_CORE, p->sensor[0]);
    if (!w->blind) sample_put(s, METRIC_TEMP_MEMORY, p->sensor[1]);
    sample_put(s, METRIC_POWER, plant_average(p, 1).energy_j);
    sample_put(s, METRIC_POWER_INSTANT, plant_power_w(p));
    sample_put(s, METRIC_UTIL_GPU, fmin(1, plant_average(p, 0.5).busy_s));
    sample_put(s, METRIC_REASON_POWER_CAP, p->reasons & REASON_POWER ? 1 : 0);
}

/* The rule that scripts use: above the threshold the lowest limit, below it the old one. */
static double rule_limit(const struct rig *r, int i) {
    return r->plant[i].sensor[0] > r->sc->target_c ? r->policy.floor : r->policy.baseline;
}

static bool control(struct rig *r, int i, const struct world *w, double t) {
    double before = r->limit[i];
    struct sample s;
    readings(r, i, w, &s);
    switch (r->who) {
    case BY_GUARD: {
        struct guard_action a = guard_step(&r->guard[i], &r->policy, &s, (int64_t)((t + 1) * NS));
        if (a.verb != GUARD_HOLD) limit_set(r, i, a.limit);
        break;
    }
    case BY_RULE: limit_set(r, i, rule_limit(r, i)); break;
    case BY_CONSTANT: limit_set(r, i, r->constant); break;
    case BY_NOBODY: break;
    }
    return r->limit[i] != before;
}

static void step(struct rig *r, const struct world *w, struct outcome *o) {
    double all_w = 0;
    for (int i = 0; i < r->sc->cards; i++) all_w += plant_power_w(&r->plant[i]);
    for (int i = 0; i < r->sc->cards; i++) {
        struct plant *p = &r->plant[i];
        struct load l = {.contexts = 1};
        double others_w = all_w - plant_power_w(p);
        if (w->demand > 0) load_add(&l, KIND_MATMUL, w->demand);
        p->world.air_c = w->air_c + others_w * 0.003;
        p->world.cooling = w->cooling;
        p->world.fans_dead = w->fans_dead ? ~0u : 0;
        plant_step(p, &l, DT);
        if (plant_core_c(p) > o->peak_c) o->peak_c = plant_core_c(p);
        o->work += w->demand * plant_speed(p, KIND_MATMUL, r->reference_mhz) * DT;
    }
}

static void run(const struct scenario *sc, enum who who, double constant, struct outcome *o) {
    static struct rig r;
    rig_init(&r, sc, who, constant);
    memset(o, 0, sizeof *o);
    o->floor_s = NAN;
    double last_change = 0, blind_at = NAN;
    int late_changes = 0;
    const int per_control = (int)lround(0.1 / DT), per_trace = (int)ceil(sc->seconds / DT / (TRACE_MAX - 1));
    for (int n = 0; n * DT < sc->seconds; n++) {
        double t = n * DT;
        struct world w = {.cooling = 1, .air_c = 27};
        sc->at(t, &w);
        if (w.blind && isnan(blind_at)) blind_at = t;
        for (int i = 0; n % per_control == 0 && i < sc->cards; i++) {
            if (!control(&r, i, &w, t)) continue;
            last_change = t;
            if (t > sc->seconds - 240) late_changes++;
        }
        if (!isnan(blind_at) && isnan(o->floor_s) && r.limit[0] <= r.policy.floor) o->floor_s = t - blind_at;
        step(&r, &w, o);
        if (r.limit[0] < r.policy.baseline) o->throttled_s += DT;
        if (n % per_trace == 0 && o->points < TRACE_MAX) {
            o->temp[o->points] = (float)plant_core_c(&r.plant[0]);
            o->limit[o->points++] = (float)r.limit[0];
        }
    }
    o->settled_s = last_change;
    o->changes_per_min = late_changes / 4.0 / sc->cards;
}

/* The highest constant limit under which the target is met. */
static double best_constant(const struct scenario *sc, struct outcome *o) {
    static struct rig r;
    rig_init(&r, sc, BY_CONSTANT, 0);
    double low = r.policy.floor, high = r.policy.baseline;
    run(sc, BY_CONSTANT, high, o);
    if (o->peak_c <= sc->target_c) return high;
    for (int k = 0; k < 9; k++) {
        double middle = (low + high) / 2;
        run(sc, BY_CONSTANT, middle, o);
        if (o->peak_c <= sc->target_c)
            low = middle;
        else
            high = middle;
    }
    run(sc, BY_CONSTANT, low, o);
    return low;
}

int main(int argc, char **argv) {
    static struct outcome guard, rule, none, constant;
    printf("%-26s %8s %8s %8s %8s %8s %8s %8s\n", "", "guard", "rule", "nobody", "settled", "chg/min", "work", "vs none");
    for (size_t k = 0; k < ARRAY_LEN(scenarios); k++) {
        const struct scenario *sc = &scenarios[k];
        if (argc > 1 && !strstr(sc->name, argv[1])) continue;
        run(sc, BY_GUARD, 0, &guard);
        run(sc, BY_RULE, 0, &rule);
        run(sc, BY_NOBODY, 0, &none);
        double limit = best_constant(sc, &constant);
        printf("%-26s %+8.2f %+8.2f %+8.2f %7.0fs %8.1f %7.1f%% %7.2f%%  rule %.1f%% best %.0f floor %.1f\n", sc->name, guard.peak_c - sc->target_c,
               rule.peak_c - sc->target_c, none.peak_c - sc->target_c, guard.settled_s, guard.changes_per_min,
               100 * guard.work / constant.work, 100 * guard.work / none.work, 100 * rule.work / constant.work, limit, guard.floor_s);
        if (argc > 2)
            for (int i = 0; i < guard.points; i += atoi(argv[2])) printf("   %5.1fs %6.2f C %7.1f\n", i * sc->seconds / guard.points, guard.temp[i], guard.limit[i]);
    }
    return 0;
}
