/* The models of cards there are: numbers only. A new model is one row of models.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/ability.h"
#include "sim/shm_card.h"

struct clock_range { /* graphics clocks that go with one memory clock */
    uint32_t mem_mhz;
    double max_mhz, min_mhz, step_mhz;
};

struct mig_profile {
    const char *name;
    uint32_t profile_id, slices, mem_slices, sm_count, copy_engines, decoders, jpegs, ofas;
    uint32_t memory_mib;
};

struct model {
    const char *key;  /* as --model names it */
    const char *name; /* as the driver prints it */
    const char *help;
    uint64_t abilities;

    uint32_t brand, architecture, cc_major, cc_minor, cores, sm_count, bus_width_bits, warps_per_sm;
    const char *vbios, *board_part, *inforom_image, *inforom_oem, *inforom_ecc, *inforom_power;
    uint32_t pci_device_id, pci_subsystem_id, pcie_gen, pcie_width;
    uint32_t memory_mib, reserved_mib, bar1_mib;

    double limit_min_w, limit_max_w, limit_default_w;
    double idle_w;     /* no context */
    double context_w;  /* a context open, nothing running, clocks up */
    double core_w;     /* on top, the cores at full activity and highest clock */
    double memory_w;   /* on top, the memory at full activity */
    double resistance; /* of the cooler, relative to the H200's */
    int usage_is_instant;

    int shutdown_c, slowdown_c, mem_max_c, gpu_max_c;
    int acoustic_min_c, acoustic_default_c, acoustic_max_c;
    int tlimit_c[4];

    struct clock_range clocks[SHM_MEM_CLOCKS_MAX]; /* highest memory clock first */
    uint32_t idle_gr_mhz, idle_mem_mhz, video_mhz;
    uint32_t app_gr_mhz; /* default application clock; 0: the highest */
    uint32_t idle_pstate, compute_pstate;

    uint32_t fans, fan_min_pct, fan_max_rpm, fan_still_c; /* fan_still_c: below, the fans stand */
    uint32_t links, link_version, link_mbps;
    uint64_t event_types;
    const struct mig_profile *mig; /* the layout with --mig: ends with a nameless one; NULL cannot */
};

extern const struct model models[];
extern const size_t model_count;

const struct model *model_by_key(const char *key);

/* Fills the constant part of one simulated card. The same seed and index give the same identity every time. */
void model_card(const struct model *m, uint64_t seed, uint32_t index, int mig_on, struct shm_card *ret);

/* The highest supported graphics clock at or below `mhz` for the given memory clock (at least the lowest one). */
uint32_t card_clock_at_most(const struct shm_card *c, uint32_t mem_mhz, double mhz);
const struct shm_clocks *card_clocks(const struct shm_card *c, uint32_t mem_mhz);
