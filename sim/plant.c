/* Power and heat of one card, and the counters that grow with them. Clocks are the governor's (governor.c). */
#include "sim/plant.h"

#include <math.h>
#include <string.h>

/* Measured on the H200: 118.9 W at 33 C and 117.5 W at 30 C with nothing changing but the temperature. */
static const double leak_per_k = 0.4 / 118, leak_free_c = 30;

/* Dynamic power over clock: 690 W at 1500 MHz and peaks of 900-950 W before the cap acts, at 1980. */
static const double clock_exponent = 1.3;

static const double jitter_s = 0.08, jitter_size = 0.055, governor_s = 0.25, settle_s = 0.5;
static const double sensor_noise_w = 0.25;

static double uniform(struct plant *p) {
    p->rng ^= p->rng << 13;
    p->rng ^= p->rng >> 7;
    p->rng ^= p->rng << 17;
    return (double)(p->rng >> 11) * 0x1p-53;
}

static double normal(struct plant *p) { return (uniform(p) + uniform(p) + uniform(p) + uniform(p) - 2) * 1.7320508; }

double plant_power_at(const struct plant *p, const struct load *l, double gr_mhz, double jitter, double *ret_mem_w) {
    const struct model *m = p->model;
    const struct shm_card *c = p->card;
    double span = (gr_mhz - m->idle_gr_mhz) / (c->gr_max_mhz - m->idle_gr_mhz);
    double mem_span = (double)p->mem_mhz / c->mem_max_mhz;
    double core = m->idle_w + (m->context_w - m->idle_w) * fmax(span, 0) * mem_span;
    core += m->context_w * leak_per_k * (plant_core_c(p) - leak_free_c);
    core += m->core_w * l->core * pow(gr_mhz / c->gr_max_mhz, clock_exponent) * (1 + jitter);
    double mem = m->memory_w * l->unit[UNIT_DRAM] * mem_span;
    if (ret_mem_w) *ret_mem_w = mem;
    return core + mem;
}

static double cooling_now(const struct plant *p) {
    uint32_t n = p->card->fan_count;
    if (n == 0) return p->world.cooling;
    double flow = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!(p->world.fans_dead >> i & 1)) flow += p->fan_pct[i] / 100 / n;
    double still = pow(0.5 / fmax(flow, 0.08), 0.6);
    return p->world.cooling * fmax(still, 0.65);
}

double plant_power_w(const struct plant *p) { return p->core_w + p->mem_w; }

double plant_core_c(const struct plant *p) { return thermal_core_c(&p->thermal, p->world.air_c); }

double plant_mem_c(const struct plant *p) { return thermal_mem_c(&p->thermal, p->world.air_c); }

double plant_margin_c(const struct plant *p) {
    double hot = thermal_hot_spot_c(&p->thermal, p->world.air_c, p->core_w, p->model->resistance);
    return p->card->gpu_max_c - hot;
}

void plant_reset_settings(struct plant *p) {
    p->set = (struct plant_settings){
        .limit_w = p->model->limit_default_w,
        .acoustic_c = p->model->acoustic_default_c,
    };
}

static void rest(struct plant *p) {
    const struct model *m = p->model;
    plant_reset_settings(p);
    p->gr_mhz = m->idle_gr_mhz;
    p->mem_mhz = m->idle_mem_mhz;
    p->pstate = m->idle_pstate;
    p->ceiling_mhz = p->card->gr_max_mhz;
    p->core_w = p->felt_w = m->idle_w;
    p->mem_w = p->jitter = p->jitter_slow = 0;
    p->reasons = REASON_IDLE;
    p->hw_slow = p->burnt = false;
    for (uint32_t i = 0; i < p->card->fan_count; i++) p->fan_pct[i] = m->fan_still_c ? 0 : m->fan_min_pct;
    thermal_settle(&p->thermal, m->idle_w, 0, m->resistance, cooling_now(p));
    p->sensor[0] = round(plant_core_c(p));
    p->sensor[1] = round(plant_mem_c(p));
}

void plant_init(struct plant *p, const struct model *m, const struct shm_card *c, uint64_t seed, double air_c) {
    *p = (struct plant){.model = m, .card = c, .rng = (seed + c->index + 1) * 0x9e3779b97f4a7c15u | 1};
    p->world = (struct plant_world){.air_c = air_c, .cooling = 1};
    rest(p);
}

void plant_revive(struct plant *p) {
    p->world.cooling = 1;
    p->world.fans_dead = 0;
    p->world.brake = false;
    rest(p);
}

static void shake(struct plant *p, const struct load *l, double dt_s) {
    double size = l->core > 0 ? jitter_size * l->swing / l->core : 0;
    double keep = exp(-dt_s / jitter_s);
    p->jitter = p->jitter * keep + size * sqrt(1 - keep * keep) * normal(p);
    p->jitter = fmin(fmax(p->jitter, -0.2), 0.2);
    p->jitter_slow += (p->jitter - p->jitter_slow) * -expm1(-dt_s / governor_s);
}

/* A sensor shows whole degrees, and does not flicker between two. */
static void read_sensor(double *shown, double real) {
    if (fabs(real - *shown) > 0.6) *shown = round(real);
}

static void count(struct plant *p, const struct load *l, double dt_s) {
    for (int i = 0; i < UNIT_COUNT; i++) p->totals[i] += fmin(l->unit[i], 1) * dt_s;
    for (unsigned bit = 0; bit < 16; bit++)
        if (p->reasons >> bit & 1) p->reason_s[bit] += dt_s;

    /* A card that is only looked at still exchanges half a megabyte a second with the driver. */
    p->pcie_tx_now = l->pcie_tx + 0.59e6 * (1 + 0.1 * normal(p));
    p->pcie_rx_now = l->pcie_rx + 0.42e6 * (1 + 0.1 * normal(p));
    p->pcie_tx_bytes += p->pcie_tx_now * dt_s;
    p->pcie_rx_bytes += p->pcie_rx_now * dt_s;
    if (p->card->link_count) {
        p->nvlink_tx_bytes += l->nvlink_tx * dt_s;
        p->nvlink_rx_bytes += l->nvlink_rx * dt_s;
    }

    struct plant_point *n = &p->now;
    n->at_s = p->at_s;
    n->energy_j = p->energy_j;
    n->busy_s += fmin(l->busy, 1) * dt_s;
    n->mem_busy_s += fmin(l->mem_util, 1) * dt_s;
    n->enc_s = p->totals[UNIT_NVENC];
    n->dec_s = p->totals[UNIT_NVDEC];
    n->jpg_s = p->totals[UNIT_NVJPG];
    n->ofa_s = p->totals[UNIT_NVOFA];

    /* Steps are cut where tasks come and go; points closer than this would push out the second they must cover. */
    const struct plant_point *last = &p->past[(p->past_count + PLANT_HISTORY - 1) % PLANT_HISTORY];
    if (p->past_count == 0 || n->at_s - last->at_s >= 0.02) p->past[p->past_count++ % PLANT_HISTORY] = *n;
}

void plant_step(struct plant *p, const struct load *l, double dt_s) {
    if (dt_s <= 0) return;
    shake(p, l, dt_s);
    governor_step(p, l, dt_s);
    double mem_w;
    double all_w = plant_power_at(p, l, p->gr_mhz, p->jitter, &mem_w);
    p->mem_w = mem_w;
    p->core_w = fmax(all_w - mem_w + sensor_noise_w * normal(p), 0.5);
    p->energy_j += plant_power_w(p) * dt_s;
    p->felt_w += (plant_power_w(p) - p->felt_w) * -expm1(-dt_s / settle_s);
    p->at_s += dt_s;
    thermal_step(&p->thermal, p->core_w, p->mem_w, p->model->resistance, cooling_now(p), dt_s);
    read_sensor(&p->sensor[0], plant_core_c(p));
    read_sensor(&p->sensor[1], plant_mem_c(p));
    count(p, l, dt_s);
}

static struct plant_point mix(const struct plant_point *a, const struct plant_point *b, double k) {
    return (struct plant_point){
        .at_s = a->at_s + (b->at_s - a->at_s) * k,
        .energy_j = a->energy_j + (b->energy_j - a->energy_j) * k,
        .busy_s = a->busy_s + (b->busy_s - a->busy_s) * k,
        .mem_busy_s = a->mem_busy_s + (b->mem_busy_s - a->mem_busy_s) * k,
        .enc_s = a->enc_s + (b->enc_s - a->enc_s) * k,
        .dec_s = a->dec_s + (b->dec_s - a->dec_s) * k,
        .jpg_s = a->jpg_s + (b->jpg_s - a->jpg_s) * k,
        .ofa_s = a->ofa_s + (b->ofa_s - a->ofa_s) * k,
    };
}

/* The totals as they stood at `at_s`, or at the oldest moment remembered. */
static struct plant_point point_at(const struct plant *p, double at_s) {
    const struct plant_point *later = &p->now;
    unsigned n = p->past_count < PLANT_HISTORY ? p->past_count : PLANT_HISTORY;
    for (unsigned i = 1; i <= n; i++) {
        const struct plant_point *q = &p->past[(p->past_count - i) % PLANT_HISTORY];
        if (q->at_s <= at_s) {
            double gap = later->at_s - q->at_s;
            return gap > 0 ? mix(q, later, fmin((at_s - q->at_s) / gap, 1)) : *q;
        }
        later = q;
    }
    return *later;
}

struct plant_point plant_average(const struct plant *p, double window_s) {
    struct plant_point from = point_at(p, p->now.at_s - window_s);
    double span = p->now.at_s - from.at_s;
    if (span <= 0) return (struct plant_point){.energy_j = plant_power_w(p)};
    return (struct plant_point){
        .at_s = span,
        .energy_j = (p->now.energy_j - from.energy_j) / span,
        .busy_s = (p->now.busy_s - from.busy_s) / span,
        .mem_busy_s = (p->now.mem_busy_s - from.mem_busy_s) / span,
        .enc_s = (p->now.enc_s - from.enc_s) / span,
        .dec_s = (p->now.dec_s - from.dec_s) / span,
        .jpg_s = (p->now.jpg_s - from.jpg_s) / span,
        .ofa_s = (p->now.ofa_s - from.ofa_s) / span,
    };
}

double plant_reference_mhz(const struct plant *p, enum wire_kind k) {
    struct plant q;
    plant_init(&q, p->model, p->card, 1, p->world.air_c);
    struct load l = {.contexts = 1};
    load_add(&l, k, 1);
    /* Long enough to be warm; and some clocks lower, so that what a healthy card loses to jitter is not called slow. */
    for (int i = 0; i < 600; i++) plant_step(&q, &l, PLANT_STEP_S);
    q.jitter_slow = 0.04;
    governor_step(&q, &l, 10);
    return q.gr_mhz;
}

double plant_speed(const struct plant *p, enum wire_kind k, double reference_mhz) {
    double bound = kinds[k].clock_bound;
    return 1 - bound * (1 - fmin(p->gr_mhz / reference_mhz, 1));
}
