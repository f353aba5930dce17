/* What jobs ask for, each kind once: ten thousand waiting jobs are of a few kinds, and what does not fit for one does not fit
 * for the next. */
#include <string.h>

#include "model/plan_own.h"

static uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v;
    h *= 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

static struct shape shape_of(const struct plan *p, const struct plan_job *j) {
    struct shape s = {
        .memory = j->memory_bytes,
        .share = j->share_bytes,
        .scope = j->scope,
        .scope_len = j->is_scoped ? j->scope_len : 0,
        .node = j->node,
        .user = p->w->windows ? j->user : PLAN_NONE,
        .next = PLAN_NONE,
        .gpus = j->gpus,
        .is_scoped = j->is_scoped,
        .is_listed = j->is_listed && j->is_scoped,
        .now_most = PLAN_NEVER,
    };
    uint64_t h = mix(mix(1, s.memory), s.share);
    h = mix(h, (uint64_t)s.node << 32 | s.user);
    h = mix(h, (uint64_t)s.gpus << 2 | (uint64_t)s.is_scoped << 1 | s.is_listed);
    for (uint32_t i = 0; i < s.scope_len; i++) h = mix(h, s.scope[i] + 1ull);
    s.hash = h;
    return s;
}

static bool is_same(const struct shape *a, const struct shape *b) {
    return a->hash == b->hash && a->memory == b->memory && a->share == b->share && a->node == b->node &&
           a->user == b->user && a->gpus == b->gpus && a->is_scoped == b->is_scoped && a->is_listed == b->is_listed &&
           a->scope_len == b->scope_len &&
           (!a->scope_len || memcmp(a->scope, b->scope, a->scope_len * sizeof *a->scope) == 0);
}

static bool would_do(const struct plan *p, const struct shape *s, uint32_t gpu) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    return !p->is_out[gpu] && g->memory_bytes >= s->memory && g->memory_bytes >= s->share &&
           (s->node == PLAN_NONE || s->node == g->node);
}

/* Its GPUs as bits, and whether some node has enough of them. */
static void find_gpus(struct plan *p, struct shape *s) {
    s->mask = p->masks_len;
    p->masks = plan_grow(p->masks, &p->masks_cap, p->masks_len + p->mask_words, sizeof *p->masks);
    uint64_t *mask = p->masks + s->mask;
    memset(mask, 0, p->mask_words * sizeof *mask);
    s->node_from = p->nodes;
    s->node_to = 0;
    uint32_t among = s->is_scoped ? s->scope_len : p->w->gpus;
    for (uint32_t i = 0; i < among; i++) {
        uint32_t g = s->is_scoped ? s->scope[i] : i;
        if (g >= p->w->gpus || !would_do(p, s, g)) continue;
        mask[g / 64] |= 1ull << (g % 64);
        if (p->node_at[g] < s->node_from) s->node_from = p->node_at[g];
        if (p->node_at[g] >= s->node_to) s->node_to = p->node_at[g] + 1;
    }
    for (uint32_t n = s->node_from; n < s->node_to && !s->is_possible; n++) {
        int count = 0;
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) count += plan_is_in(p, s, g);
        s->is_possible = count >= s->gpus;
    }
}

struct shape plan_shape_try(struct plan *p, const struct plan_job *j) {
    struct shape s = shape_of(p, j);
    find_gpus(p, &s);
    return s;
}

static void rehash(struct plan *p) {
    size_t cap = p->table_cap ? p->table_cap : 1;
    for (size_t i = 0; i < p->table_cap; i++) p->shape_of[i] = PLAN_NONE;
    for (uint32_t i = 0; i < p->shapes; i++) {
        uint32_t *head = &p->shape_of[p->shape[i].hash % cap];
        p->shape[i].next = *head;
        *head = i;
    }
}

/* Good until the next call. */
struct shape *plan_shape(struct plan *p, const struct plan_job *j) {
    struct shape s = shape_of(p, j);
    for (uint32_t i = p->shape_of[s.hash % p->table_cap]; i != PLAN_NONE; i = p->shape[i].next)
        if (is_same(&p->shape[i], &s)) return &p->shape[i];
    find_gpus(p, &s);
    p->masks_len += p->mask_words;
    p->shape = plan_grow(p->shape, &p->shape_cap, p->shapes + 1u, sizeof *p->shape);
    if (p->shapes * 2u > p->table_cap) {
        p->shape_of = plan_grow(p->shape_of, &p->table_cap, p->table_cap * 2, sizeof *p->shape_of);
        rehash(p);
    }
    uint32_t *head = &p->shape_of[s.hash % p->table_cap];
    s.next = *head;
    *head = p->shapes;
    p->shape[p->shapes] = s;
    return &p->shape[p->shapes++];
}
