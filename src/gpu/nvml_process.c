/* Who is on a GPU: the compute, graphics and MPS lists as one, without doubles, and each process's share where several
 * share a GPU. The lists' entries differ in size between drivers; nvml.c chose the calls and their strides. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/nvml.h"

#define LIST_FIRST 64u
#define LIST_MAX 65536u
#define ENTRY_MAX 32u
#define UNTOUCHED 0xa5
#define LIST_DEAR_NS 500000 /* a list that takes longer (4.5 ms on some laptops) is read one time in ten */
#define SAMPLES_FIRST 128u
#define MEMORY_MAX (1ull << 56) /* more is no figure but a way to say nothing */

/* ---- lists ---- */

static int list_grow(struct nvml_list *l, unsigned room) {
    if (room > LIST_MAX) room = LIST_MAX;
    if (room <= l->room) return -EAGAIN;
    char *more = realloc(l->entry, (size_t)room * ENTRY_MAX); /* the largest entry, whatever the driver writes */
    if (!more) return -EAGAIN;
    l->entry = more;
    l->room = room;
    return 0;
}

/* The symbols may speak for entries of 32 bytes where the driver writes 24: then what the last ones would cover is
 * as it was before. */
static unsigned true_stride(const struct nvml_list *l, unsigned n, unsigned stride) {
    if (stride != 32) return stride;
    for (size_t at = (size_t)n * 24; at < (size_t)n * 32; at++)
        if ((unsigned char)l->entry[at] != UNTOUCHED) return 32;
    return 24;
}

/* Processes come and go between two calls, so a list that was too small is made larger than was said. */
static int list_get(const struct nvml_gpu *g, unsigned kind, struct nvml_list *l) {
    const struct nvml_list_call *call = &g->nv->list[kind];
    if (!call->get) return -ENOTSUP;
    unsigned want = l->room ? l->room : LIST_FIRST;
    for (;;) {
        if (want > l->room && list_grow(l, want) < 0) return -EAGAIN;
        unsigned n = l->room;
        if (call->stride == 32) memset(l->entry, UNTOUCHED, (size_t)l->room * ENTRY_MAX);
        nvml_return code = call->get(g->handle, &n, l->entry);
        if (code == NVML_ERROR_INSUFFICIENT_SIZE && l->room < LIST_MAX) {
            want = 2 * (n > l->room && n < LIST_MAX ? n : l->room) + 5;
            continue;
        }
        int r = nvml_errno(code);
        if (r == 0 && n > l->room) r = -EAGAIN;
        if (r < 0) return r;
        l->stride = true_stride(l, n, call->stride);
        l->count = n;
        return 0;
    }
}

/* One time in ten: graphics processes where that list is dear, and MPS where none was there. */
static bool is_due(struct nvml_list *l, unsigned kind) {
    bool is_rare = kind == NVML_LIST_GRAPHICS ? l->cost_ns > LIST_DEAR_NS : kind == NVML_LIST_MPS && l->count == 0;
    return !is_rare || l->skipped++ % 10 == 0;
}

/* What was not read this time stays as it was last seen, so that nobody seems to come and go. */
static int list_refresh(struct nvml_gpu *g, unsigned kind) {
    struct nvml_list *l = &g->list[kind];
    if (nvml_lacks(&g->parts, PART_LIST + kind)) return -ENOTSUP;
    if (!is_due(l, kind)) return 0;
    int64_t began_ns = clock_boot_ns();
    int r = nvml_learn(&g->parts, PART_LIST + kind, list_get(g, kind, l));
    l->cost_ns = clock_boot_ns() - began_ns;
    return r;
}

void nvml_lists_done(struct nvml_gpu *g) {
    for (unsigned kind = 0; kind < NVML_LISTS; kind++) {
        free(g->list[kind].entry);
        g->list[kind] = (struct nvml_list){0};
    }
}

/* ---- one list of all ---- */

/* Processes beyond what the ring shows are counted only; a key each, to count none twice. */
struct beyond {
    uint64_t *key;
    size_t count, room;
};

static void beyond_done(struct beyond *b) { free(b->key); }

static void beyond_add(struct beyond *b, const struct nvml_process_v2 *raw) {
    if (b->count == b->room) {
        size_t room = b->room ? 2 * b->room : 256;
        uint64_t *more = realloc(b->key, room * sizeof *more);
        if (!more) return;
        b->key = more;
        b->room = room;
    }
    b->key[b->count++] = raw->pid | (uint64_t)(uint16_t)raw->gpu_instance << 32 | (uint64_t)raw->compute_instance << 48;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t beyond_total(struct beyond *b) {
    uint32_t total = 0;
    if (b->count) qsort(b->key, b->count, sizeof b->key[0], by_value);
    for (size_t i = 0; i < b->count; i++) total += i == 0 || b->key[i] != b->key[i - 1];
    return total;
}

static struct ring_process *find(struct ring_processes *p, const struct nvml_process_v2 *raw) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->of[i].pid == raw->pid && p->of[i].gi == raw->gpu_instance && p->of[i].ci == raw->compute_instance)
            return &p->of[i];
    return NULL;
}

/* Both a compute and a graphics context: one process; the lists report the same memory. */
static void merge(struct ring_process *at, const struct ring_process *more) {
    at->kinds |= more->kinds;
    if (more->memory_bytes == PROCESS_NO_MEMORY) return;
    if (at->memory_bytes == PROCESS_NO_MEMORY || more->memory_bytes > at->memory_bytes)
        at->memory_bytes = more->memory_bytes;
}

static void list_add(const struct nvml_list *l, uint32_t kind, struct ring_processes *p, struct beyond *b) {
    for (unsigned i = 0; i < l->count; i++) {
        struct nvml_process_v2 raw = {.gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE};
        memcpy(&raw, l->entry + (size_t)i * l->stride, l->stride > 16 ? sizeof raw : 16);
        if (raw.pid == 0) continue;
        const struct ring_process new = {.pid = raw.pid,
                                         .kinds = kind,
                                         .memory_bytes =
                                             raw.used_memory < MEMORY_MAX ? raw.used_memory : PROCESS_NO_MEMORY,
                                         .gi = raw.gpu_instance,
                                         .ci = raw.compute_instance,
                                         .sm = PROCESS_NO_SHARE,
                                         .memory = PROCESS_NO_SHARE,
                                         .encoder = PROCESS_NO_SHARE,
                                         .decoder = PROCESS_NO_SHARE};
        struct ring_process *at = find(p, &raw);
        if (at)
            merge(at, &new);
        else if (p->count < RING_PROCESSES_MAX)
            p->of[p->count++] = new;
        else
            beyond_add(b, &raw);
    }
}

/* ---- shares ---- */

static uint16_t percent(uint32_t v) { return v <= 100 ? (uint16_t)v : PROCESS_NO_SHARE; }

static struct nvml_share share_of(const struct nvml_gpu *g, uint32_t pid) {
    for (unsigned i = 0; i < g->share_count; i++)
        if (g->share[i].pid == pid) return g->share[i];
    return (struct nvml_share){.pid = pid,
                               .sm = PROCESS_NO_SHARE,
                               .memory = PROCESS_NO_SHARE,
                               .encoder = PROCESS_NO_SHARE,
                               .decoder = PROCESS_NO_SHARE};
}

/* A process alone on its GPU has all of the GPU's utilisation; among several the driver's own samples tell. Shares are
 * kept for those who are in the list, and for nobody else: a pid that comes back is somebody new. */
static void shares_apply(struct nvml_gpu *g, const struct sample *s, struct ring_processes *p) {
    pthread_mutex_lock(&g->shares_lock);
    if (p->total == 1 && p->count == 1) {
        g->share_count = 0;
        if (sample_has(s, METRIC_UTIL_GPU)) p->of[0].sm = (uint16_t)(s->value[METRIC_UTIL_GPU] * 100 + 0.5);
        if (sample_has(s, METRIC_UTIL_MEMORY)) p->of[0].memory = (uint16_t)(s->value[METRIC_UTIL_MEMORY] * 100 + 0.5);
    } else {
        struct nvml_share next[RING_PROCESSES_MAX];
        for (uint32_t i = 0; i < p->count; i++) {
            next[i] = share_of(g, p->of[i].pid);
            p->of[i].sm = next[i].sm;
            p->of[i].memory = next[i].memory;
            p->of[i].encoder = next[i].encoder;
            p->of[i].decoder = next[i].decoder;
        }
        memcpy(g->share, next, p->count * sizeof next[0]);
        g->share_count = p->count;
    }
    pthread_mutex_unlock(&g->shares_lock);
}

/* Only processes that did something are sampled, so who is listed and not sampled is at 0, not unknown. */
static void shares_keep(struct nvml_gpu *g, const struct nvml_process_utilization *u, unsigned n) {
    unsigned long long newest_us = g->shares_seen_us;
    pthread_mutex_lock(&g->shares_lock);
    for (unsigned i = 0; i < g->share_count; i++) g->share[i] = (struct nvml_share){.pid = g->share[i].pid};
    for (unsigned i = 0; i < n; i++) {
        if (u[i].sm > 100 || u[i].memory > 100 || u[i].timestamp_us <= g->shares_seen_us) continue;
        if (u[i].timestamp_us > newest_us) newest_us = u[i].timestamp_us;
        for (unsigned k = 0; k < g->share_count; k++) {
            if (g->share[k].pid != u[i].pid || g->share[k].at_us >= u[i].timestamp_us) continue;
            g->share[k] = (struct nvml_share){.pid = u[i].pid,
                                              .sm = percent(u[i].sm),
                                              .memory = percent(u[i].memory),
                                              .encoder = percent(u[i].encoder),
                                              .decoder = percent(u[i].decoder),
                                              .at_us = u[i].timestamp_us};
        }
    }
    pthread_mutex_unlock(&g->shares_lock);
    g->shares_seen_us = newest_us;
}

static void shares_forget(struct nvml_gpu *g) {
    pthread_mutex_lock(&g->shares_lock);
    g->share_count = 0;
    pthread_mutex_unlock(&g->shares_lock);
}

/* From 0 it would average over the whole buffer of the driver; from a moment to come, after the clock was set back,
 * nothing would ever be new. */
static unsigned long long seen_from(unsigned long long seen_us) {
    unsigned long long now_us = (unsigned long long)(clock_real_ns() / NS_PER_US);
    return seen_us == 0 || seen_us > now_us + 60000000ull ? now_us - 1000000ull : seen_us;
}

/* ---- the two calls ---- */

int nvml_processes_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    static const uint32_t kinds[NVML_LISTS] = {PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS};
    AUTO(beyond_done) struct beyond beyond = {0};
    struct ring_processes got;
    got.boot_ns = s->boot_ns;
    got.count = 0;
    int result = -ENOTSUP;
    for (unsigned kind = 0; kind < NVML_LISTS; kind++) {
        int r = list_refresh(g, kind);
        if (r < 0 && r != -ENOTSUP && kind == NVML_LIST_COMPUTE) return r; /* most of the list: better none at all */
        result = nvml_join(result, r);
    }
    if (result < 0) return result;
    for (unsigned kind = 0; kind < NVML_LISTS; kind++) list_add(&g->list[kind], kinds[kind], &got, &beyond);
    got.total = got.count + beyond_total(&beyond);
    shares_apply(g, s, &got);
    sample_put(s, METRIC_PROCESSES, got.total);
    if (p) memcpy(p, &got, offsetof(struct ring_processes, of) + got.count * sizeof got.of[0]);
    return 0;
}

static int samples_get(struct nvml_gpu *g, struct nvml_process_utilization *u, unsigned *n) {
    memset(u, 0, *n * sizeof *u);
    unsigned room = *n;
    nvml_return code = g->nv->process_share(g->handle, u, n, g->shares_seen_us);
    if (code == NVML_ERROR_NOT_FOUND) *n = 0; /* nobody did anything */
    if (code == NVML_SUCCESS && *n > room) *n = room;
    return code == NVML_ERROR_NOT_FOUND ? 0 : nvml_errno(code);
}

int nvml_shares_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct nvml_process_utilization u[SAMPLES_FIRST];
    unsigned n = SAMPLES_FIRST;
    if (!g->nv->process_share) return -ENOTSUP;
    g->shares_seen_us = seen_from(g->shares_seen_us);
    int r = samples_get(g, u, &n);
    if (r == 0) shares_keep(g, u, n);
    if (r == -ENOBUFS && n > SAMPLES_FIRST && n <= LIST_MAX / 2) {
        n = 2 * n + 5;
        struct nvml_process_utilization *many = calloc(n, sizeof *many);
        r = many ? samples_get(g, many, &n) : -EAGAIN;
        if (r == 0) shares_keep(g, many, n);
        free(many);
    }
    if (r < 0) shares_forget(g);
    return r;
}
