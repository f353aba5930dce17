/* What a card is: read once, when it is opened. Anything the driver will not say stays empty or -1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

static void text(nvml_return (*f)(nvml_handle, char *, unsigned), nvml_handle h, char *ret, unsigned room) {
    char got[128] = "";
    if (!f || f(h, got, sizeof got < room ? sizeof got : room) != NVML_SUCCESS) return;
    got[sizeof got - 1] = 0;
    snprintf(ret, room, "%.*s", (int)room - 1, got);
}

static int32_t number(nvml_return (*f)(nvml_handle, unsigned *), nvml_handle h) {
    unsigned v = 0;
    return f && f(h, &v) == NVML_SUCCESS && v <= INT32_MAX ? (int32_t)v : -1;
}

static int32_t threshold(const struct nvml_gpu *g, unsigned which) {
    unsigned v = 0;
    bool ok = g->nv->threshold && g->nv->threshold(g->handle, which, &v) == NVML_SUCCESS && v > 0 && v < 200;
    return ok ? (int32_t)v : -1;
}

static int32_t margin(const struct nvml_gpu *g, unsigned field) {
    int64_t v;
    return nvml_field_int(g, field, &v) && v > -200 && v < 200 ? (int32_t)v : INT32_MIN;
}

static const char *architecture_name(unsigned arch) {
    static const char *const names[] = {[2] = "Kepler", "Maxwell", "Pascal", "Volta",    "Turing",
                                        "Ampere",       "Ada",     "Hopper", "Blackwell"};
    return arch < ARRAY_LEN(names) && names[arch] ? names[arch] : "";
}

static void clocks(const struct nvml_gpu *g, struct inventory *inv) {
    unsigned memory[64], n = ARRAY_LEN(memory);
    if (!g->nv->memory_clocks || !g->nv->graphics_clocks) return;
    if (g->nv->memory_clocks(g->handle, &n, memory) != NVML_SUCCESS || n > ARRAY_LEN(memory)) return;
    for (unsigned i = 0; i < n && i < MEMORY_CLOCKS_MAX; i++) {
        unsigned graphics[512], count = ARRAY_LEN(graphics);
        inv->clocks[i].mhz = (int32_t)memory[i];
        inv->memory_clocks++;
        if (g->nv->graphics_clocks(g->handle, memory[i], &count, graphics) != NVML_SUCCESS) continue;
        if (count > GRAPHICS_CLOCKS_MAX) count = GRAPHICS_CLOCKS_MAX;
        inv->clocks[i].graphics_count = (int32_t)count;
        for (unsigned k = 0; k < count; k++) inv->clocks[i].graphics_mhz[k] = (uint16_t)graphics[k];
    }
}

static void limits(const struct nvml_gpu *g, struct inventory *inv) {
    const struct nvml *nv = g->nv;
    unsigned min = 0, max = 0, usual = 0;
    inv->limit_min_mw = inv->limit_max_mw = inv->limit_default_mw = -1;
    if (NVML_CALL(nv->limit_range, g->handle, &min, &max) == 0) {
        inv->limit_min_mw = (int32_t)min;
        inv->limit_max_mw = (int32_t)max;
    }
    if (NVML_CALL(nv->limit_default, g->handle, &usual) == 0) inv->limit_default_mw = (int32_t)usual;
}

/* Which of the three ways of control the card has, as far as reading can tell: nothing is tried out. */
static uint32_t control(const struct nvml_gpu *g, const struct inventory *inv) {
    const struct nvml *nv = g->nv;
    unsigned arch = 0, mhz, mw;
    uint32_t bits = 0;
    bool knows_arch = NVML_CALL(nv->architecture, g->handle, &arch) == 0;
    if (nv->set_limit && inv->limit_max_mw > inv->limit_min_mw && NVML_CALL(nv->limit, g->handle, &mw) == 0)
        bits |= CONTROL_POWER;
    if (nv->lock_clocks && knows_arch && arch >= NVML_ARCH_VOLTA && inv->memory_clocks) bits |= CONTROL_LOCKED_CLOCKS;
    if (nv->set_app_clocks && NVML_CALL(nv->app_clock, g->handle, NVML_CLOCK_GRAPHICS, &mhz) == 0 && inv->memory_clocks)
        bits |= CONTROL_APP_CLOCKS;
    return bits;
}

static void links(const struct nvml_gpu *g, struct inventory *inv) {
    unsigned state;
    inv->nvlinks = 0;
    for (unsigned link = 0; link < NVML_NVLINK_MAX && g->nv->nvlink_state; link++)
        if (g->nv->nvlink_state(g->handle, link, &state) != NVML_SUCCESS)
            break;
        else
            inv->nvlinks++;
}

static void identity(struct nvml_gpu *g, struct inventory *inv) {
    const struct nvml *nv = g->nv;
    text(nv->uuid, g->handle, inv->uuid, sizeof inv->uuid);
    text(nv->name, g->handle, inv->name, sizeof inv->name);
    snprintf(inv->driver, sizeof inv->driver, "%s", g->gpu.driver->version);
    snprintf(inv->library, sizeof inv->library, "%.79s", g->gpu.driver->library);
}

void nvml_inventory_read(struct nvml_gpu *g) {
    const struct nvml *nv = g->nv;
    struct inventory *inv = &g->gpu.inventory;
    struct nvml_pci_info pci = {0};
    unsigned arch = 0, now = 0, next = 0;
    identity(g, inv);
    text(nv->serial, g->handle, inv->serial, NVML_SERIAL_SIZE);
    text(nv->vbios, g->handle, inv->vbios, sizeof inv->vbios);
    text(nv->board_part, g->handle, inv->board_part, sizeof inv->board_part);
    text(nv->inforom, g->handle, inv->inforom, sizeof inv->inforom);
    if (NVML_CALL(nv->pci, g->handle, &pci) == 0) memcpy(inv->pci, pci.bus_id, sizeof inv->pci - 1);
    if (NVML_CALL(nv->architecture, g->handle, &arch) == 0)
        snprintf(inv->architecture, sizeof inv->architecture, "%s", architecture_name(arch));
    inv->parent = inv->gi = inv->ci = -1;
    inv->minor = number(nv->minor, g->handle);
    inv->cores = number(nv->cores, g->handle);
    inv->bus_width = number(nv->bus_width, g->handle);
    inv->pcie_gen_max = number(nv->pcie_gen_max, g->handle);
    inv->pcie_width_max = number(nv->pcie_width_max, g->handle);
    inv->persistence = number(nv->persistence, g->handle);
    inv->ecc = NVML_CALL(nv->ecc_mode, g->handle, &now, &next) == 0 ? (int32_t)now : -1;
    inv->mig_mode = NVML_CALL(nv->mig_mode, g->handle, &now, &next) == 0 ? (int32_t)now : -1;
    inv->temp_shutdown_c = threshold(g, NVML_THRESHOLD_SHUTDOWN);
    inv->temp_slowdown_c = threshold(g, NVML_THRESHOLD_SLOWDOWN);
    inv->temp_memory_max_c = threshold(g, NVML_THRESHOLD_MEM_MAX);
    inv->temp_gpu_max_c = threshold(g, NVML_THRESHOLD_GPU_MAX);
    inv->margin_shutdown_c = margin(g, NVML_FI_TLIMIT_SHUTDOWN);
    inv->margin_slowdown_c = margin(g, NVML_FI_TLIMIT_SLOWDOWN);
    inv->margin_memory_c = margin(g, NVML_FI_TLIMIT_MEM_MAX);
    inv->margin_gpu_c = margin(g, NVML_FI_TLIMIT_GPU_MAX);
    unsigned mhz = 0;
    inv->clock_sm_max_mhz = NVML_CALL(nv->clock_max, g->handle, NVML_CLOCK_SM, &mhz) == 0 ? (int32_t)mhz : -1;
    inv->clock_memory_max_mhz = NVML_CALL(nv->clock_max, g->handle, NVML_CLOCK_MEM, &mhz) == 0 ? (int32_t)mhz : -1;
    clocks(g, inv);
    limits(g, inv);
    links(g, inv);
    inv->control = control(g, inv);
    if (NVML_CALL(nv->fan_count, g->handle, &now) == 0 && now <= 16)
        g->fans = now;
    else if (NVML_CALL(nv->fan_speed, g->handle, &now) == 0)
        g->fans = 1;
}

static struct nvml_gpu *instance_open(struct nvml_gpu *parent, nvml_handle handle) {
    struct nvml_gpu *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    unsigned id = 0;
    g->gpu.driver = parent->gpu.driver;
    g->nv = parent->nv;
    g->handle = handle;
    g->parent = parent;
    pthread_mutex_init(&g->shares_lock, NULL);
    struct inventory *inv = &g->gpu.inventory;
    memset(&inv->minor, 0xff, offsetof(struct inventory, memory_clocks) - offsetof(struct inventory, minor));
    identity(g, inv);
    inv->index = parent->gpu.inventory.index;
    inv->control = 0;
    inv->mig_mode = 1;
    inv->mig_count = 0;
    memcpy(inv->pci, parent->gpu.inventory.pci, sizeof inv->pci);
    if (NVML_CALL(g->nv->mig_gi, handle, &id) == 0) inv->gi = (int32_t)id;
    if (NVML_CALL(g->nv->mig_ci, handle, &id) == 0) inv->ci = (int32_t)id;
    return g;
}

int nvml_instances_open(struct nvml_gpu *g, struct error *e) {
    unsigned max = 0;
    if (g->gpu.inventory.mig_mode != 1 || NVML_CALL(g->nv->mig_max, g->handle, &max) < 0 || !g->nv->mig_by_index)
        return 0;
    for (unsigned i = 0; i < max && g->gpu.instance_count < MIG_MAX; i++) {
        nvml_handle handle;
        if (g->nv->mig_by_index(g->handle, i, &handle) != NVML_SUCCESS) continue; /* holes are usual */
        struct nvml_gpu *child = instance_open(g, handle);
        if (!child) return fail(e, -ENOMEM, "out of memory");
        if (!child->gpu.inventory.uuid[0]) {
            free(child);
            continue;
        }
        g->gpu.instance[g->gpu.instance_count++] = &child->gpu;
    }
    g->gpu.inventory.mig_count = (int32_t)g->gpu.instance_count;
    return 0;
}

int nvml_is_recut(struct gpu *gpu) {
    const struct nvml_gpu *g = nvml_of(gpu);
    unsigned now = 0, next = 0, max = 0, n = 0;
    if (gpu->inventory.mig_mode < 0) return 0;
    int r = NVML_CALL(g->nv->mig_mode, g->handle, &now, &next);
    if (r < 0 || (int32_t)now != gpu->inventory.mig_mode) return r < 0 ? r : 1;
    if (now != 1 || !g->nv->mig_by_index || NVML_CALL(g->nv->mig_max, g->handle, &max) < 0) return 0;
    for (unsigned i = 0; i < max && n < MIG_MAX; i++) {
        nvml_handle handle;
        char uuid[sizeof gpu->inventory.uuid] = "";
        if (g->nv->mig_by_index(g->handle, i, &handle) != NVML_SUCCESS) continue;
        text(g->nv->uuid, handle, uuid, sizeof uuid);
        if (!uuid[0]) continue;
        if (n >= gpu->instance_count || strcmp(uuid, gpu->instance[n]->inventory.uuid) != 0) return 1;
        n++;
    }
    return n != gpu->instance_count;
}
