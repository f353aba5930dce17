/* What the firmware of a card decides: clocks that fit under the power cap, the locks and the temperature limits, and the
 * event reasons that tell why. Cap first, then heat: a lock never makes a card draw more than it may.
 */
#include <math.h>

#include "sim/plant.h"

/* The measured card keeps its one-second average a little under the limit: 690 W of 700. */
static const double cap_use = 0.988;

/* Clocks fall at once and come back by this much a second, as seen after a load step. */
static const double rise_mhz_s = 1200;
static const double thermal_fall_mhz_s = 300, thermal_rise_mhz_s = 90;

static uint32_t memory_clock(const struct plant *p, const struct load *l) {
    const struct shm_card *c = p->card;
    const struct plant_settings *s = &p->set;
    uint32_t want = l->contexts ? c->mem_max_mhz : p->model->idle_mem_mhz;
    if (s->app_mem_mhz && want > s->app_mem_mhz) want = s->app_mem_mhz;
    if (s->lock_mem_max_mhz && want > s->lock_mem_max_mhz) want = s->lock_mem_max_mhz;
    if (s->lock_mem_min_mhz && want < s->lock_mem_min_mhz) want = s->lock_mem_min_mhz;
    for (uint32_t i = 0; i < c->mem_clock_count; i++)
        if (c->clocks[i].mem_mhz <= want) return c->clocks[i].mem_mhz;
    return c->clocks[c->mem_clock_count - 1].mem_mhz;
}

/* Moves the ceiling that heat sets, and says which limit is at work. */
static uint64_t thermal_ceiling(struct plant *p, double dt_s) {
    const struct shm_card *c = p->card;
    double core = plant_core_c(p), mem = plant_mem_c(p);
    double soft = p->set.acoustic_c > 0 ? fmin(p->set.acoustic_c, c->gpu_max_c) : c->gpu_max_c;
    double over = core - soft;
    if (c->mem_max_c > 0 && (c->abilities & CAN(MEM_TEMP))) over = fmax(over, mem - c->mem_max_c);

    double ceiling = p->ceiling_mhz;
    if (over >= 0)
        ceiling -= thermal_fall_mhz_s * (1 + over) * dt_s;
    else if (over < -2)
        ceiling += thermal_rise_mhz_s * dt_s;
    p->ceiling_mhz = (uint32_t)lround(fmin(fmax(ceiling, c->gr_min_mhz), c->gr_max_mhz));

    if (core >= c->slowdown_c) p->hw_slow = true;
    if (core < c->slowdown_c - 4) p->hw_slow = false;
    if (core >= c->shutdown_c) p->burnt = true;

    uint64_t reasons = 0;
    if (p->ceiling_mhz < c->gr_max_mhz) reasons |= REASON_SW_THERMAL;
    if (p->hw_slow) reasons |= REASON_HW | REASON_HW_THERMAL;
    if (p->world.brake) reasons |= REASON_HW | REASON_BRAKE;
    return reasons;
}

/* The highest clock of the list, not above `ceiling`, whose power fits. Power grows with the clock: bisect. */
static uint32_t clock_under_cap(const struct plant *p, const struct load *l, uint32_t ceiling, double budget_w) {
    const struct shm_clocks *list = card_clocks(p->card, p->mem_mhz);
    uint32_t lo = 0, hi = list->count - 1;
    while (lo < hi && list->gr_mhz[lo] > ceiling) lo++;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (plant_power_at(p, l, list->gr_mhz[mid], p->jitter_slow, NULL) <= budget_w)
            hi = mid;
        else
            lo = mid + 1;
    }
    return list->gr_mhz[lo];
}

static void pick_clock(struct plant *p, const struct load *l, uint64_t heat, double dt_s) {
    const struct shm_card *c = p->card;
    const struct plant_settings *s = &p->set;
    uint32_t top = card_clocks(c, p->mem_mhz)->gr_mhz[0], ceiling = top;
    if (s->app_gr_mhz && s->app_gr_mhz < ceiling) ceiling = s->app_gr_mhz;
    if (s->lock_gr_max_mhz && s->lock_gr_max_mhz < ceiling) ceiling = s->lock_gr_max_mhz;
    uint32_t asked = ceiling;
    if (!l->contexts) {
        uint32_t rest = p->model->idle_gr_mhz;
        p->gr_mhz = s->lock_gr_min_mhz > rest ? card_clock_at_most(c, p->mem_mhz, s->lock_gr_min_mhz) : rest;
        p->reasons = REASON_IDLE | (heat & (uint64_t)~REASON_SW_THERMAL);
        return;
    }
    if (p->ceiling_mhz < ceiling) ceiling = p->ceiling_mhz;
    if (p->hw_slow || p->world.brake) ceiling = ceiling < c->gr_max_mhz / 2 ? ceiling : c->gr_max_mhz / 2;
    uint64_t reasons = heat;
    if (ceiling == asked) reasons &= (uint64_t)~REASON_SW_THERMAL;

    uint32_t cool = card_clock_at_most(c, p->mem_mhz, ceiling);
    double target = s->limit_w * cap_use;
    double budget = fmin(target + 0.3 * (target - p->felt_w), s->limit_w);
    uint32_t fits = clock_under_cap(p, l, ceiling, budget);
    if (fits < cool) reasons |= REASON_POWER;
    bool was_held = p->reasons & (REASON_POWER | REASON_SW_THERMAL | REASON_HW);
    if (was_held && fits > p->gr_mhz) {
        double most = p->gr_mhz + fmax(rise_mhz_s * dt_s, 15);
        if (fits > most) fits = card_clock_at_most(c, p->mem_mhz, most);
    }
    if (asked < top && fits == card_clock_at_most(c, p->mem_mhz, asked)) reasons |= REASON_APP;
    p->gr_mhz = fits;
    p->reasons = reasons;
}

/* From standing still below fan_still_c to full speed just under the limit. */
static double fan_target(const struct plant *p, int i) {
    const struct shm_card *c = p->card;
    if (p->set.fan[i].manual) return p->set.fan[i].pct;
    double core = plant_core_c(p), still = p->model->fan_still_c;
    if (still > 0 && core < still - (p->fan_pct[i] > 0 ? 4 : 0)) return 0;
    double from = 40, full = c->gpu_max_c - 3;
    double pct = c->fan_min_pct + (100.0 - c->fan_min_pct) * (core - from) / (full - from);
    return fmin(fmax(pct, c->fan_min_pct), 100);
}

static void turn_fans(struct plant *p, double dt_s) {
    static const double pct_per_s = 12;
    for (uint32_t i = 0; i < p->card->fan_count; i++) {
        double way = fan_target(p, (int)i) - p->fan_pct[i], most = pct_per_s * dt_s;
        p->fan_pct[i] += fmin(fmax(way, -most), most);
    }
}

void governor_step(struct plant *p, const struct load *l, double dt_s) {
    uint64_t heat = thermal_ceiling(p, dt_s);
    turn_fans(p, dt_s);
    p->mem_mhz = memory_clock(p, l);
    pick_clock(p, l, heat, dt_s);
    if (!l->contexts)
        p->pstate = p->model->idle_pstate;
    else
        p->pstate = l->graphics ? 0 : p->model->compute_pstate;
}
