/* One simulated card as physics: a load in, power, clocks, temperatures and counters out.
 *
 * Pure: no clock, no I/O, no global state; the same seed and the same calls give the same numbers. Who owns a plant sets
 * `set` and `world` at will between steps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/load.h"
#include "sim/models.h"
#include "sim/thermal.h"

enum {
    REASON_IDLE = 0x1,
    REASON_APP = 0x2,
    REASON_POWER = 0x4,
    REASON_HW = 0x8,
    REASON_SW_THERMAL = 0x20,
    REASON_HW_THERMAL = 0x40,
    REASON_BRAKE = 0x80
};

struct plant_settings { /* what a driver keeps; lost with a driver reload */
    double limit_w;
    uint32_t lock_gr_min_mhz, lock_gr_max_mhz; /* 0: not locked */
    uint32_t lock_mem_min_mhz, lock_mem_max_mhz;
    uint32_t app_gr_mhz, app_mem_mhz; /* 0: default, boost allowed */
    double acoustic_c;                /* target temperature; 0: none */
    struct {
        bool manual;
        uint32_t pct;
    } fan[SHM_FANS_MAX];
};

struct plant_world { /* what surrounds the card, and what broke */
    double air_c;
    double cooling;     /* 1 good, 2 twice the resistance to air */
    unsigned fans_dead; /* bit per fan */
    bool brake;         /* the board asserts power brake */
};

enum { PLANT_HISTORY = 64 };

struct plant_point { /* running totals at one moment, for windowed averages */
    double at_s, energy_j, busy_s, mem_busy_s, enc_s, dec_s, jpg_s, ofa_s;
};

struct plant {
    const struct model *model;
    const struct shm_card *card;
    struct plant_settings set;
    struct plant_world world;

    double at_s;
    double core_w, mem_w; /* heat of the last step; their sum is the instant power */
    double felt_w;        /* smoothed, as the governor sees it */
    double energy_j;
    struct thermal thermal;
    uint32_t gr_mhz, mem_mhz, pstate;
    uint32_t ceiling_mhz; /* what thermal slowdown allows */
    uint64_t reasons;
    double reason_s[16];
    double fan_pct[SHM_FANS_MAX];
    bool hw_slow, burnt; /* burnt: past the shutdown temperature, the card is gone */

    double jitter, jitter_slow; /* of the load's power, now and as the governor has it in mind */
    double sensor[2];           /* core and memory as last shown: sensors hesitate between two degrees */
    uint64_t rng;
    double totals[UNIT_COUNT]; /* busy seconds */
    double pcie_tx_bytes, pcie_rx_bytes, nvlink_tx_bytes, nvlink_rx_bytes;
    double pcie_tx_now, pcie_rx_now; /* bytes a second */
    struct plant_point now, past[PLANT_HISTORY];
    unsigned past_count;
};

/* A card that has been idle in air of air_c for long. */
void plant_init(struct plant *p, const struct model *m, const struct shm_card *c, uint64_t seed, double air_c);

/* A card that comes back from a reset: cool, with defaults. Counters go on. */
void plant_revive(struct plant *p);

/* Driver defaults: what a freshly loaded driver applies. */
void plant_reset_settings(struct plant *p);

/* Advances by dt_s (at most PLANT_STEP_S, or the governor acts too late) under load l. */
#define PLANT_STEP_S 0.05
void plant_step(struct plant *p, const struct load *l, double dt_s);

double plant_power_w(const struct plant *p);
double plant_core_c(const struct plant *p);
double plant_mem_c(const struct plant *p);
double plant_margin_c(const struct plant *p);

/* Averages of the totals over the last `window_s`. */
struct plant_point plant_average(const struct plant *p, double window_s);

/* Governor (governor.c): picks memory and core clock, performance state, fans and event reasons for the next dt_s. */
void governor_step(struct plant *p, const struct load *l, double dt_s);

/* What the board would draw at this core clock. Heat of the memory alone goes to ret_mem_w when it is not NULL. */
double plant_power_at(const struct plant *p, const struct load *l, double gr_mhz, double jitter, double *ret_mem_w);

/* The lowest core clock that a healthy card of this kind keeps up under kind k alone at its default limit: what tasks call
 * full speed. */
double plant_reference_mhz(const struct plant *p, enum wire_kind k);

/* How fast work of kind k goes at the present clock, of full speed: 0 to 1. */
double plant_speed(const struct plant *p, enum wire_kind k, double reference_mhz);
