#include "bench/plan_life.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *grow(void *array, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return array;
    *cap = need * 2;
    array = realloc(array, *cap * size);
    if (!array) abort();
    return array;
}

uint64_t life_random(struct life *l, uint64_t below) {
    l->seed ^= l->seed << 13;
    l->seed ^= l->seed >> 7;
    l->seed ^= l->seed << 17;
    return below ? (l->seed >> 11) % below : 0;
}

void life_init(struct life *l, uint64_t seed, uint32_t nodes, uint32_t each, uint32_t users) {
    static const char *const names[] = {"ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal"};
    *l = (struct life){.seed = seed * 0x9e3779b97f4a7c15ull + 1, .gpus = nodes * each, .users = users};
    l->plan = plan_new();
    l->gpu = calloc(l->gpus + 1u, sizeof *l->gpu);
    l->user = calloc(users, sizeof *l->user);
    l->plan_user = calloc(users, sizeof *l->plan_user);
    if (!l->gpu || !l->user || !l->plan_user) abort();
    for (uint32_t g = 0; g < l->gpus; g++)
        l->gpu[g] = (struct plan_gpu){.node = g / each,
                                      .index = (int)(g % each),
                                      .memory_bytes = 80ull << 30,
                                      .is_here = true,
                                      .temp_c = NAN,
                                      .node_name = "node"};
    for (uint32_t u = 0; u < users; u++)
        l->user[u] = (struct plan_user){.name = names[u % 8], .seconds_left = INFINITY};
}

void life_done(struct life *l) {
    for (uint32_t i = 0; i < l->jobs; i++) free(l->job[i].scope);
    plan_free(l->plan);
    free(l->gpu);
    free(l->user);
    free(l->plan_user);
    free(l->job);
    free(l->run);
    free(l->waiting);
    free(l->plan_job);
    free(l->plan_run);
    *l = (struct life){0};
}

struct life_job *life_submit(struct life *l, const struct life_job *j) {
    l->job = grow(l->job, &l->job_cap, l->jobs + 1u, sizeof *l->job);
    struct life_job *mine = &l->job[l->jobs];
    *mine = *j;
    mine->id = ++l->jobs;
    mine->submit_ns = l->now_ns;
    if (!mine->elements) mine->elements = 1;
    if (j->scope_len) {
        mine->scope = malloc(j->scope_len * sizeof *mine->scope);
        if (!mine->scope) abort();
        memcpy(mine->scope, j->scope, j->scope_len * sizeof *mine->scope);
    }
    l->waiting = grow(l->waiting, &l->wait_cap, l->waits + 1u, sizeof *l->waiting);
    l->waiting[l->waits++] = l->jobs - 1;
    return mine;
}

static struct plan_job plan_job_of(const struct life_job *j) {
    uint32_t active = j->started - j->over;
    return (struct plan_job){.id = j->id,
                             .user = j->user,
                             .node = j->node,
                             .priority = j->priority,
                             .gpus = j->gpus,
                             .scope = j->scope,
                             .scope_len = j->scope_len,
                             .is_scoped = j->is_scoped,
                             .memory_bytes = j->memory_bytes,
                             .share_bytes = j->share_bytes,
                             .finish_by_ns = j->finish_by_ns,
                             .expect_ns = j->expect_ns,
                             .most_ns = j->most_ns,
                             .since_ns = j->submit_ns + 1,
                             .elements = j->elements - j->started,
                             .room = !j->at_once           ? UINT32_MAX
                                     : active < j->at_once ? j->at_once - active
                                                           : 0};
}

const struct plan_world *life_world(struct life *l) {
    l->plan_job = grow(l->plan_job, &l->plan_job_cap, l->waits, sizeof *l->plan_job);
    l->plan_run = grow(l->plan_run, &l->plan_run_cap, l->runs, sizeof *l->plan_run);
    for (uint32_t i = 0; i < l->waits; i++) l->plan_job[i] = plan_job_of(&l->job[l->waiting[i]]);
    for (uint32_t i = 0; i < l->runs; i++) {
        const struct life_run *r = &l->run[i];
        const struct life_job *j = &l->job[r->job];
        int64_t ns = j->expect_ns ? j->expect_ns : j->most_ns;
        l->plan_run[i] = (struct plan_run){.job = j->id,
                                           .user = j->user,
                                           .gpu = r->gpu,
                                           .gpus = r->gpus,
                                           .share_bytes = j->share_bytes,
                                           .start_ns = r->start_ns,
                                           .end_ns = l->end_of ? l->end_of(l, j, r->start_ns)
                                                     : ns      ? r->start_ns + ns
                                                               : 0};
    }
    memcpy(l->plan_user, l->user, l->users * sizeof *l->user);
    for (uint32_t i = 0; i < l->runs; i++)
        l->plan_user[l->job[l->run[i].job].user].usage_s +=
            (double)(l->now_ns - l->run[i].start_ns) / 1e9 * l->run[i].gpus;
    l->world = (struct plan_world){.now_ns = l->now_ns,
                                   .policy = l->policy,
                                   .fair_wait_ns = l->fair_wait_ns,
                                   .gpu = l->gpu,
                                   .run = l->plan_run,
                                   .job = l->plan_job,
                                   .user = l->plan_user,
                                   .gpus = l->gpus,
                                   .runs = l->runs,
                                   .jobs = l->waits,
                                   .users = l->users};
    return &l->world;
}

size_t life_pass(struct life *l) {
    const struct plan_grant *g;
    size_t n = plan_pass(l->plan, life_world(l), &g);
    for (size_t i = 0; i < n; i++) {
        uint32_t job = l->waiting[g[i].job];
        struct life_job *j = &l->job[job];
        l->run = grow(l->run, &l->run_cap, l->runs + 1u, sizeof *l->run);
        struct life_run *r = &l->run[l->runs++];
        *r = (struct life_run){.job = job, .gpus = g[i].gpus, .start_ns = l->now_ns, .end_ns = l->now_ns + j->real_ns};
        memcpy(r->gpu, g[i].gpu, g[i].gpus * sizeof *r->gpu);
        if (g[i].is_turn) l->user[j->user].turn_ns = l->now_ns;
        if (!j->started++) j->first_start_ns = l->now_ns;
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < l->waits; i++) {
        const struct life_job *j = &l->job[l->waiting[i]];
        if (j->started < j->elements) l->waiting[left++] = l->waiting[i];
    }
    l->waits = left;
    return n;
}

int64_t life_next_end(const struct life *l) {
    int64_t least = PLAN_NEVER;
    for (uint32_t i = 0; i < l->runs; i++)
        if (l->run[i].end_ns < least) least = l->run[i].end_ns;
    return least;
}

void life_until(struct life *l, int64_t t) {
    uint32_t left = 0;
    l->now_ns = t;
    for (uint32_t i = 0; i < l->runs; i++) {
        struct life_run *r = &l->run[i];
        if (r->end_ns > t) {
            l->run[left++] = *r;
            continue;
        }
        struct life_job *j = &l->job[r->job];
        double held = (double)(r->end_ns - r->start_ns) / 1e9;
        j->over++;
        l->user[j->user].usage_s += held * r->gpus;
    }
    l->runs = left;
}
