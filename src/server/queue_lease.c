/* GPUs that are set aside for a client of the watchmen port: a job without a process. It waits and is granted as any other; it
 * ends when the client's own processes are seen, or when he is silent. */
#include "server/queue_lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

static struct queue_job *lease_of(const struct queue *q, int64_t job) {
    struct queue_job *j = queue_find(q, job);
    return j && j->origin == QUEUE_BY_WATCHMEN ? j : NULL;
}

bool queue_lease(struct queue *q, int64_t job, struct queue_lease *ret) {
    const struct queue_job *j = lease_of(q, job);
    *ret = (struct queue_lease){0};
    if (!j) return false;
    ret->state = queue_job_state(j);
    const struct queue_run *r = j->runs;
    ret->is_ready = r && r->is_stored;
    ret->is_used = ret->is_ready;
    for (uint16_t i = 0; r && i < r->gpus && ret->is_ready; i++) {
        const struct queue_gpu *g = queue_gpu_find(q, r->uuid[i]);
        bool is_foreign = g && g->is.verdict == OCCUPANCY_FOREIGN;
        ret->gpu[ret->gpus++] = g ? g->index : -1;
        ret->is_used &= is_foreign;
        ret->is_lost |= is_foreign;
    }
    return true;
}

void queue_lease_why(struct queue *q, const int64_t *jobs, size_t count, char (*ret)[QUEUE_WHY]) {
    const struct queue_job **asked = calloc(count + 1, sizeof(void *));
    struct queue_reason *why = calloc(count + 1, sizeof *why);
    size_t *of = calloc(count + 1, sizeof *of), n = 0;
    if (!asked || !why || !of) abort();
    for (size_t i = 0; i < count; i++) {
        const struct queue_job *j = lease_of(q, jobs[i]);
        ret[i][0] = '\0';
        if (!j || j->runs || queue_job_state(j) != JOB_WAITING) continue;
        of[n] = i;
        asked[n++] = j;
    }
    if (n) queue_explain_jobs(q, asked, n, why);
    for (size_t i = 0; i < n; i++) snprintf(ret[of[i]], QUEUE_WHY, "%s", why[i].why);
    free(asked);
    free(why);
    free(of);
}

struct settling {
    struct queue *queue;
    queue_done_fn done;
    void *ctx;
};

/* The first commit may be the one that stores the grants; they hold from its end on, which is before the end of the next. */
static void settled(void *ctx, int result, const struct error *e) {
    struct settling *s = ctx;
    queue_then(s->queue, s->done, s->ctx);
    free(s);
}

void queue_lease_settle(struct queue *q, queue_done_fn done, void *ctx) {
    struct settling *s = malloc(sizeof *s);
    if (!s) abort();
    *s = (struct settling){q, done, ctx};
    queue_then(q, settled, s);
}

void queue_lease_withdraw(struct queue *q, int64_t job) {
    const struct queue_job *j = lease_of(q, job);
    if (!j || j->ended_ns || !j->runs || !j->runs->is_stored) return;
    struct wire_run w = j->runs->of;
    w.end_ns = clock_real_ns();
    w.reason = JOB_BY_PREEMPT;
    queue_run_end(q, j->runs, &w);
}

void queue_lease_end(struct queue *q, int64_t job, enum job_state as, queue_done_fn done, void *ctx) {
    struct queue_job *j = lease_of(q, job);
    if (j && !j->ended_ns) {
        struct queue_run *r = j->runs;
        if (r && r->is_stored) {
            struct wire_run w = r->of;
            w.start_ns = r->granted_ns;
            w.end_ns = clock_real_ns();
            w.reason = as == JOB_DONE ? JOB_BY_ITSELF : JOB_BY_CANCEL;
            for (uint16_t i = 0; i < r->gpus && as == JOB_DONE; i++) {
                struct queue_gpu *g = queue_gpu_find(q, r->uuid[i]);
                if (g) g->is_lent = g->is.verdict == OCCUPANCY_FOREIGN; /* he works there by our leave */
            }
            queue_run_end(q, r, &w);
        } else if (r) {
            queue_run_stop(q, r, JOB_BY_CANCEL); /* its grant is on the way to the file, and is taken back there */
        } else {
            queue_element_set(q, j, 0, as);
            queue_job_settle(q, j);
        }
        queue_want_pass(q);
    }
    if (done) queue_then(q, done, ctx);
}

int queue_gpu_index(struct queue *q, const char *uuid) {
    queue_gpus_read(q);
    const struct queue_gpu *g = queue_gpu_find(q, uuid);
    return g ? g->index : -ENOENT;
}

enum queue_gpu_state queue_gpu_now(struct queue *q, const char *node, int index) {
    queue_gpus_read(q);
    for (size_t i = 0; i < q->gpus; i++) {
        const struct queue_gpu *g = &q->gpu[i];
        if (g->index != index || g->instance >= 0 || strcmp(g->node, node) != 0) continue;
        bool is_held = false;
        for (size_t k = 0; k < q->count && !is_held; k++)
            for (const struct queue_run *r = q->job[k]->runs; r && !is_held; r = r->next)
                for (uint16_t u = 0; u < r->gpus; u++) is_held |= strcmp(r->uuid[u], g->uuid) == 0;
        bool is_free = g->is_here && !g->cordon && g->is.verdict == OCCUPANCY_FREE && !is_held;
        return is_free ? QUEUE_GPU_FREE : QUEUE_GPU_TAKEN;
    }
    return QUEUE_GPU_NONE;
}
