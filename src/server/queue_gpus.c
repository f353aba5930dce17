/* The GPUs that can be given away: what live knows of them, what their nodes measured, who took one out of service. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

static void gpu_done(struct queue_gpu *g) {
    free(g->cordon);
    free(g->cordon_who);
}

void queue_gpus_done(struct queue *q) {
    for (size_t i = 0; i < q->gpus; i++) gpu_done(&q->gpu[i]);
    free(q->gpu);
    q->gpu = NULL;
    q->gpus = 0;
}

struct queue_gpu *queue_gpu_find(const struct queue *q, const char *uuid) {
    for (size_t i = 0; i < q->gpus; i++)
        if (strcmp(q->gpu[i].uuid, uuid) == 0) return &q->gpu[i];
    return NULL;
}

bool queue_gpu_is(const struct queue_gpu *g, const char *word) {
    char name[QUEUE_GPU_NAME];
    queue_gpu_name(g, name);
    return strcmp(word, name) == 0 || strcmp(word, g->uuid) == 0;
}

void queue_gpu_name(const struct queue_gpu *g, char ret[QUEUE_GPU_NAME]) {
    if (g->instance < 0)
        snprintf(ret, QUEUE_GPU_NAME, "%d", g->index);
    else
        snprintf(ret, QUEUE_GPU_NAME, "%d:%d", g->index, g->instance);
}

struct queue_gpu *queue_gpu_make(struct queue *q, const char *uuid) {
    struct queue_gpu *known = queue_gpu_find(q, uuid);
    if (known) return known;
    q->gpu = realloc(q->gpu, (q->gpus + 1) * sizeof *q->gpu);
    if (!q->gpu) abort();
    struct queue_gpu *g = &q->gpu[q->gpus++];
    *g = (struct queue_gpu){.index = -1, .instance = -1, .temp_c = NAN, .is = {.verdict = OCCUPANCY_UNKNOWN}};
    snprintf(g->uuid, sizeof g->uuid, "%s", uuid);
    return g;
}

/* A card that is cut into instances is given away by these, not as a whole. */
static bool has_instances(const struct live_node *n, uint16_t device) {
    for (uint16_t i = 0; i < n->devices; i++)
        if (n->device[i].is_known && n->device[i].is.parent == device) return true;
    return false;
}

/* Which of its card's, in the driver's order. */
static int instance_of(const struct live_node *n, uint16_t device) {
    int32_t parent = n->device[device].is.parent;
    int before = 0;
    if (parent < 0) return -1;
    for (uint16_t i = 0; i < device; i++) before += n->device[i].is_known && n->device[i].is.parent == parent;
    return before;
}

static uint64_t memory_of(const struct live_node *n, const struct live_device *d) {
    int64_t now_ns = live_node_now(n, clock_boot_ns());
    if (latest_has(&d->latest, METRIC_MEMORY_TOTAL, now_ns)) return (uint64_t)d->latest.of[METRIC_MEMORY_TOTAL].value;
    return d->latest.of[METRIC_MEMORY_TOTAL].value > 0 ? (uint64_t)d->latest.of[METRIC_MEMORY_TOTAL].value : 0;
}

/* Its memory, which a card tells seldom, and its temperature. */
static void read_figures(struct queue_gpu *g, const struct live_node *n, const struct live_device *d) {
    int64_t now_ns = live_node_now(n, clock_boot_ns());
    uint64_t bytes = memory_of(n, d);
    if (bytes) g->memory_bytes = bytes;
    g->temp_c = latest_has(&d->latest, METRIC_TEMP_CORE, now_ns) ? d->latest.of[METRIC_TEMP_CORE].value : NAN;
}

static int by_place(const void *a, const void *b) {
    const struct queue_gpu *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    if (order) return order;
    if (x->index != y->index) return (x->index > y->index) - (x->index < y->index);
    return x->instance != y->instance ? (x->instance > y->instance) - (x->instance < y->instance)
                                      : strcmp(x->uuid, y->uuid);
}

static void read_node(struct queue *q, const struct live_node *n) {
    for (uint16_t i = 0; i < n->devices; i++) {
        const struct live_device *d = &n->device[i];
        if (!d->is_known || has_instances(n, i)) continue;
        struct queue_gpu *g = queue_gpu_make(q, d->is.uuid);
        snprintf(g->node, sizeof g->node, "%s", n->name);
        g->index = d->is.index;
        g->instance = instance_of(n, i);
        g->is_here = n->link && n->is_welcomed;
        read_figures(g, n, d);
    }
}

void queue_gpus_read(struct queue *q) {
    bool is_other = q->live_shape != q->live->shape;
    if (!is_other && !q->is_gpus_old) return;
    for (size_t i = 0; i < q->gpus; i++) {
        q->gpu[i].is_here = false;
        q->gpu[i].index = -1; /* unless a machine has it still */
    }
    for (size_t i = 0; i < q->live->count; i++) read_node(q, q->live->node[i]);
    if (is_other) {
        q->gpu_shape++;
        if (q->gpus) qsort(q->gpu, q->gpus, sizeof *q->gpu, by_place);
    }
    q->live_shape = q->live->shape;
    q->is_gpus_old = false;
}

int queue_take_free(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_frees list;
    struct wire_free is;
    int r = wire_get_frees(f, &list, e);
    if (r < 0) return r;
    q->is_gpus_old = true;
    queue_gpus_read(q);
    while (wire_next_free(&list, &is)) {
        struct queue_gpu *g = queue_gpu_find(q, is.uuid);
        if (!g || strcmp(g->node, n->name) != 0) continue;
        g->is = is;
        if (is.verdict == OCCUPANCY_FREE) g->is_lent = false; /* whoever we let in has left */
    }
    queue_want_pass(q);
    return 0;
}
