/* XIDs as the driver reports them. Old ones are not replayed and some never come this way (the kernel log has them). */
#include <stdlib.h>

#include "base/clock.h"
#include "gpu/nvml.h"

#define AGAIN_NS (30 * NS_PER_S) /* GPUs that could not be registered are tried again after this */

struct nvml_events {
    struct gpu_events events; /* first */
    const struct nvml *nv;
    struct nvml_event_set *set;
    int64_t again_ns; /* 0: all are registered */
    unsigned count;
    struct {
        nvml_handle handle;
        unsigned index;
    } of[GPU_MAX];
};

static void set_free(struct nvml_events *ev) {
    if (ev->set && ev->nv->event_free) ev->nv->event_free(ev->set);
    ev->set = NULL;
}

void nvml_events_close(struct gpu_events *events) {
    struct nvml_events *ev = (struct nvml_events *)(void *)events;
    set_free(ev);
    free(ev);
}

/* A set with every GPU that lets itself be registered. */
static int set_make(struct nvml_events *ev) {
    set_free(ev);
    ev->again_ns = 0;
    int r = nvml_errno(ev->nv->event_set(&ev->set));
    if (r < 0) ev->set = NULL;
    for (unsigned i = 0; r == 0 && i < ev->count; i++)
        if (ev->nv->event_register(ev->of[i].handle, NVML_EVENT_XID, ev->set) != NVML_SUCCESS)
            ev->again_ns = clock_boot_ns() + AGAIN_NS;
    return r;
}

static bool tells_xids(const struct nvml *nv, nvml_handle h) {
    unsigned long long types = 0;
    if (!nv->event_types) return true;
    return nv->event_types(h, &types) == NVML_SUCCESS && types & NVML_EVENT_XID;
}

int nvml_events_open(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret,
                     struct error *e) {
    const struct nvml *nv = (const struct nvml *)(void *)d;
    if (!nv->event_set || !nv->event_register || !(nv->event_wait || nv->event_wait_v1))
        return fail(e, -ENOTSUP, "this driver reports no events");
    struct nvml_events *ev = calloc(1, sizeof *ev);
    if (!ev) return fail(e, -ENOMEM, "out of memory");
    ev->events.backend = &nvml_backend;
    ev->nv = nv;
    for (unsigned i = 0; i < n && ev->count < GPU_MAX; i++) {
        nvml_handle h = nvml_of(gpus[i])->handle;
        if (!tells_xids(nv, h)) continue;
        ev->of[ev->count].handle = h;
        ev->of[ev->count++].index = (unsigned)gpus[i]->inventory.index;
    }
    int r = ev->count ? set_make(ev) : fail(e, -ENOTSUP, "none of the GPUs reports XIDs");
    if (r < 0 && ev->count) fail(e, r, "the driver makes no set of events");
    if (r < 0) {
        nvml_events_close(&ev->events);
        return r;
    }
    *ret = &ev->events;
    return 0;
}

int nvml_events_wait(struct gpu_events *events, int timeout_ms, struct gpu_xid *ret) {
    struct nvml_events *ev = (struct nvml_events *)(void *)events;
    struct nvml_event data = {0}; /* large enough for the older, shorter form as well */
    if (!ev->set || (ev->again_ns && clock_boot_ns() > ev->again_ns)) {
        int made = set_make(ev);
        if (made < 0) return made;
    }
    nvml_return code =
        (ev->nv->event_wait ? ev->nv->event_wait : ev->nv->event_wait_v1)(ev->set, &data, (unsigned)timeout_ms);
    if (code == NVML_ERROR_TIMEOUT) return 0;
    int r = nvml_errno(code);
    if (r == -ENODEV) set_free(ev); /* a lost GPU makes every wait fail: the next set is without it */
    if (r < 0) return r;
    if (data.type != NVML_EVENT_XID || data.data == 0) return 0;
    for (unsigned i = 0; i < ev->count; i++) {
        if (ev->of[i].handle != data.device) continue;
        *ret = (struct gpu_xid){.index = ev->of[i].index, .code = data.data};
        return 1;
    }
    return 0;
}
