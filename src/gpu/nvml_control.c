/* The setters of NVML. See control.h: who may call these, and that nobody else does. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/control.h"
#include "gpu/nvml.h"

#define NO_LEVER "neither power limit nor clocks of this card can be set"

static const struct {
    const char *name, *unit;
} kinds[] = {
    [LEVER_NONE] = {"none",               ""   },
    [LEVER_POWER] = {"power limit",        "W"  },
    [LEVER_CLOCKS] = {"locked clocks",      "MHz"},
    [LEVER_APP_CLOCKS] = {"application clocks", "MHz"}
};

const char *gpu_lever_name(enum gpu_lever_kind kind) { return kinds[kind].name; }

const char *gpu_lever_unit(enum gpu_lever_kind kind) { return kinds[kind].unit; }

/* The graphics clocks that go with the highest memory clock: what compute runs at. */
static void steps_take(const struct inventory *inv, struct gpu_lever *l) {
    l->memory_mhz = inv->clocks[0].mhz;
    l->steps = (unsigned)inv->clocks[0].graphics_count;
    memcpy(l->step_mhz, inv->clocks[0].graphics_mhz, sizeof l->step_mhz);
    l->top = l->floor = l->step_mhz[0];
    for (unsigned i = 1; i < l->steps; i++) {
        l->top = fmax(l->top, l->step_mhz[i]);
        l->floor = fmin(l->floor, l->step_mhz[i]);
    }
    l->usual = l->top;
}

void gpu_lever_find(struct gpu *gpu, struct gpu_lever *ret) {
    struct nvml_gpu *g = nvml_of(gpu);
    const struct inventory *inv = &gpu->inventory;
    unsigned mhz = 0;
    *ret = (struct gpu_lever){.kind = LEVER_NONE};
    snprintf(ret->why, sizeof ret->why, NO_LEVER);
    if (inv->control & CONTROL_POWER) {
        ret->kind = LEVER_POWER;
        ret->floor = inv->limit_min_mw / 1e3;
        ret->top = inv->limit_max_mw / 1e3;
        ret->usual = inv->limit_default_mw >= 0 ? inv->limit_default_mw / 1e3 : ret->top;
        snprintf(ret->why, sizeof ret->why, "the card has a power limit that can be set");
        return;
    }
    if (!inv->memory_clocks || inv->clocks[0].graphics_count == 0) return;
    if (inv->control & CONTROL_LOCKED_CLOCKS) {
        ret->kind = LEVER_CLOCKS;
        steps_take(inv, ret);
        snprintf(ret->why, sizeof ret->why, "its power limit cannot be set, its clocks can be locked");
    } else if (inv->control & CONTROL_APP_CLOCKS) {
        ret->kind = LEVER_APP_CLOCKS;
        steps_take(inv, ret);
        if (NVML_CALL(g->nv->app_clock_default, g->handle, NVML_CLOCK_GRAPHICS, &mhz) == 0) ret->usual = mhz;
        if (NVML_CALL(g->nv->app_clock, g->handle, NVML_CLOCK_MEM, &mhz) == 0) ret->memory_mhz = mhz;
        snprintf(ret->why, sizeof ret->why, "an older card: it has application clocks only");
    }
}

int gpu_lever_get(struct gpu *gpu, const struct gpu_lever *l, double *ret) {
    struct nvml_gpu *g = nvml_of(gpu);
    unsigned v = 0;
    int r = -ENOTSUP;
    if (l->kind == LEVER_POWER) r = NVML_CALL(g->nv->limit, g->handle, &v);
    if (l->kind == LEVER_APP_CLOCKS) r = NVML_CALL(g->nv->app_clock, g->handle, NVML_CLOCK_GRAPHICS, &v);
    if (r == 0) *ret = l->kind == LEVER_POWER ? v / 1e3 : v;
    return r;
}

double gpu_lever_fit(const struct gpu_lever *l, double v) {
    v = v < l->floor ? l->floor : v > l->top ? l->top : v;
    if (l->kind == LEVER_POWER) return round(v * 1e3) / 1e3;
    double best = l->floor; /* the highest clock that is not above */
    for (unsigned i = 0; i < l->steps; i++)
        if (l->step_mhz[i] <= v && l->step_mhz[i] > best) best = l->step_mhz[i];
    return best;
}

int gpu_lever_reset(struct gpu *gpu, const struct gpu_lever *l) {
    struct nvml_gpu *g = nvml_of(gpu);
    switch (l->kind) {
    case LEVER_POWER: return gpu_lever_set(gpu, l, l->usual);
    case LEVER_CLOCKS: return NVML_CALL(g->nv->unlock_clocks, g->handle);
    case LEVER_APP_CLOCKS: return NVML_CALL(g->nv->reset_app_clocks, g->handle);
    case LEVER_NONE: break;
    }
    return -ENOTSUP;
}

int gpu_lever_set(struct gpu *gpu, const struct gpu_lever *l, double v) {
    struct nvml_gpu *g = nvml_of(gpu);
    double fit = gpu_lever_fit(l, v);
    switch (l->kind) {
    case LEVER_POWER: return NVML_CALL(g->nv->set_limit, g->handle, (unsigned)lround(fit * 1e3));
    case LEVER_CLOCKS:
        if (v >= l->top) return gpu_lever_reset(gpu, l);
        return NVML_CALL(g->nv->lock_clocks, g->handle, (unsigned)l->floor, (unsigned)fit);
    case LEVER_APP_CLOCKS: return NVML_CALL(g->nv->set_app_clocks, g->handle, (unsigned)l->memory_mhz, (unsigned)fit);
    case LEVER_NONE: break;
    }
    return -ENOTSUP;
}
