#include "sim/month.h"

#include <math.h>

#define DAY_S 86400.0
#define FAN_PARTS 3 /* fans answer to the temperature: coarser, the two swing */
#define CLOG_DAYS 5.0
#define CLOG 1.5
#define ROOM_C 12.0
#define MOUNTED 1.7
#define GREEDY 1.25
#define WARM_C 50.0 /* below, bad cooling harms nobody */

static double uniform(struct month *m) {
    m->rng ^= m->rng << 13;
    m->rng ^= m->rng >> 7;
    m->rng ^= m->rng << 17;
    return (double)(m->rng >> 11) * 0x1p-53;
}

static double between(struct month *m, double from, double to) { return from + (to - from) * uniform(m); }

/* Lasts minutes to half a day; breaks are so long that the card is busy for its share of the time. */
static struct month_job next_job(struct month *m, const struct month_job *last) {
    double length = 300 * pow(144, uniform(m));
    bool is_idle = !last->is_idle;
    if (is_idle) length *= (1 - m->plan.busy) / fmax(m->plan.busy, 0.01);
    struct month_job j = {.kind = (enum wire_kind)(uniform(m) * KIND_IDLE), .is_idle = is_idle};
    j.demand = between(m, 0.3, 1.2);
    if (j.demand > 1) j.demand = 1;
    if (uniform(m) < 0.3) j.period_s = 20 * pow(60, uniform(m));
    j.until_s = m->at_s + length;
    return j;
}

void month_init(struct month *m, const struct month_plan *plan) {
    const struct model *model = model_by_key(plan->model);
    *m = (struct month){.plan = *plan, .rng = (plan->seed + 1) * 0x9e3779b97f4a7c15u | 1};
    for (size_t i = 0; i < plan->cards; i++) {
        struct month_card *c = &m->card[i];
        model_card(model, plan->seed, (uint32_t)i, 0, &c->card);
        plant_init(&c->plant, model, &c->card, plan->seed * 31 + i, 24);
        c->cooling = between(m, 0.9, 1.1);
        c->slot_c = between(m, 0, 5);
        c->job = (struct month_job){.until_s = between(m, 0, 7200), .is_idle = true};
    }
}

/* How far what breaks has broken: 0 to 1. */
static double broken(const struct month *m) {
    double since_s = m->at_s - m->plan.fault_day * DAY_S;
    double takes_s = m->plan.fault == MONTH_CLOG ? CLOG_DAYS * DAY_S : m->plan.fault == MONTH_ROOM ? 3600 : 0;
    if (m->plan.fault == MONTH_HEALTHY || since_s < 0) return 0;
    return takes_s > 0 ? fmin(since_s / takes_s, 1) : 1;
}

double month_broken_s(const struct month *m) {
    double takes_s = m->plan.fault == MONTH_CLOG ? CLOG_DAYS * DAY_S : m->plan.fault == MONTH_ROOM ? 3600 : 0;
    return m->plan.fault == MONTH_HEALTHY ? -1 : m->at_s - m->plan.fault_day * DAY_S - takes_s;
}

static void card_world(struct month *m, size_t i, double air_c, double all_w) {
    struct month_card *c = &m->card[i];
    struct plant_world *w = &c->plant.world;
    double bad = i == 0 || m->plan.fault == MONTH_ROOM ? broken(m) : 0;
    w->air_c = air_c + c->slot_c + m->plan.recirculation * (all_w - plant_power_w(&c->plant));
    w->cooling = c->cooling;
    if (m->plan.fault == MONTH_MOUNTED && bad > 0) w->cooling *= MOUNTED;
    if (m->plan.fault == MONTH_CLOG) w->cooling *= 1 + (CLOG - 1) * bad;
    if (m->plan.fault == MONTH_ROOM) w->air_c += ROOM_C * bad;
    if (m->plan.fault == MONTH_FAN_STOP) w->fans_dead = bad > 0 ? ~0u : 0;
    w->brake = m->plan.fault == MONTH_BRAKE && bad > 0 && !c->job.is_idle && fmod(m->at_s, 60) < 10;
}

static struct load card_load(struct month *m, struct month_card *c) {
    c->flash = false;
    if (m->at_s >= c->job.until_s) {
        c->job = next_job(m, &c->job);
        c->flash = uniform(m) < 0.3;
    }
    struct load l = {0};
    if (c->job.is_idle) return l;
    l.contexts = 1;
    bool is_off = c->job.period_s > 0 && fmod(m->at_s, c->job.period_s) >= c->job.period_s / 2;
    if (!is_off) load_add(&l, c->job.kind, c->job.demand);
    return l;
}

static bool is_greedy(const struct month_card *c) { return c->power_w > 0.9 * c->plant.set.limit_w; }

static bool shows(const struct month *m) {
    const struct month_card *c = &m->card[0];
    bool is_heat = m->plan.fault == MONTH_CLOG || m->plan.fault == MONTH_FAN_STOP;
    if (m->plan.fault == MONTH_GREEDY) return is_greedy(c);
    return !c->job.is_idle && (!is_heat || c->plant.sensor[0] >= WARM_C);
}

void month_step(struct month *m) {
    m->weather_c += (between(m, -1, 1) * 0.02 - m->weather_c * MONTH_STEP_S / (4 * DAY_S)) * (MONTH_STEP_S / 5);
    m->weather_c = fmin(fmax(m->weather_c, -3), 3);
    double air_c = 24 + m->plan.day_c * sin(2 * M_PI * m->at_s / DAY_S) + m->weather_c, all_w = 0;
    for (size_t i = 0; i < m->plan.cards; i++) all_w += plant_power_w(&m->card[i].plant);
    for (size_t i = 0; i < m->plan.cards; i++) {
        struct month_card *c = &m->card[i];
        card_world(m, i, air_c, all_w);
        struct load l = card_load(m, c);
        double before_j = c->plant.energy_j;
        int parts = c->card.fan_count > 0 ? FAN_PARTS : 1;
        for (int k = 0; k < parts; k++) plant_step(&c->plant, &l, MONTH_STEP_S / parts);
        c->power_w = (c->plant.energy_j - before_j) / MONTH_STEP_S;
    }
    m->at_s += MONTH_STEP_S;
    if (month_broken_s(m) >= 0 && shows(m)) m->shown_s += MONTH_STEP_S;
}

/* What is wrong in the readings alone. */
static void spoil(const struct month *m, struct month_reading *r) {
    bool is_busy = !m->card[0].job.is_idle;
    if (m->plan.fault == MONTH_SLOWED && is_busy && fmod(m->at_s, 60) < 10) r->reasons |= REASON_HW;
    if (m->plan.fault == MONTH_DEAF) r->enforced_w = 0.9 * r->asked_w;
    if (m->plan.fault == MONTH_GREEDY && is_greedy(&m->card[0])) r->power_w = GREEDY * r->asked_w;
}

struct month_reading month_read(const struct month *m, size_t card) {
    const struct month_card *c = &m->card[card];
    const struct plant *p = &c->plant;
    struct month_reading r = {
        .temp_c = p->sensor[0],
        .power_w = c->power_w,
        .asked_w = p->set.limit_w,
        .enforced_w = p->set.limit_w,
        .reasons = p->reasons | (c->flash ? REASON_HW : 0),
        .has_fan = c->card.fan_count > 0,
    };
    bool is_off = c->job.period_s > 0 && fmod(m->at_s - MONTH_STEP_S, c->job.period_s) >= c->job.period_s / 2;
    if (!c->job.is_idle && !is_off) r.memory = fmin(kinds[c->job.kind].mem_util * c->job.demand, 1);
    if (card == 0 && broken(m) > 0) spoil(m, &r);
    if (!r.has_fan) return r;
    r.fan = p->fan_pct[0] / 100;
    r.rpm = p->world.fans_dead & 1 ? 0 : r.fan * c->card.fan_max_rpm;
    return r;
}
