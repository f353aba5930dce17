/* XIDs as the driver reports them. Old ones are not replayed and some never come this way (the kernel log has them). */
#include <errno.h>
#include <stdlib.h>

#include "gpu/nvml.h"

struct nvml_events {
    struct gpu_events events; /* first */
    const struct nvml *nv;
    struct nvml_event_set *set;
    unsigned count;
    struct {
        nvml_handle handle;
        unsigned index;
    } of[GPU_MAX];
};

void nvml_events_close(struct gpu_events *events) {
    struct nvml_events *ev = (struct nvml_events *)(void *)events;
    if (ev->set && ev->nv->event_free) ev->nv->event_free(ev->set);
    free(ev);
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
    nvml_return code = nv->event_set(&ev->set);
    if (code != NVML_SUCCESS) {
        free(ev);
        return fail(e, nvml_errno(code), "events: %s", nvml_words(code));
    }
    for (unsigned i = 0; i < n && ev->count < GPU_MAX; i++) {
        nvml_handle h = nvml_of(gpus[i])->handle;
        unsigned long long types = 0;
        if (nv->event_types && nv->event_types(h, &types) != NVML_SUCCESS) continue;
        if (nv->event_types && !(types & NVML_EVENT_XID)) continue;
        if (nv->event_register(h, NVML_EVENT_XID, ev->set) != NVML_SUCCESS) continue;
        ev->of[ev->count].handle = h;
        ev->of[ev->count++].index = (unsigned)gpus[i]->inventory.index;
    }
    if (!ev->count) {
        nvml_events_close(&ev->events);
        return fail(e, -ENOTSUP, "none of the GPUs reports XIDs");
    }
    *ret = &ev->events;
    return 0;
}

int nvml_events_wait(struct gpu_events *events, int timeout_ms, struct gpu_xid *ret) {
    struct nvml_events *ev = (struct nvml_events *)(void *)events;
    struct nvml_event data = {0}; /* large enough for the older, shorter form as well */
    nvml_return code =
        (ev->nv->event_wait ? ev->nv->event_wait : ev->nv->event_wait_v1)(ev->set, &data, (unsigned)timeout_ms);
    if (code == NVML_ERROR_TIMEOUT) return 0;
    int r = nvml_errno(code);
    if (r < 0) return r;
    if (data.type != NVML_EVENT_XID || data.data == 0) return 0;
    for (unsigned i = 0; i < ev->count; i++) {
        if (ev->of[i].handle != data.device) continue;
        *ret = (struct gpu_xid){.index = ev->of[i].index, .code = data.data};
        return 1;
    }
    return 0;
}
