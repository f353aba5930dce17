#include "node/groups.h"

#include <string.h>

#include "base/auto.h"

struct group *groups_find(struct groups *g, const char *id) {
    for (unsigned i = 0; *id && i < GROUPS_MAX; i++)
        if (strcmp(g->of[i].id, id) == 0) return &g->of[i];
    return NULL;
}

static struct group *room_for_one(struct groups *g) {
    struct group *oldest = NULL;
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->of[i];
        if (!one->id[0]) return one;
        if (!one->running && (!oldest || one->used_ns < oldest->used_ns)) oldest = one;
    }
    return oldest;
}

struct group *groups_of(struct groups *g, const struct belonging *whose, int64_t now_ns) {
    struct group *one = groups_find(g, whose->id);
    if (whose->kind == BELONGS_TO_NONE || !whose->id[0]) return NULL;
    if (!one) {
        one = room_for_one(g);
        if (!one) return NULL;
        *one = (struct group){.kind = (uint8_t)whose->kind, .version = 1};
        memcpy(one->id, whose->id, sizeof one->id);
        slack_init(&one->slack);
    }
    one->used_ns = now_ns;
    return one;
}

static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return (h ^ n) * 0x100000001b3ull;
}

/* A container is often made for one task and then thrown away: its like is told by the image and the deadline. */
struct task_past *groups_past(struct groups *g, const struct group *of, const char *comm, uint32_t uid,
                              int64_t now_ns) {
    uint64_t key = mix(0xcbf29ce484222325ull, comm, strlen(comm));
    if (of && of->has_facts && of->facts.image[0]) {
        key = mix(key, of->facts.image, strlen(of->facts.image));
        key = mix(key, &of->facts.deadline_ns, sizeof of->facts.deadline_ns);
    } else if (of) {
        key = mix(key, of->id, strlen(of->id));
    } else {
        key = mix(key, &uid, sizeof uid);
    }
    struct past_of *best = &g->past[0];
    for (unsigned i = 0; i < GROUPS_PASTS; i++) {
        struct past_of *one = &g->past[i];
        if (one->key == key && one->used_ns) {
            one->used_ns = now_ns;
            return &one->past;
        }
        if (one->used_ns < best->used_ns) best = one;
    }
    *best = (struct past_of){.key = key, .used_ns = now_ns};
    return &best->past;
}

void group_frame(const struct group *g, struct wire_container *ret) {
    static const uint8_t states[] = {
        [ENGINE_UNKNOWN] = CONTAINER_UNKNOWN,       [ENGINE_CREATED] = CONTAINER_CREATED,
        [ENGINE_RUNNING] = CONTAINER_RUNNING,       [ENGINE_PAUSED] = CONTAINER_PAUSED,
        [ENGINE_RESTARTING] = CONTAINER_RESTARTING, [ENGINE_EXITED] = CONTAINER_EXITED,
        [ENGINE_REMOVED] = CONTAINER_REMOVED,
    };
    const struct engine_facts *f = &g->facts;
    memset(ret, 0, sizeof *ret);
    memcpy(ret->id, g->id, sizeof ret->id);
    ret->kind = g->kind;
    ret->running = g->running;
    ret->slack = g->slack;
    ret->periods = g->period.judged;
    ret->period_hit = g->period.kept;
    ret->gpu_seconds = g->gpu_seconds;
    ret->energy_joules = g->energy_joules;
    ret->memory_bytes = g->memory_bytes;
    if (!g->has_facts) return;
    ret->state = f->state < ARRAY_LEN(states) ? states[f->state] : CONTAINER_UNKNOWN;
    memcpy(ret->name, f->name, sizeof f->name);
    memcpy(ret->image, f->image, sizeof f->image);
    memcpy(ret->tenant, f->tenant, sizeof f->tenant);
    ret->deadline_ns = f->deadline_ns;
    ret->period_ns = f->period_ns;
    ret->priority = f->priority == ENGINE_NO_PRIORITY ? 0 : f->priority;
    ret->created_real_ns = f->created_real_ns;
}
