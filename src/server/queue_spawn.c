#include "server/queue_spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "server/queue_own.h"

void queue_spawn_register(struct queue *q, enum queue_parent kind, const struct queue_spawner *s) {
    q->spawner[kind] = s;
}

/* ---- what comes in ---- */

static const struct queue_spawner *spawner_of(const struct queue *q, const struct wire_sealed *in, struct error *e) {
    struct job_spec spec;
    if (job_decode(in->record, in->record_len, &spec, e) < 0) return NULL; /* the queue says so */
    for (int i = 0; i < QUEUE_PARENT_COUNT; i++)
        if (q->spawner[i] && q->spawner[i]->is_own(&spec)) return q->spawner[i];
    return NULL;
}

int queue_spawn_take(struct queue *q, const struct queue_submit *from, queue_submitted_fn done, void *ctx,
                     struct error *e) {
    if (from->origin == QUEUE_BY_WATCHMEN) return 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct queue_spawner *s = spawner_of(q, &from->jobs[i], e);
        if (!s) continue;
        if (from->count > 1)
            return fail(e, -EINVAL, "job %zu of %zu: a repeating job or a service is handed in alone", i + 1,
                        from->count);
        int r = s->take(s->ctx, from, done, ctx, e);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* ---- a job is made ---- */

struct spawning {
    struct queue *queue;
    struct queue_job *job;
    struct queue_job_row row;
    struct buf seal;
    int64_t id;
    queue_spawn_work_fn work;
    queue_submitted_fn done;
    void *ctx;
};

static void spawning_free(struct spawning *s) {
    queue_job_free(s->job);
    buf_done(&s->seal);
    free(s);
}

static int spawn_work(struct sql *db, void *ctx, struct error *e) {
    struct spawning *s = ctx;
    CRASH_POINT();
    int r = queue_store_add(db, &s->row, 1, &s->id, e);
    CRASH_POINT();
    if (r >= 0) r = s->work(db, s->ctx, s->id, e);
    CRASH_POINT();
    return r;
}

static void spawn_done(void *ctx, int result, const struct error *e) {
    struct spawning *s = ctx;
    CRASH_POINT();
    if (result >= 0) {
        s->job->id = s->id;
        queue_add(s->queue, s->job);
        if (s->job->after_count) queue_after_add(s->queue, s->job);
        s->job = NULL;
        queue_want_pass(s->queue);
    }
    s->done(s->ctx, result, s->id, e);
    CRASH_POINT();
    spawning_free(s);
}

int queue_spawn(struct queue *q, const struct queue_spawn *from, queue_spawn_work_fn work, queue_submitted_fn done,
                void *ctx, struct error *e) {
    if (q->count >= QUEUE_JOBS_MAX)
        return fail(e, -EAGAIN, "%zu jobs are in the queue; it takes %d", q->count, QUEUE_JOBS_MAX);
    struct spawning *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct spawning){.queue = q, .work = work, .done = done, .ctx = ctx};
    s->row = (struct queue_job_row){.submitted_ns = clock_real_ns(),
                                    .uid = from->uid,
                                    .user = from->user,
                                    .account = from->account,
                                    .node = from->node,
                                    .origin = (uint8_t)from->origin,
                                    .parent_kind = (uint8_t)from->kind,
                                    .parent = from->parent,
                                    .behind = from->behind,
                                    .elements = 1,
                                    .record = from->record,
                                    .record_len = from->record_len};
    s->job = queue_job_new(&s->row, e);
    int r = s->job ? queue_job_begin(s->job, &s->row, e) : -EINVAL;
    buf_add(&s->seal, from->seal, from->seal_len);
    s->row.seal = s->seal.s;
    s->row.seal_len = from->seal_len;
    if (r >= 0) r = state_submit(q->state, spawn_work, spawn_done, s, e);
    if (r < 0) spawning_free(s);
    return r;
}

void queue_spawn_end(struct queue *q, int64_t job, const char *text) {
    struct queue_job *j = queue_find(q, job);
    if (!j || j->ended_ns || queue_job_state(j) == JOB_ENDING) return;
    queue_cancel_elements(q, j, -1, text);
    queue_job_settle(q, j);
    queue_want_pass(q);
}

/* ---- how it stands ---- */

static struct queue_child child_of(const struct queue_job *j) {
    enum job_state state = queue_job_state(j);
    return (struct queue_child){.parent = j->parent,
                                .job = j->id,
                                .state = state,
                                .is_over = j->ended_ns != 0,
                                .ended_ns = j->ended_ns,
                                .last = j->last};
}

bool queue_spawn_look(const struct queue *q, int64_t job, struct queue_child *ret) {
    const struct queue_job *j = queue_find(q, job);
    if (!j || j->parent_kind == QUEUE_OF_NOBODY) return false;
    *ret = child_of(j);
    return true;
}

void queue_spawn_news(struct queue *q, const struct queue_job *j) {
    const struct queue_spawner *s = j->parent_kind < QUEUE_PARENT_COUNT ? q->spawner[j->parent_kind] : NULL;
    if (!s || !s->news) return;
    const struct queue_child c = child_of(j);
    s->news(s->ctx, &c);
}
