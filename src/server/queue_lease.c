/* GPUs that are set aside for a client of the watchmen port: a job without a process. It waits and is granted as any other; it
 * ends when the client's own processes are seen, or when he is silent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/queue_own.h"

bool queue_lease(struct queue *q, int64_t job, bool with_why, struct queue_lease *ret) {
    const struct queue_job *j = queue_find(q, job);
    *ret = (struct queue_lease){0};
    if (!j || j->origin != QUEUE_BY_WATCHMEN) return false;
    ret->state = queue_job_state(j);
    const struct queue_run *r = j->runs;
    ret->is_ready = r && r->is_stored;
    ret->is_used = ret->is_ready;
    for (uint16_t i = 0; r && i < r->gpus && ret->is_ready; i++) {
        const struct queue_gpu *g = queue_gpu_find(q, r->uuid[i]);
        ret->gpu[ret->gpus++] = g ? g->index : -1;
        ret->is_used &= g && g->is.verdict == OCCUPANCY_FOREIGN;
    }
    if (!with_why || r || ret->state != JOB_WAITING) return true;
    struct queue_reason why;
    queue_explain_job(q, j, &why);
    snprintf(ret->text, sizeof ret->text, "%s", why.why);
    return true;
}

void queue_lease_end(struct queue *q, int64_t job, enum job_state as, queue_done_fn done, void *ctx) {
    struct queue_job *j = queue_find(q, job);
    if (j && j->origin == QUEUE_BY_WATCHMEN && !j->ended_ns) {
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

enum queue_gpu_state queue_gpu_now(struct queue *q, const char *node, int index) {
    queue_gpus_read(q);
    for (size_t i = 0; i < q->gpus; i++) {
        const struct queue_gpu *g = &q->gpu[i];
        if (g->index != index || strcmp(g->node, node) != 0) continue;
        bool is_held = false;
        for (size_t k = 0; k < q->count && !is_held; k++)
            for (const struct queue_run *r = q->job[k]->runs; r && !is_held; r = r->next)
                for (uint16_t u = 0; u < r->gpus; u++) is_held |= strcmp(r->uuid[u], g->uuid) == 0;
        bool is_free = g->is_here && !g->cordon && g->is.verdict == OCCUPANCY_FREE && !is_held;
        return is_free ? QUEUE_GPU_FREE : QUEUE_GPU_TAKEN;
    }
    return QUEUE_GPU_NONE;
}
