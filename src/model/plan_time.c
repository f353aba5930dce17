/* When each GPU is taken: by a run, for a job that it is kept for, by people. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_own.h"

/* Out of memory ends the process, as in base/buf.h. */
void *plan_grow(void *array, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return array;
    size_t room = *cap ? *cap : 16;
    while (room < need) room *= 2;
    array = realloc(array, room * size);
    if (!array) abort();
    *cap = room;
    return array;
}

void timeline_done(struct timeline *t) {
    free(t->first);
    free(t->slot);
    *t = (struct timeline){0};
}

void timeline_clear(struct timeline *t, uint32_t gpus) {
    t->first = plan_grow(t->first, &t->gpus_cap, gpus, sizeof *t->first);
    for (uint32_t g = 0; g < gpus; g++) t->first[g] = PLAN_NONE;
    t->count = 0;
}

void timeline_copy(struct timeline *to, const struct timeline *from, uint32_t gpus) {
    to->first = plan_grow(to->first, &to->gpus_cap, gpus, sizeof *to->first);
    to->slot = plan_grow(to->slot, &to->cap, from->count, sizeof *to->slot);
    if (gpus) memcpy(to->first, from->first, gpus * sizeof *to->first);
    if (from->count) memcpy(to->slot, from->slot, from->count * sizeof *to->slot);
    to->count = from->count;
}

void timeline_add(struct timeline *t, uint32_t gpu, struct slot s) {
    t->slot = plan_grow(t->slot, &t->cap, t->count + 1, sizeof *t->slot);
    s.next = t->first[gpu];
    t->slot[t->count] = s;
    t->first[gpu] = (uint32_t)t->count++;
}

/* The slots themselves stay where they are: nobody counts them. */
void timeline_drop_kept(struct timeline *t, uint32_t gpus) {
    for (uint32_t g = 0; g < gpus; g++)
        for (uint32_t *at = &t->first[g]; *at != PLAN_NONE;) {
            struct slot *s = &t->slot[*at];
            if (s->kind == SLOT_KEPT)
                *at = s->next;
            else
                at = &s->next;
        }
}

int64_t plan_sum(int64_t a, int64_t b) { return a > PLAN_NEVER - b ? PLAN_NEVER : a + b; }

/* A window that is kept for this user is no bar to him. */
bool plan_is_his(const struct plan *p, const struct slot *s, uint32_t user) {
    if (s->kind != SLOT_WINDOW) return false;
    const struct plan_window *w = &p->w->window[s->who];
    for (uint32_t i = 0; i < w->users; i++)
        if (w->user[i] == user) return true;
    return false;
}

/* It is kept for him at that moment. */
bool plan_is_own(const struct plan *p, const struct timeline *t, uint32_t gpu, uint32_t user, int64_t at) {
    for (uint32_t i = t->first[gpu]; p->w->windows && i != PLAN_NONE; i = t->slot[i].next)
        if (t->slot[i].from <= at && t->slot[i].to > at && plan_is_his(p, &t->slot[i], user)) return true;
    return false;
}

/* What is no bar to him: a window of his own, and within one what is kept for jobs that are ahead of his. */
static bool is_passed(const struct plan *p, const struct slot *o, const struct shape *s, bool is_own) {
    return is_own && o->kind == SLOT_KEPT ? true : plan_is_his(p, o, s->user);
}

/* Whether a share fits beside what there is at that moment. */
static bool has_room(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu, int64_t at,
                     bool is_own) {
    uint64_t used = s->share;
    for (uint32_t i = t->first[gpu]; i != PLAN_NONE; i = t->slot[i].next) {
        const struct slot *o = &t->slot[i];
        if (o->from > at || o->to <= at || is_passed(p, o, s, is_own)) continue;
        if (!o->bytes) return false;
        used += o->bytes;
    }
    return used <= p->w->gpu[gpu].memory_bytes;
}

/* How long from then on the GPU is there for such a job; 0: it is not. */
int64_t plan_gap(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu, int64_t at) {
    int64_t gap = PLAN_NEVER;
    bool is_own = plan_is_own(p, t, gpu, s->user, at);
    if (s->share && !has_room(p, t, s, gpu, at, is_own)) return 0;
    for (uint32_t i = t->first[gpu]; i != PLAN_NONE; i = t->slot[i].next) {
        const struct slot *o = &t->slot[i];
        if (o->to <= at || is_passed(p, o, s, is_own)) continue;
        if (o->from <= at) {
            if (!s->share) return 0;
            continue; /* has_room has counted it */
        }
        if (o->from - at < gap && (!s->share || !o->bytes || !has_room(p, t, s, gpu, o->from, is_own)))
            gap = o->from - at;
    }
    return gap;
}

/* The first moment from `at` on at which it is there for so long. */
int64_t plan_free_from(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu, int64_t at,
                       int64_t ns) {
    while (plan_gap(p, t, s, gpu, at) < ns) {
        int64_t next = PLAN_NEVER; /* nothing gets better before a slot ends */
        for (uint32_t i = t->first[gpu]; i != PLAN_NONE; i = t->slot[i].next)
            if (t->slot[i].to > at && t->slot[i].to < next) next = t->slot[i].to;
        if (next == PLAN_NEVER) return PLAN_NEVER;
        at = next;
    }
    return at;
}
