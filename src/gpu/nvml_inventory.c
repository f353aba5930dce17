/* What a card is: read once, when it is opened. Anything the driver will not say stays empty or -1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

#define TRIES 3
#define MIG_PLACES_MAX 32u

/* A question that is asked once must not fail by chance. That the GPU is lost is noted: what is read of it is no
 * inventory. */
#define ASK(g, function, ...)                                                                                          \
    ({                                                                                                                 \
        int got_ = -EAGAIN;                                                                                            \
        for (int try_ = 0; try_ < TRIES && got_ == -EAGAIN; try_++) got_ = NVML_CALL(function, __VA_ARGS__);           \
        note(g, got_);                                                                                                 \
    })

static int note(struct nvml_gpu *g, int r) {
    if (r == -ENODEV || r == -ENXIO) g->open_error = r;
    return r;
}

typedef nvml_return (*text_fn)(nvml_handle, char *, unsigned);
typedef nvml_return (*number_fn)(nvml_handle, unsigned *);

static int text(struct nvml_gpu *g, text_fn f, char *ret, unsigned room) {
    char got[128] = "";
    int r = ASK(g, f, g->handle, got, sizeof got < room ? sizeof got : room);
    got[sizeof got - 1] = 0;
    if (r == 0) snprintf(ret, room, "%.*s", (int)room - 1, got);
    return r;
}

static int32_t number(struct nvml_gpu *g, number_fn f) {
    unsigned v = 0;
    return ASK(g, f, g->handle, &v) == 0 && v <= INT32_MAX ? (int32_t)v : -1;
}

/* The first of two figures (now and after the next start), where only a switch is meant. */
static int32_t is_on(struct nvml_gpu *g, nvml_return (*f)(nvml_handle, unsigned *, unsigned *)) {
    unsigned now = 0, next = 0;
    return ASK(g, f, g->handle, &now, &next) == 0 && now <= 1 ? (int32_t)now : -1;
}

static int32_t clock_max(struct nvml_gpu *g, unsigned type) {
    unsigned mhz = 0;
    return ASK(g, g->nv->clock_max, g->handle, type, &mhz) == 0 && mhz <= UINT16_MAX ? (int32_t)mhz : -1;
}

static int32_t threshold(struct nvml_gpu *g, unsigned which) {
    unsigned v = 0;
    return ASK(g, g->nv->threshold, g->handle, which, &v) == 0 && v > 0 && v < 200 ? (int32_t)v : -1;
}

static int32_t margin(struct nvml_gpu *g, unsigned field) {
    int64_t v;
    int r = -EAGAIN;
    for (int i = 0; i < TRIES && r == -EAGAIN; i++) r = nvml_field_int(g, field, &v);
    return note(g, r) == 0 && v > -200 && v < 200 ? (int32_t)v : INT32_MIN;
}

static const char *architecture_name(unsigned arch) {
    static const char *const names[] = {[2] = "Kepler", "Maxwell", "Pascal", "Volta",    "Turing",
                                        "Ampere",       "Ada",     "Hopper", "Blackwell"};
    return arch < ARRAY_LEN(names) && names[arch] ? names[arch] : "";
}

static void graphics_clocks(struct nvml_gpu *g, struct inventory *inv, int32_t at) {
    unsigned mhz[512], n = ARRAY_LEN(mhz);
    int32_t count = 0;
    if (ASK(g, g->nv->graphics_clocks, g->handle, (unsigned)inv->clocks[at].mhz, &n, mhz) < 0) return;
    for (unsigned i = 0; i < n && i < ARRAY_LEN(mhz) && count < GRAPHICS_CLOCKS_MAX; i++)
        if (mhz[i] && mhz[i] <= UINT16_MAX) inv->clocks[at].graphics_mhz[count++] = (uint16_t)mhz[i];
    inv->clocks[at].graphics_count = count;
}

static void clocks(struct nvml_gpu *g, struct inventory *inv) {
    unsigned mhz[64], n = ARRAY_LEN(mhz);
    if (ASK(g, g->nv->memory_clocks, g->handle, &n, mhz) < 0) return;
    for (unsigned i = 0; i < n && i < ARRAY_LEN(mhz) && inv->memory_clocks < MEMORY_CLOCKS_MAX; i++) {
        if (!mhz[i] || mhz[i] > UINT16_MAX) continue;
        int32_t at = inv->memory_clocks++;
        inv->clocks[at].mhz = (int32_t)mhz[i];
        graphics_clocks(g, inv, at);
    }
}

static void limits(struct nvml_gpu *g, struct inventory *inv) {
    const struct nvml *nv = g->nv;
    unsigned min = 0, max = 0, usual = 0;
    if (ASK(g, nv->limit_range, g->handle, &min, &max) == 0 && min <= max && max <= INT32_MAX) {
        inv->limit_min_mw = (int32_t)min;
        inv->limit_max_mw = (int32_t)max;
    }
    if (ASK(g, nv->limit_default, g->handle, &usual) == 0 && usual <= INT32_MAX) inv->limit_default_mw = (int32_t)usual;
}

/* Which of the three ways of control the card has, as far as reading can tell: nothing is tried out. */
static uint32_t control(struct nvml_gpu *g, const struct inventory *inv) {
    const struct nvml *nv = g->nv;
    unsigned arch = 0, mhz, mw;
    uint32_t bits = 0;
    bool knows_arch = ASK(g, nv->architecture, g->handle, &arch) == 0;
    if (nv->set_limit && inv->limit_max_mw > inv->limit_min_mw && ASK(g, nv->limit, g->handle, &mw) == 0)
        bits |= CONTROL_POWER;
    if (nv->lock_clocks && knows_arch && arch >= NVML_ARCH_VOLTA && inv->memory_clocks) bits |= CONTROL_LOCKED_CLOCKS;
    if (nv->set_app_clocks && ASK(g, nv->app_clock, g->handle, NVML_CLOCK_GRAPHICS, &mhz) == 0 && inv->memory_clocks)
        bits |= CONTROL_APP_CLOCKS;
    return bits;
}

static void links(struct nvml_gpu *g, struct inventory *inv) {
    unsigned state;
    inv->nvlinks = 0;
    while (inv->nvlinks < NVML_NVLINK_MAX &&
           ASK(g, g->nv->nvlink_state, g->handle, (unsigned)inv->nvlinks, &state) == 0)
        inv->nvlinks++;
}

/* The numbers lie where they always lay; the text of the address moved between the versions of the struct. */
static void pci_address(struct nvml_gpu *g, struct inventory *inv) {
    struct nvml_pci_info pci = {0};
    if (ASK(g, g->nv->pci, g->handle, &pci) == 0 && pci.bus_id[0])
        snprintf(inv->pci, sizeof inv->pci, "%.*s", (int)sizeof inv->pci - 1, pci.bus_id);
    else if (ASK(g, g->nv->pci_v2, g->handle, &pci) == 0 || ASK(g, g->nv->pci_v1, g->handle, &pci) == 0)
        snprintf(inv->pci, sizeof inv->pci, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
}

/* Keyed by UUID; a GPU that will not tell it has its address as key, which says that it is one. */
static void identity(struct nvml_gpu *g, struct inventory *inv) {
    const struct nvml *nv = g->nv;
    int r = text(g, nv->uuid, inv->uuid, sizeof inv->uuid);
    if ((r == -EACCES || r == -ENOTSUP) && inv->pci[0]) snprintf(inv->uuid, sizeof inv->uuid, "PCI-%s", inv->pci);
    text(g, nv->name, inv->name, sizeof inv->name);
    snprintf(inv->driver, sizeof inv->driver, "%s", g->gpu.driver->version);
    snprintf(inv->library, sizeof inv->library, "%.79s", g->gpu.driver->library);
}

static unsigned fans(struct nvml_gpu *g) {
    unsigned n = 0;
    if (ASK(g, g->nv->fan_count, g->handle, &n) == 0 && n <= 16) return n;
    return ASK(g, g->nv->fan_speed, g->handle, &n) == 0;
}

static void temperatures(struct nvml_gpu *g, struct inventory *inv) {
    inv->temp_shutdown_c = threshold(g, NVML_THRESHOLD_SHUTDOWN);
    inv->temp_slowdown_c = threshold(g, NVML_THRESHOLD_SLOWDOWN);
    inv->temp_memory_max_c = threshold(g, NVML_THRESHOLD_MEM_MAX);
    inv->temp_gpu_max_c = threshold(g, NVML_THRESHOLD_GPU_MAX);
    inv->margin_shutdown_c = margin(g, NVML_FI_TLIMIT_SHUTDOWN);
    inv->margin_slowdown_c = margin(g, NVML_FI_TLIMIT_SLOWDOWN);
    inv->margin_memory_c = margin(g, NVML_FI_TLIMIT_MEM_MAX);
    inv->margin_gpu_c = margin(g, NVML_FI_TLIMIT_GPU_MAX);
}

void nvml_inventory_read(struct nvml_gpu *g, unsigned index) {
    const struct nvml *nv = g->nv;
    struct inventory *inv = &g->gpu.inventory;
    unsigned arch = 0;
    inventory_init(inv, (int32_t)index);
    pci_address(g, inv);
    identity(g, inv);
    text(g, nv->serial, inv->serial, NVML_SERIAL_SIZE);
    text(g, nv->vbios, inv->vbios, sizeof inv->vbios);
    text(g, nv->board_part, inv->board_part, sizeof inv->board_part);
    text(g, nv->inforom, inv->inforom, sizeof inv->inforom);
    if (ASK(g, nv->architecture, g->handle, &arch) == 0)
        snprintf(inv->architecture, sizeof inv->architecture, "%s", architecture_name(arch));
    inv->minor = number(g, nv->minor);
    inv->cores = number(g, nv->cores);
    inv->bus_width = number(g, nv->bus_width);
    inv->pcie_gen_max = number(g, nv->pcie_gen_max);
    inv->pcie_width_max = number(g, nv->pcie_width_max);
    inv->persistence = number(g, nv->persistence);
    inv->ecc = is_on(g, nv->ecc_mode);
    inv->mig_mode = is_on(g, nv->mig_mode);
    inv->clock_sm_max_mhz = clock_max(g, NVML_CLOCK_SM);
    inv->clock_memory_max_mhz = clock_max(g, NVML_CLOCK_MEM);
    temperatures(g, inv);
    clocks(g, inv);
    limits(g, inv);
    links(g, inv);
    inv->control = control(g, inv);
    g->fans = fans(g);
    g->is_integrated = nvml_is_integrated(inv->name);
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
    inventory_init(inv, parent->gpu.inventory.index);
    identity(g, inv);
    inv->mig_mode = 1;
    memcpy(inv->pci, parent->gpu.inventory.pci, sizeof inv->pci);
    if (ASK(g, g->nv->mig_gi, handle, &id) == 0) inv->gi = (int32_t)id;
    if (ASK(g, g->nv->mig_ci, handle, &id) == 0) inv->ci = (int32_t)id;
    return g;
}

int nvml_instances_open(struct nvml_gpu *g, struct error *e) {
    unsigned max = 0;
    if (g->gpu.inventory.mig_mode != 1 || ASK(g, g->nv->mig_max, g->handle, &max) < 0) return 0;
    for (unsigned i = 0; i < max && i < MIG_PLACES_MAX && g->gpu.instance_count < MIG_MAX; i++) {
        nvml_handle handle;
        if (ASK(g, g->nv->mig_by_index, g->handle, i, &handle) < 0) continue; /* holes are usual */
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
    struct nvml_gpu *g = nvml_of(gpu);
    unsigned now = 0, next = 0, max = 0, n = 0;
    if (gpu->inventory.mig_mode < 0) return 0;
    int r = NVML_CALL(g->nv->mig_mode, g->handle, &now, &next);
    if (r < 0) return r;
    if (now <= 1 && (int32_t)now != gpu->inventory.mig_mode) return 1;
    if (now != 1 || ASK(g, g->nv->mig_max, g->handle, &max) < 0) return 0;
    for (unsigned i = 0; i < max && i < MIG_PLACES_MAX && n < MIG_MAX; i++) {
        nvml_handle handle;
        char uuid[sizeof gpu->inventory.uuid] = "";
        if (ASK(g, g->nv->mig_by_index, g->handle, i, &handle) < 0) continue;
        if (ASK(g, g->nv->uuid, handle, uuid, sizeof uuid - 1) < 0 || !uuid[0]) continue;
        if (n >= gpu->instance_count || strcmp(uuid, gpu->instance[n]->inventory.uuid) != 0) return 1;
        n++;
    }
    return n != gpu->instance_count;
}
