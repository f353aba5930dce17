/* Values for frames: any that can be, by a generator that gives the same ones every time. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "model/host_metrics.h"
#include "model/inventory.h"
#include "model/sample.h"

static uint64_t random_state = 88172645463325252ull;

static inline uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline double random_real(void) { return (double)(int64_t)random_u64() * 1e-6; }

static inline void random_sample(struct sample *s) {
    memset(s, 0, sizeof *s);
    s->boot_ns = (int64_t)random_u64();
    s->real_ns = (int64_t)random_u64();
    uint64_t often = random_u64() % 4;
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (random_u64() % 4 < often) bits_set(s->asked, i);
        if (random_u64() % 4 < often) sample_put(s, i, random_real());
    }
}

static inline void random_host(struct host_sample *s) {
    memset(s, 0, sizeof *s);
    s->boot_ns = (int64_t)random_u64();
    s->real_ns = (int64_t)random_u64();
    uint64_t often = random_u64() % 4;
    for (int i = 0; i < HOST_METRIC_COUNT; i++)
        if (random_u64() % 4 < often) host_put(s, i, random_real());
}

static inline void random_inventory(struct inventory *i) {
    inventory_init(i, (int32_t)(random_u64() % 64));
    snprintf(i->uuid, sizeof i->uuid, "GPU-%016llx", (unsigned long long)random_u64());
    memset(i->name, 'n', random_u64() % sizeof i->name);
    memset(i->architecture, 'a', random_u64() % sizeof i->architecture);
    i->limit_min_mw = (int32_t)random_u64();
    i->margin_gpu_c = (int32_t)random_u64();
    i->mig_count = (int32_t)(random_u64() % (MIG_MAX + 1));
    i->parent = (int32_t)(random_u64() % 10) - 1;
    i->control = (uint32_t)random_u64();
    i->memory_clocks = (int32_t)(random_u64() % (MEMORY_CLOCKS_MAX + 1));
    for (int32_t c = 0; c < i->memory_clocks; c++) {
        i->clocks[c].mhz = (int32_t)random_u64();
        i->clocks[c].graphics_count = (int32_t)(random_u64() % (GRAPHICS_CLOCKS_MAX + 1));
        for (int32_t g = 0; g < i->clocks[c].graphics_count; g++) i->clocks[c].graphics_mhz[g] = (uint16_t)random_u64();
    }
}
