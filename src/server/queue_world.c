#include "server/queue_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS (3600 * NS_PER_S)

static void *room_for(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) abort();
    return p;
}

/* ---- GPUs ---- */

/* Those of one node lie side by side, so a node's number is that of its first GPU. */
static uint32_t node_number(const struct queue *q, const char *name) {
    for (size_t i = 0; i < q->gpus; i++)
        if (strcmp(q->gpu[i].node, name) == 0) return (uint32_t)i;
    return (uint32_t)q->gpus; /* a node without GPUs: nothing is there */
}

static void gpus_make(struct queue *q, struct queue_world *w) {
    w->gpu = room_for(q->gpus, sizeof *w->gpu);
    uint32_t node = 0;
    for (size_t i = 0; i < q->gpus; i++) {
        const struct queue_gpu *g = &q->gpu[i];
        if (i && strcmp(g->node, q->gpu[i - 1].node) != 0) node = (uint32_t)i;
        w->gpu[i] = (struct plan_gpu){.node = node,
                                      .index = g->index,
                                      .is_part = g->instance >= 0,
                                      .part = g->instance,
                                      .memory_bytes = g->memory_bytes,
                                      .is_here = g->is_here,
                                      .verdict = g->cordon ? OCCUPANCY_CORDONED : (enum occupancy)g->is.verdict,
                                      .since_ns = g->is.since_ns,
                                      .temp_c = g->temp_c,
                                      .node_name = g->node,
                                      .user = *g->is.user ? g->is.user : NULL,
                                      .note = *g->is.note && !g->cordon ? g->is.note : NULL};
    }
    w->of.gpu = w->gpu;
    w->of.gpus = (uint32_t)q->gpus;
}

static uint32_t gpu_number(const struct queue *q, const char *uuid) {
    const struct queue_gpu *g = queue_gpu_find(q, uuid);
    return g ? (uint32_t)(g - q->gpu) : PLAN_NONE;
}

/* ---- runs ---- */

/* A service that gives its GPUs to nobody stays, whatever the like of it did. */
static bool is_endless(const struct queue_run *r) {
    const struct queue_job *j = r->job;
    return j->parent_kind == QUEUE_OF_SERVICE && !j->yields && !j->spec.time_limit_ns && r->stop == JOB_BY_ITSELF;
}

static int64_t expected_end(const struct queue *q, const struct queue_run *r, int64_t now_ns) {
    const struct queue_job *j = r->job;
    int64_t from_ns = r->of.start_ns ? r->of.start_ns : r->granted_ns;
    if (j->origin == QUEUE_BY_WATCHMEN || is_endless(r)) return 0;
    return queue_past_end(q, j->user, j->spec.name, from_ns, j->spec.time_limit_ns, now_ns);
}

static void runs_make(struct queue *q, struct queue_world *w) {
    size_t runs = 0, gpus = 0;
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next) runs++, gpus += r->gpus;
    w->run = room_for(runs, sizeof *w->run);
    w->run_from = room_for(runs, sizeof(void *));
    w->held = room_for(gpus, sizeof *w->held);
    uint32_t *at = w->held;
    for (size_t i = 0; i < q->count; i++) {
        const struct queue_job *j = q->job[i];
        for (struct queue_run *r = j->runs; r; r = r->next) {
            struct plan_run *p = &w->run[w->of.runs];
            *p = (struct plan_run){.job = j->id,
                                   .element = r->of.key.element,
                                   .user = j->user_at,
                                   .gpu = at,
                                   .share_bytes = j->spec.share_bytes,
                                   .start_ns = r->of.start_ns ? r->of.start_ns : r->granted_ns,
                                   .end_ns = expected_end(q, r, w->of.now_ns),
                                   .is_endless = is_endless(r)};
            for (uint16_t k = 0; k < r->gpus; k++) {
                uint32_t gpu = gpu_number(q, r->uuid[k]);
                if (gpu != PLAN_NONE) at[p->gpus++] = gpu;
            }
            at += p->gpus;
            w->run_from[w->of.runs] = r;
            w->of.runs += p->gpus > 0; /* of a node that was forgotten: nobody else can have its GPUs */
        }
    }
    w->of.run = w->run;
}

/* ---- users ---- */

static void users_make(struct queue *q, struct queue_world *w) {
    double most_s = q->settings->jobs_user_gpu_hours * 3600;
    w->user = room_for(q->users, sizeof *w->user);
    for (size_t i = 0; i < q->users; i++)
        w->user[i] =
            (struct plan_user){.name = q->user[i].name,
                               .usage_s = usage_at(&q->user[i].usage, q->settings->jobs_fair_half_life_h, w->of.now_ns),
                               .weight = 1,
                               .turn_ns = q->user[i].turn_ns,
                               .gpus_max = q->settings->jobs_user_gpus,
                               .seconds_max = most_s,
                               .seconds_left = INFINITY};
    for (size_t i = 0; most_s > 0 && i < q->users; i++)
        w->user[i].seconds_left = most_s - usage_week_s(&q->user[i].usage, w->of.now_ns / HOUR_NS);
    for (uint32_t i = 0; i < w->of.runs; i++) {
        double held_s = (double)(w->of.now_ns - w->run[i].start_ns) / NS_PER_S * queue_run_worth(q, w->run_from[i]);
        struct plan_user *u = &w->user[w->run[i].user];
        u->usage_s += fmax(held_s, 0);
        u->seconds_left -= fmax(held_s, 0);
    }
    w->of.user = w->user;
    w->of.users = (uint32_t)q->users;
}

/* ---- jobs ---- */

/* The scope in numbers, kept until a GPU comes or goes. */
static void scope_resolve(struct queue *q, struct queue_job *j) {
    if (j->scope_shape == q->gpu_shape) return;
    free(j->scope);
    j->scope = j->spec.scope.count ? room_for(j->spec.scope.count, sizeof *j->scope) : NULL;
    j->scope_len = 0;
    j->node_at = node_number(q, j->node);
    for (const char *word = NULL; j->scope && (word = job_word_next(&j->spec.scope, word));)
        for (size_t i = 0; i < q->gpus; i++)
            if (strcmp(q->gpu[i].node, j->node) == 0 && queue_gpu_is(&q->gpu[i], word))
                j->scope[j->scope_len++] = (uint32_t)i;
    j->scope_shape = q->gpu_shape;
}

static void job_fill(const struct queue *q, const struct job_spec *s, const char *user, struct plan_job *p) {
    p->gpus = s->gpus;
    p->is_scoped = s->scope.count > 0;
    p->memory_bytes = s->memory_bytes;
    p->share_bytes = s->share_bytes;
    p->finish_by_ns = s->finish_by_ns;
    p->expect_ns = queue_past_ns(q, user, s->name, s->time_limit_ns);
    p->most_ns = s->time_limit_ns;
}

/* One that ran and waits again, a service that yielded, began to wait when that ended. */
static int64_t waits_since(const struct queue_job *j) {
    return j->elements == 1 && j->last.end_ns > j->submitted_ns ? j->last.end_ns : j->submitted_ns;
}

static void jobs_make(struct queue *q, struct queue_world *w) {
    w->job_cap = 1;
    for (size_t i = 0; i < q->count; i++) w->job_cap += q->job[i]->counts[JOB_WAITING] > 0;
    w->job = room_for(w->job_cap, sizeof *w->job);
    w->from = room_for(w->job_cap, sizeof(void *));
    for (size_t i = 0; i < q->count; i++) {
        struct queue_job *j = q->job[i];
        if (!j->counts[JOB_WAITING] || j->is_held || j->after_count) continue;
        scope_resolve(q, j);
        uint32_t active = j->counts[JOB_GRANTED] + j->counts[JOB_RUNNING] + j->counts[JOB_ENDING];
        struct plan_job *p = &w->job[w->of.jobs];
        *p = (struct plan_job){.id = j->id,
                               .user = j->user_at,
                               .node = j->node_at,
                               .priority = j->priority,
                               .scope = j->scope,
                               .scope_len = j->scope_len,
                               .is_listed = j->origin == QUEUE_BY_WATCHMEN,
                               .since_ns = waits_since(j),
                               .elements = j->counts[JOB_WAITING],
                               .room = !j->at_once           ? UINT32_MAX
                                       : j->at_once > active ? j->at_once - active
                                                             : 0};
        job_fill(q, &j->spec, j->user, p);
        w->from[w->of.jobs++] = j;
    }
}

static void trial_add(struct queue *q, const struct queue_trial *t, uint32_t user, struct queue_world *w) {
    struct plan_job *p = &w->job[w->of.jobs++];
    uint32_t *scope = w->trial_scope = room_for(t->spec->scope.count, sizeof *scope);
    *p = (struct plan_job){.id = INT64_MAX,
                           .user = user,
                           .node = node_number(q, t->node),
                           .priority = t->spec->priority,
                           .scope = scope,
                           .elements = 1,
                           .room = UINT32_MAX};
    for (const char *word = NULL; (word = job_word_next(&t->spec->scope, word));)
        for (size_t i = 0; i < q->gpus; i++)
            if (strcmp(q->gpu[i].node, t->node) == 0 && queue_gpu_is(&q->gpu[i], word))
                scope[p->scope_len++] = (uint32_t)i;
    job_fill(q, t->spec, t->user, p);
}

void queue_world_make(struct queue *q, const struct queue_trial *trial, struct queue_world *ret) {
    *ret = (struct queue_world){.of.now_ns = clock_real_ns(),
                                .of.policy = &plan_policies[q->settings->jobs_policy],
                                .of.fair_wait_ns = (int64_t)(q->settings->jobs_fair_wait_h * HOUR_NS)};
    uint32_t user = trial ? queue_user_number(q, trial->user) : 0;
    queue_gpus_read(q);
    gpus_make(q, ret);
    runs_make(q, ret);
    users_make(q, ret);
    jobs_make(q, ret);
    queue_windows_make(q, ret);
    if (trial) trial_add(q, trial, user, ret);
    ret->of.job = ret->job;
}

void queue_world_done(struct queue_world *w) {
    free(w->trial_scope);
    free(w->gpu);
    free(w->run);
    free(w->run_from);
    free(w->job);
    free(w->user);
    free(w->from);
    free(w->held);
    queue_windows_done(w);
}
