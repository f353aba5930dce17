#include "bench/guard_rig.h"

#include <math.h>
#include <string.h>

#include "model/budget.h"

#define DT 0.02
#define STEPS_A_SECOND 50
#define NEAR_C 20.0        /* as the sampler: 10 Hz when nearer to the target, 1 Hz otherwise, ... */
#define MARGIN_NEAR_C 8.0  /* ... and the margin stands for the hottest spot, which comes near later */
#define MARGIN_SELDOM 10   /* seconds between its readings otherwise */
#define MARGIN_C 3.0       /* as guard.margin_c */
#define SETTLED_C 0.75     /* above the target at most, in the mean of a second */
#define SETTLED_SHARE 0.05 /* of the baseline: how far the limit may be from its final mean */
#define MEMORY_C 92.0      /* the H200's own 95 less 3 */
#define AIR_PER_W 0.003    /* a neighbour's watts in the air that a card breathes, within AIR_S */
#define AIR_S 5.0
#define RIG_UNLIMITED 1e9

struct rig_card {
    struct shm_card card;
    struct plant plant;
    struct toy toy;
    struct guard_state guard;
    double limit, wanted, air_c; /* wanted: what the guard last said */
    int changes;
};

struct rig {
    const struct rig_scenario *sc;
    struct guard_policy policy;
    struct rig_card of[RIG_CARDS];
    struct budget_state budget;
    enum rig_who who;
    double by, reference_mhz;
};

static enum guard_control control_of(const struct shm_card *c) {
    if (c->abilities & CAN(POWER_SET)) return GUARD_BY_POWER;
    if (c->abilities & CAN(LOCKED_CLOCKS)) return GUARD_BY_CLOCKS;
    if (c->abilities & CAN(APP_CLOCKS)) return GUARD_BY_APP_CLOCKS;
    return GUARD_BY_NONE;
}

static void toy_policy(struct rig *r) {
    const struct toy_traits *is = &r->of[0].toy.is;
    struct guard_policy *p = &r->policy;
    p->control = is->has_clocks ? GUARD_BY_CLOCKS : GUARD_BY_POWER;
    p->floor = is->has_clocks ? TOY_MHZ_LEAST : is->floor_w;
    p->baseline = is->has_clocks ? TOY_MHZ_MOST : is->full_w;
}

static void plant_policy(struct rig *r, const struct model *m) {
    const struct rig_scenario *sc = r->sc;
    struct guard_policy *p = &r->policy;
    p->control = sc->control != GUARD_BY_NONE ? sc->control : control_of(&r->of[0].card);
    p->uses[GUARD_MEMORY] = r->of[0].card.abilities & CAN(MEM_TEMP) && m->mem_max_c > 90;
    p->target[GUARD_MEMORY] = MEMORY_C;
    p->target[GUARD_MARGIN] = MARGIN_C;
    p->floor = p->control == GUARD_BY_POWER ? m->limit_min_w : m->clocks[0].min_mhz;
    p->baseline = p->control == GUARD_BY_POWER ? m->limit_default_w : m->clocks[0].max_mhz;
    r->reference_mhz = plant_reference_mhz(&r->of[0].plant, sc->work);
}

static void rig_init(struct rig *r, const struct rig_scenario *sc, enum rig_who who, double by) {
    memset(r, 0, sizeof *r);
    r->sc = sc;
    r->who = who;
    r->by = by;
    const struct model *m = sc->model ? model_by_key(sc->model) : NULL;
    for (int i = 0; i < sc->cards; i++) {
        if (m) model_card(m, 7, (uint32_t)i, false, &r->of[i].card);
        if (m) plant_init(&r->of[i].plant, m, &r->of[i].card, (uint64_t)i + 1, 27);
        if (!m) toy_draw(&r->of[i].toy, sc->seed + (uint64_t)i);
    }
    r->policy = (struct guard_policy){.grace_ns = (int64_t)(RIG_GRACE_S * 1e9)};
    r->policy.target[GUARD_CORE] = sc->target_c;
    r->policy.uses[GUARD_CORE] = true;
    if (m) plant_policy(r, m);
    if (!m) toy_policy(r);
    for (int i = 0; i < sc->cards; i++) r->of[i].limit = r->of[i].wanted = r->policy.baseline;
}

/* As a driver does: clocks become the next lower one of the list. */
static void limit_set(struct rig *r, struct rig_card *c, double limit) {
    const struct guard_policy *p = &r->policy;
    struct plant_settings *s = &c->plant.set;
    c->limit = limit;
    if (!r->sc->model) {
        bool is_whole = p->control == GUARD_BY_POWER;
        c->limit = is_whole ? limit : p->floor + floor((limit - p->floor) / TOY_MHZ_STEP) * TOY_MHZ_STEP;
        c->toy.limit = c->limit;
        return;
    }
    if (p->control == GUARD_BY_POWER) {
        s->limit_w = limit;
        return;
    }
    uint32_t mhz = card_clock_at_most(&c->card, c->card.mem_max_mhz, limit + 0.5);
    c->limit = limit >= p->baseline ? p->baseline : mhz;
    if (p->control == GUARD_BY_CLOCKS) s->lock_gr_min_mhz = (uint32_t)p->floor;
    if (p->control == GUARD_BY_CLOCKS) s->lock_gr_max_mhz = mhz;
    if (p->control == GUARD_BY_APP_CLOCKS) s->app_gr_mhz = limit >= p->baseline ? 0 : mhz;
}

static double shown_c(const struct rig *r, const struct rig_card *c) {
    return r->sc->model ? c->plant.sensor[0] : toy_shown_c(&c->toy);
}

static double margin_shown_c(const struct rig_card *c) { return floor(plant_margin_c(&c->plant)); }

/* How far the sensors that the guard minds lie above their targets, truly or as shown. */
static double over_c(const struct rig *r, const struct rig_card *c, bool is_shown) {
    double core = is_shown ? shown_c(r, c) : r->sc->model ? plant_core_c(&c->plant) : toy_core_c(&c->toy);
    double over = core - r->sc->target_c;
    double memory = is_shown ? c->plant.sensor[1] : plant_mem_c(&c->plant);
    if (r->policy.uses[GUARD_MEMORY]) over = fmax(over, memory - r->policy.target[GUARD_MEMORY]);
    if (r->sc->has_margin) over = fmax(over, MARGIN_C - (is_shown ? margin_shown_c(c) : plant_margin_c(&c->plant)));
    return over;
}

/* Whether the sampler reads at 10 Hz. */
static bool is_near(const struct rig *r, const struct rig_card *c) {
    for (int k = 0; k < GUARD_SENSORS; k++) {
        struct guard_policy one = r->policy;
        for (int n = 0; n < GUARD_SENSORS; n++) one.uses[n] = n == k && r->policy.uses[k];
        if (guard_headroom_c(&c->guard, &one) <= (k == GUARD_MARGIN ? MARGIN_NEAR_C : NEAR_C)) return true;
    }
    return false;
}

static void readings(const struct rig *r, const struct rig_card *c, const struct rig_world *w, struct sample *s) {
    const struct plant *p = &c->plant;
    memset(s, 0, sizeof *s);
    if (!w->is_blind) sample_put(s, METRIC_TEMP_CORE, shown_c(r, c));
    if (!r->sc->model) {
        sample_put(s, c->toy.is.is_averaged ? METRIC_POWER : METRIC_POWER_INSTANT, toy_shown_w(&c->toy));
        sample_put(s, METRIC_UTIL_GPU, w->demand);
        sample_put(s, METRIC_CLOCK_GRAPHICS, toy_clock_mhz(&c->toy) * 1e6);
        return;
    }
    if (!w->is_blind && r->policy.uses[GUARD_MEMORY]) sample_put(s, METRIC_TEMP_MEMORY, p->sensor[1]);
    sample_put(s, METRIC_POWER, plant_average(p, 1).energy_j);
    if (!r->sc->is_averaged) sample_put(s, METRIC_POWER_INSTANT, plant_power_w(p));
    sample_put(s, METRIC_UTIL_GPU, fmin(1, plant_average(p, 0.5).busy_s));
    sample_put(s, METRIC_CLOCK_GRAPHICS, p->gr_mhz * 1e6);
}

/* Seldom while it is far, and not missed then. */
static void read_margin(struct rig *r, const struct rig_card *c, double t, struct sample *s) {
    bool is_due = is_near(r, c) || fmod(t, MARGIN_SELDOM) < 1.0 / STEPS_A_SECOND;
    if (is_due) sample_put(s, METRIC_TEMP_MARGIN, margin_shown_c(c));
    r->policy.uses[GUARD_MARGIN] = is_due;
}

static double limit_wanted(struct rig *r, struct rig_card *c, const struct rig_world *w, double t, bool is_second) {
    struct sample s;
    switch (r->who) {
    case RIG_GUARD:
        if (c->guard.is_begun && !is_second && !is_near(r, c)) return c->wanted;
        readings(r, c, w, &s);
        if (r->sc->has_margin) read_margin(r, c, t, &s);
        return c->wanted = guard_step(&c->guard, &r->policy, &s, (int64_t)((t + 1) * 1e9)).limit;
    case RIG_RULE: return !w->is_blind && over_c(r, c, true) > r->by ? r->policy.floor : r->policy.baseline;
    case RIG_CONSTANT: return fmin(r->by, r->policy.baseline);
    case RIG_NOBODY: break;
    }
    return r->policy.baseline;
}

static double power_w(const struct rig *r, const struct rig_card *c) {
    return r->sc->model ? plant_power_w(&c->plant) : c->toy.power_w;
}

/* The node's budget on top: what each card may have at most is the baseline that it shares from. */
static void budget_share(struct rig *r, const struct rig_world *w, double t, double *want) {
    struct budget_card cards[RIG_CARDS];
    struct budget_plan plan;
    for (int i = 0; i < r->sc->cards; i++) {
        const struct rig_card *c = &r->of[i];
        cards[i] = (struct budget_card){.min_w = r->policy.floor,
                                        .baseline_w = want[i],
                                        .enforced_w = c->limit,
                                        .draw_w = power_w(r, c),
                                        .wants_more = c->plant.reasons & REASON_POWER,
                                        .can_set = true,
                                        .is_there = true};
        want[i] = c->limit;
    }
    budget_step(&r->budget, cards, (size_t)r->sc->cards, w->budget_w, (int64_t)((t + 1) * 1e9), &plan);
    for (size_t k = 0; k < plan.changes; k++) want[plan.change[k].card] = plan.change[k].limit_w;
}

static void control(struct rig *r, const struct rig_world *w, double t, bool is_second, double count_from_s) {
    double want[RIG_CARDS];
    for (int i = 0; i < r->sc->cards; i++) want[i] = limit_wanted(r, &r->of[i], w, t, is_second);
    if (w->budget_w > 0 && r->who != RIG_NOBODY) budget_share(r, w, t, want);
    for (int i = 0; i < r->sc->cards; i++) {
        struct rig_card *c = &r->of[i];
        double before = c->limit;
        if (want[i] != before) limit_set(r, c, want[i]);
        if (c->limit != before && t >= count_from_s) c->changes++;
    }
}

/* One step of a card; what it worked, in seconds of full speed. */
static double card_step(struct rig *r, struct rig_card *c, const struct rig_world *w, double all_w) {
    if (!r->sc->model) {
        toy_step(&c->toy, w->demand, w->cooling, w->air_c, DT);
        return w->demand * toy_speed(&c->toy) * DT;
    }
    struct load l = {.contexts = 1};
    if (w->demand > 0) load_add(&l, r->sc->work, w->demand);
    c->air_c += ((all_w - power_w(r, c)) * AIR_PER_W - c->air_c) * -expm1(-DT / AIR_S);
    c->plant.world.air_c = w->air_c + c->air_c;
    c->plant.world.cooling = w->cooling;
    c->plant.world.fans_dead = w->fans_dead;
    plant_step(&c->plant, &l, DT);
    return w->demand * plant_speed(&c->plant, r->sc->work, r->reference_mhz) * DT;
}

static void step(struct rig *r, const struct rig_world *w, int second, struct rig_outcome *o) {
    double all_w = 0;
    for (int i = 0; i < r->sc->cards; i++) all_w += power_w(r, &r->of[i]);
    for (int i = 0; i < r->sc->cards; i++) {
        struct rig_card *c = &r->of[i];
        o->work += card_step(r, c, w, all_w);
        double over = over_c(r, c, false);
        o->over_c = fmax(o->over_c, over);
        o->temp[i][second] += (float)((over + r->sc->target_c) / STEPS_A_SECOND);
        o->limit[i][second] += (float)(c->limit / STEPS_A_SECOND);
    }
}

/* The last second of [from, to) in which a card was not settled yet, counted from `since`. */
static double unsettled_s(const struct rig_scenario *sc, const struct rig_outcome *o, int i, int from, int to,
                          int since) {
    double final = 0;
    for (int k = to - 60; k < to; k++) final += o->limit[i][k] / 60;
    for (int k = to - 1; k >= from; k--) {
        bool is_far = fabs(o->limit[i][k] - final) > SETTLED_SHARE * o->baseline;
        bool is_hot = o->temp[i][k] > sc->target_c + SETTLED_C;
        if (is_hot || (is_far && sc->period_s <= 0 && !sc->is_blind)) return fmax(k + 1 - since, 0);
    }
    return 0;
}

static int hot_from(const struct rig_scenario *sc, const struct rig_outcome *nobody, int card, int from) {
    for (int k = from; k < RIG_SECONDS; k++)
        if (nobody->temp[card][k] > sc->target_c) return k;
    return from;
}

double rig_settled_s(const struct rig_scenario *sc, const struct rig_outcome *o, const struct rig_outcome *nobody) {
    int load = (int)RIG_LOAD_S, trouble = (int)sc->trouble_s, end = RIG_SECONDS;
    double settled = 0;
    for (int i = 0; i < sc->cards; i++) {
        /* A disturbance that takes its time (warming air) is its own; before it, the load's step has had two minutes. */
        double s = unsettled_s(sc, o, i, trouble, end, hot_from(sc, nobody, i, trouble));
        int to = trouble < 200 ? trouble : 200, since = hot_from(sc, nobody, i, load);
        if (trouble > load) s = fmax(s, unsettled_s(sc, o, i, load, to, since < to ? since : load));
        settled = fmax(settled, s);
    }
    return settled;
}

static void judge(const struct rig *r, struct rig_outcome *o) {
    double minutes = (RIG_SECONDS - r->sc->trouble_s - RIG_SETTLE_S) / 60;
    o->floor = r->policy.floor;
    o->baseline = r->policy.baseline;
    for (int k = RIG_SECONDS - 60; k < RIG_SECONDS; k++) o->final += o->limit[0][k] / 60;
    for (int i = 0; i < r->sc->cards; i++) o->changes_a_min = fmax(o->changes_a_min, r->of[i].changes / minutes);
}

void rig_run(const struct rig_scenario *sc, enum rig_who who, double by, struct rig_outcome *o) {
    static struct rig r;
    rig_init(&r, sc, who, by);
    *o = (struct rig_outcome){.over_c = -INFINITY, .floor_s = NAN, .budget_s = NAN};
    double blind_at = NAN, budget_at = NAN, budget_w = NAN;
    for (int n = 0; n < RIG_SECONDS * STEPS_A_SECOND; n++) {
        double t = n * DT, limits_w = 0;
        struct rig_world w = {.cooling = 1, .air_c = 27, .demand = t < RIG_LOAD_S ? 0 : 1};
        sc->at(sc, t, &w);
        if (w.is_blind && isnan(blind_at)) blind_at = t;
        if (w.budget_w != budget_w) budget_at = t;
        budget_w = w.budget_w;
        if (n % (STEPS_A_SECOND / 10) == 0) control(&r, &w, t, n % STEPS_A_SECOND == 0, sc->trouble_s + RIG_SETTLE_S);
        for (int i = 0; i < sc->cards; i++) limits_w += r.of[i].limit;
        if (!isnan(blind_at) && isnan(o->floor_s) && r.of[0].limit <= r.policy.floor) o->floor_s = t - blind_at;
        if (limits_w > budget_w) o->budget_s = NAN;
        if (limits_w <= budget_w && isnan(o->budget_s)) o->budget_s = t - budget_at;
        step(&r, &w, n / STEPS_A_SECOND, o);
    }
    judge(&r, o);
}

double rig_best_constant(const struct rig_scenario *sc, struct rig_outcome *o) {
    rig_run(sc, RIG_CONSTANT, RIG_UNLIMITED, o);
    double low = o->floor, high = o->baseline;
    if (o->over_c <= 0) return high;
    for (int k = 0; k < 10; k++) {
        double middle = (low + high) / 2;
        rig_run(sc, RIG_CONSTANT, middle, o);
        if (o->over_c <= 0)
            low = middle;
        else
            high = middle;
    }
    rig_run(sc, RIG_CONSTANT, low, o);
    return low;
}

#define RULE_LOWER_MOST_C 15

double rig_rule_as_cool(const struct rig_scenario *sc, double over_c, struct rig_outcome *o) {
    int lower = 0;
    do rig_run(sc, RIG_RULE, -lower, o);
    while (o->over_c > over_c && lower++ < RULE_LOWER_MOST_C);
    return lower;
}
