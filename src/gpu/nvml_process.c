/* Who is on a GPU: the compute, graphics and MPS lists as one, without doubles, and each process's share where several
 * share a GPU. The lists' entries differ in size between drivers; stride and offsets come from nvml.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/nvml.h"

#define LIST_MAX 1024u
#define ENTRY_MAX 32u
#define GRAPHICS_DEAR_NS 500000 /* a list that takes longer (4.5 ms on some laptops) is read one time in ten */

typedef nvml_return (*list_fn)(nvml_handle, unsigned *, void *);

struct raw_list {
    unsigned count;
    char entry[LIST_MAX * ENTRY_MAX];
};

static int list_get(const struct nvml_gpu *g, list_fn f, struct raw_list *l) {
    if (!f) return -ENOTSUP;
    l->count = (unsigned)(sizeof l->entry / ENTRY_MAX); /* room for the largest entry, whatever the driver writes */
    nvml_return code = f(g->handle, &l->count, l->entry);
    if (code == NVML_ERROR_INSUFFICIENT_SIZE) return -EAGAIN;
    int r = nvml_errno(code);
    if (r == 0 && l->count > LIST_MAX) return -EAGAIN;
    return r == -EINVAL ? -ENOTSUP : r;
}

static struct ring_process *find(struct ring_processes *p, uint32_t pid, uint32_t gi, uint32_t ci) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->of[i].pid == pid && p->of[i].gi == gi && p->of[i].ci == ci) return &p->of[i];
    return NULL;
}

static void merge(const struct nvml_gpu *g, const struct raw_list *l, uint32_t kind, struct ring_processes *p) {
    for (unsigned i = 0; i < l->count; i++) {
        struct nvml_process_v2 raw = {.gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE};
        memcpy(&raw, l->entry + (size_t)i * g->nv->process_stride, g->nv->process_has_instance ? sizeof raw : 16);
        if (raw.pid == 0) continue;
        struct ring_process *at = find(p, raw.pid, raw.gpu_instance, raw.compute_instance);
        uint64_t bytes = raw.used_memory == NVML_NOT_AVAILABLE ? PROCESS_NO_MEMORY : raw.used_memory;
        if (at) { /* both a compute and a graphics context: one process; the lists report the same memory */
            at->kinds |= kind;
            if (bytes != PROCESS_NO_MEMORY && (at->memory_bytes == PROCESS_NO_MEMORY || bytes > at->memory_bytes))
                at->memory_bytes = bytes;
            continue;
        }
        p->total++;
        if (p->count == RING_PROCESSES_MAX) continue;
        p->of[p->count++] = (struct ring_process){.pid = raw.pid,
                                                  .kinds = kind,
                                                  .memory_bytes = bytes,
                                                  .gi = raw.gpu_instance,
                                                  .ci = raw.compute_instance,
                                                  .sm = PROCESS_NO_SHARE,
                                                  .memory = PROCESS_NO_SHARE,
                                                  .encoder = PROCESS_NO_SHARE,
                                                  .decoder = PROCESS_NO_SHARE};
    }
}

static uint16_t percent(uint32_t v) { return v <= 100 ? (uint16_t)v : PROCESS_NO_SHARE; }

/* A process alone on its GPU has all of the GPU's utilisation; among several the driver's own samples tell. */
static void shares_apply(struct nvml_gpu *g, const struct sample *s, struct ring_processes *p) {
    if (p->total == 1 && p->count == 1) {
        if (sample_has(s, METRIC_UTIL_GPU)) p->of[0].sm = (uint16_t)(s->value[METRIC_UTIL_GPU] * 100 + 0.5);
        if (sample_has(s, METRIC_UTIL_MEMORY)) p->of[0].memory = (uint16_t)(s->value[METRIC_UTIL_MEMORY] * 100 + 0.5);
        return;
    }
    pthread_mutex_lock(&g->shares_lock);
    for (unsigned i = 0; i < g->share_count; i++)
        for (uint32_t k = 0; k < p->count; k++) {
            if (p->of[k].pid != g->share[i].pid) continue;
            p->of[k].sm = percent(g->share[i].sm);
            p->of[k].memory = percent(g->share[i].memory);
            p->of[k].encoder = percent(g->share[i].encoder);
            p->of[k].decoder = percent(g->share[i].decoder);
        }
    pthread_mutex_unlock(&g->shares_lock);
}

static bool graphics_is_due(struct nvml_gpu *g) {
    return g->graphics_ns < GRAPHICS_DEAR_NS || g->graphics_skipped++ % 10 == 0;
}

/* Few machines run MPS: an empty list is asked for again one time in ten. */
static bool mps_is_due(struct nvml_gpu *g) { return g->has_mps || g->mps_skipped++ % 10 == 0; }

int nvml_processes_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct raw_list l;
    struct ring_processes got;
    got.boot_ns = s->boot_ns;
    got.count = got.total = 0;
    int r = list_get(g, g->nv->compute, &l);
    if (r < 0) return r;
    merge(g, &l, PROCESS_COMPUTE, &got);
    if (graphics_is_due(g)) {
        int64_t began = clock_boot_ns();
        if (list_get(g, g->nv->graphics, &l) == 0) merge(g, &l, PROCESS_GRAPHICS, &got);
        g->graphics_ns = clock_boot_ns() - began;
    }
    if (mps_is_due(g)) {
        bool answered = list_get(g, g->nv->mps, &l) == 0;
        if (answered) merge(g, &l, PROCESS_MPS, &got);
        g->has_mps = answered && l.count > 0;
    }
    shares_apply(g, s, &got);
    sample_put(s, METRIC_PROCESSES, got.total);
    if (p) memcpy(p, &got, offsetof(struct ring_processes, of) + got.count * sizeof got.of[0]);
    return 0;
}

/* Only processes that did something are listed, so what is not there is at 0, not unknown. */
static void shares_keep(struct nvml_gpu *g, const struct nvml_process_utilization *u, unsigned n) {
    pthread_mutex_lock(&g->shares_lock);
    for (unsigned i = 0; i < g->share_count; i++)
        g->share[i].sm = g->share[i].memory = g->share[i].encoder = g->share[i].decoder = 0;
    for (unsigned i = 0; i < n; i++) {
        if (u[i].sm > 100 || u[i].memory > 100 || u[i].timestamp_us <= g->shares_seen_us) continue;
        unsigned k = 0;
        while (k < g->share_count && g->share[k].pid != u[i].pid) k++;
        if (k == NVML_SHARES_MAX) k = 0;
        if (k == g->share_count) g->share_count++;
        g->share[k] = u[i];
    }
    for (unsigned i = 0; i < n; i++)
        if (u[i].timestamp_us > g->shares_seen_us) g->shares_seen_us = u[i].timestamp_us;
    pthread_mutex_unlock(&g->shares_lock);
}

int nvml_shares_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct nvml_process_utilization u[512];
    unsigned n = ARRAY_LEN(u);
    if (!g->nv->process_share) return -ENOTSUP;
    if (!g->shares_seen_us) /* from 0 it would average over the whole buffer of the driver */
        g->shares_seen_us = (unsigned long long)(clock_real_ns() / NS_PER_US) - 1000000ull;
    memset(u, 0, sizeof u);
    nvml_return code = g->nv->process_share(g->handle, u, &n, g->shares_seen_us);
    if (code == NVML_ERROR_NOT_FOUND) n = 0;
    if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_FOUND) return nvml_errno(code);
    shares_keep(g, u, n < ARRAY_LEN(u) ? n : (unsigned)ARRAY_LEN(u));
    return 0;
}
