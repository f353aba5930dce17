/* From a model, a seed and an index to one card with an identity of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/models.h"

/* splitmix64: a new well-mixed word each time, the same for the same seed. */
static uint64_t mix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void uuid_text(const char *prefix, uint64_t *rng, char *ret, size_t size) {
    uint64_t a = mix(rng), b = mix(rng);
    snprintf(ret, size, "%s-%08x-%04x-%04x-%04x-%012llx", prefix, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
             (unsigned)(a & 0xffff), (unsigned)(b >> 48), (unsigned long long)(b & 0xffffffffffffu));
}

static void fill_identity(const struct model *m, uint64_t seed, uint32_t index, struct shm_card *c) {
    uint64_t rng = seed * 1000003u + index + 1;
    uuid_text("GPU", &rng, c->uuid, sizeof c->uuid);
    uint64_t serial = mix(&rng) % 10000000u;
    if (m->abilities & CAN(SERIAL)) snprintf(c->serial, sizeof c->serial, "165%03u%07u", index + 22, (unsigned)serial);

    /* The format holds one %u at most, and comes from the table above all. */
    const char *digit = strstr(m->vbios, "%u");
    snprintf(c->vbios, sizeof c->vbios, "%.*s%u", (int)(digit - m->vbios), m->vbios, 1 + (unsigned)(serial % 8));

    snprintf(c->model, sizeof c->model, "%s", m->key);
    snprintf(c->name, sizeof c->name, "%s", m->name);
    if (m->board_part) snprintf(c->board_part, sizeof c->board_part, "%s", m->board_part);
    if (m->inforom_image) snprintf(c->inforom_image, sizeof c->inforom_image, "%s", m->inforom_image);
    if (m->inforom_oem) snprintf(c->inforom_oem, sizeof c->inforom_oem, "%s", m->inforom_oem);
    if (m->inforom_ecc) snprintf(c->inforom_ecc, sizeof c->inforom_ecc, "%s", m->inforom_ecc);
    if (m->inforom_power) snprintf(c->inforom_power, sizeof c->inforom_power, "%s", m->inforom_power);

    c->index = c->minor_number = index;
    c->brand = m->brand;
    c->architecture = m->architecture;
    c->cc_major = m->cc_major;
    c->cc_minor = m->cc_minor;
    c->cores = m->cores;
    c->sm_count = m->sm_count;
    c->bus_width_bits = m->bus_width_bits;
    c->warps_per_sm = m->warps_per_sm;
}

/* Buses as on an eight-way board: two sockets, four GPUs each. */
static void fill_pci(const struct model *m, uint32_t index, struct shm_card *c) {
    static const uint8_t buses[] = {0x19, 0x3b, 0x4c, 0x5d, 0x9b, 0xbb, 0xcb, 0xdb};
    c->pci_domain = index / 8;
    c->pci_bus = buses[index % 8];
    c->pci_device_id = m->pci_device_id;
    c->pci_subsystem_id = m->pci_subsystem_id;
    c->pcie_gen_max = c->pcie_gen_device = m->pcie_gen;
    c->pcie_width_max = m->pcie_width;
    c->board_id = c->pci_domain << 16 | c->pci_bus << 8;
    c->module_id = index % 8 + 1;
    c->numa_node = index % 8 / 4;
    c->irq = 120 + index;
}

static void fill_clocks(const struct model *m, struct shm_card *c) {
    for (int i = 0; i < SHM_MEM_CLOCKS_MAX && m->clocks[i].mem_mhz; i++) {
        const struct clock_range *r = &m->clocks[i];
        struct shm_clocks *out = &c->clocks[c->mem_clock_count++];
        out->mem_mhz = r->mem_mhz;
        int steps = (int)((r->max_mhz - r->min_mhz + 0.5) / r->step_mhz);
        for (int k = 0; k <= steps && out->count < SHM_GR_CLOCKS_MAX; k++)
            out->gr_mhz[out->count++] = (uint32_t)(r->max_mhz - k * r->step_mhz);
    }
    c->gr_max_mhz = c->clocks[0].gr_mhz[0];
    c->gr_min_mhz = m->idle_gr_mhz;
    c->mem_max_mhz = c->clocks[0].mem_mhz;
    c->video_max_mhz = m->video_mhz;
    c->app_gr_default_mhz = m->app_gr_mhz ? m->app_gr_mhz : c->gr_max_mhz;
    c->app_mem_default_mhz = c->mem_max_mhz;
}

static void fill_mig(const struct model *m, uint64_t seed, uint32_t index, struct shm_card *c) {
    uint64_t rng = (seed ^ 0x4d4947u) * 1000003u + index + 1;
    uint32_t start = 0;
    c->mig_mode = 1;
    for (const struct mig_profile *p = m->mig; p->name; p++) {
        struct shm_mig *g = &c->mig[c->mig_count];
        uuid_text("MIG", &rng, g->uuid, sizeof g->uuid);
        snprintf(g->profile, sizeof g->profile, "%s", p->name);
        g->gi = p->slices == 3 ? 1 : p->slices == 2 ? 5 : 9 + c->mig_count;
        g->ci = 0;
        g->profile_id = p->profile_id;
        g->slices = p->slices;
        g->mem_slices = p->mem_slices;
        g->sm_count = p->sm_count;
        g->copy_engines = p->copy_engines;
        g->decoders = p->decoders;
        g->jpegs = p->jpegs;
        g->ofas = p->ofas;
        g->place_start = start;
        g->memory_bytes = (uint64_t)p->memory_mib << 20;
        start += p->mem_slices;
        c->mig_count++;
    }
}

static void fill_limits(const struct model *m, struct shm_card *c) {
    c->memory_bytes = (uint64_t)m->memory_mib << 20;
    c->reserved_bytes = (uint64_t)m->reserved_mib << 20;
    c->bar1_bytes = (uint64_t)m->bar1_mib << 20;
    c->power_min_mw = (uint32_t)(m->limit_min_w * 1000);
    c->power_max_mw = (uint32_t)(m->limit_max_w * 1000);
    c->power_default_mw = (uint32_t)(m->limit_default_w * 1000);
    c->power_usage_is_instant = (uint32_t)m->usage_is_instant;
    c->shutdown_c = m->shutdown_c;
    c->slowdown_c = m->slowdown_c;
    c->mem_max_c = m->mem_max_c;
    c->gpu_max_c = m->gpu_max_c;
    c->acoustic_min_c = m->acoustic_min_c;
    c->acoustic_default_c = m->acoustic_default_c;
    c->acoustic_max_c = m->acoustic_max_c;
    memcpy(c->tlimit_c, m->tlimit_c, sizeof c->tlimit_c);
    c->fan_count = m->fans;
    c->fan_min_pct = m->fan_min_pct;
    c->fan_max_pct = m->fans ? 100 : 0;
    c->fan_max_rpm = m->fan_max_rpm;
    c->link_count = m->links;
    c->link_version = m->link_version;
    c->link_speed_mbps = m->link_mbps;
    c->event_types = m->event_types;
    c->supported_reasons = 0x1ff;
}

void model_card(const struct model *m, uint64_t seed, uint32_t index, int mig_on, struct shm_card *ret) {
    *ret = (struct shm_card){.abilities = m->abilities};
    fill_identity(m, seed, index, ret);
    fill_pci(m, index, ret);
    fill_limits(m, ret);
    fill_clocks(m, ret);
    if (mig_on && m->mig) fill_mig(m, seed, index, ret);
}

const struct shm_clocks *card_clocks(const struct shm_card *c, uint32_t mem_mhz) {
    for (uint32_t i = 0; i < c->mem_clock_count; i++)
        if (c->clocks[i].mem_mhz == mem_mhz) return &c->clocks[i];
    return NULL;
}

uint32_t card_clock_at_most(const struct shm_card *c, uint32_t mem_mhz, double mhz) {
    const struct shm_clocks *list = card_clocks(c, mem_mhz);
    if (!list) list = &c->clocks[0];
    for (uint32_t i = 0; i < list->count; i++)
        if (list->gr_mhz[i] <= mhz + 0.5) return list->gr_mhz[i];
    return list->gr_mhz[list->count - 1];
}
