/* What jobs ask for, each kind once: ten thousand waiting jobs are of a few kinds, and what does not fit for one does not fit
 * for the next. */
#include <string.h>

#include "model/gpu_part.h"
#include "model/plan_own.h"

static uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v;
    h *= 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

struct ask ask_of(const struct plan_job *j, bool is_by_user) {
    struct ask a = {
        .memory = j->memory_bytes,
        .share = j->share_bytes,
        .scope = j->scope,
        .scope_len = j->is_scoped ? j->scope_len : 0,
        .node = j->node,
        .user = is_by_user ? j->user : PLAN_NONE,
        .gpus = j->gpus,
        .is_scoped = j->is_scoped,
        .is_listed = j->is_listed && j->is_scoped,
    };
    uint64_t h = mix(mix(1, a.memory), a.share);
    h = mix(h, (uint64_t)a.node << 32 | a.user);
    h = mix(h, (uint64_t)a.gpus << 2 | (uint64_t)a.is_scoped << 1 | a.is_listed);
    for (uint32_t i = 0; i < a.scope_len; i++) h = mix(h, a.scope[i] + 1ull);
    a.hash = h;
    return a;
}

bool ask_is_same(const struct ask *a, const struct ask *b) {
    return a->hash == b->hash && a->memory == b->memory && a->share == b->share && a->node == b->node &&
           a->user == b->user && a->gpus == b->gpus && a->is_scoped == b->is_scoped && a->is_listed == b->is_listed &&
           a->scope_len == b->scope_len &&
           (!a->scope_len || memcmp(a->scope, b->scope, a->scope_len * sizeof *a->scope) == 0);
}

static bool has_cards(const struct plan *p, uint32_t node) {
    for (uint32_t g = p->node_first[node]; g < p->node_first[node + 1]; g++)
        if (!p->w->gpu[g].is_part) return true;
    return false;
}

bool plan_is_for(const struct plan *p, uint32_t gpu, int gpus, uint64_t memory, bool is_scoped) {
    return !p->w->gpu[gpu].is_part || plan_part_does(gpus, memory, is_scoped, has_cards(p, p->node_at[gpu]));
}

static bool would_do(const struct plan *p, const struct shape *s, uint32_t gpu) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    return !p->is_out[gpu] && g->memory_bytes >= s->memory && g->memory_bytes >= s->share &&
           (s->node == PLAN_NONE || s->node == g->node) &&
           plan_is_for(p, gpu, s->gpus, s->memory | s->share, s->is_scoped);
}

/* It would do with any GPU, as most would. */
static void find_any(struct plan *p, struct shape *s) {
    memcpy(p->masks + s->mask, p->reach, p->mask_words * sizeof *p->masks);
    s->node_from = 0;
    s->node_to = p->nodes;
    s->is_possible = (uint32_t)s->gpus <= p->reach_most;
}

/* Its GPUs as bits, and whether some node has enough of them. */
static void find_gpus(struct plan *p, struct shape *s) {
    s->mask = p->masks_len;
    p->masks = plan_grow(p->masks, &p->masks_cap, p->masks_len + p->mask_words, sizeof *p->masks);
    if (!s->is_scoped && !p->has_parts && s->node == PLAN_NONE && s->memory <= p->memory_least &&
        s->share <= p->memory_least) {
        find_any(p, s);
        return;
    }
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

static struct shape shape_make(struct plan *p, const struct ask *a) {
    struct shape s = {.memory = a->memory,
                      .share = a->share,
                      .scope = a->scope,
                      .scope_len = a->scope_len,
                      .node = a->node,
                      .user = a->user,
                      .gpus = a->gpus,
                      .is_scoped = a->is_scoped,
                      .is_listed = a->is_listed,
                      .now_most = PLAN_NEVER,
                      .pass = p->pass};
    find_gpus(p, &s);
    return s;
}

struct shape plan_shape_try(struct plan *p, const struct plan_job *j) {
    struct ask a = ask_of(j, p->w->windows > 0);
    return shape_make(p, &a);
}

struct shape *plan_shape(struct plan *p, uint32_t kind) {
    struct shape *s = &p->shape[kind];
    if (s->pass == p->pass) return s;
    *s = shape_make(p, &p->line->kind[kind].ask);
    p->masks_len += p->mask_words;
    return s;
}
