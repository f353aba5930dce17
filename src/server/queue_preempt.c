/* Services that yield: model/preempt says which must end so that somebody more important can start; here they are told. Their jobs
 * wait again as soon as they have ended, and start when GPUs are free that nobody more important wants. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "model/preempt.h"
#include "server/queue_world.h"

/* Cheap in the usual case: nobody yields, or nobody waits who is more important. */
static bool may_matter(const struct queue *q) {
    int least = INT32_MAX, most = INT32_MIN;
    for (size_t i = 0; i < q->count; i++) {
        const struct queue_job *j = q->job[i];
        if (j->yields && j->runs && j->priority < least) least = j->priority;
        if (j->counts[JOB_WAITING] && !j->is_held && !j->after_count && j->priority > most) most = j->priority;
    }
    return least < most;
}

void queue_preempt(struct queue *q) {
    uint32_t end[PREEMPT_RUNS_MAX], whom[PREEMPT_RUNS_MAX];
    if (!may_matter(q)) return;
    AUTO(queue_world_done) struct queue_world w;
    queue_world_make(q, NULL, &w);
    struct preempt_run *how = calloc(w.of.runs ? w.of.runs : 1, sizeof *how);
    if (!how) abort();
    for (uint32_t i = 0; i < w.of.runs; i++) {
        const struct queue_run *r = w.run_from[i];
        how[i] = (struct preempt_run){
            .priority = r->job->priority, .yields = r->job->yields, .is_ending = r->stop != JOB_BY_ITSELF};
    }
    size_t count = preempt_choose(q->preempt, &w.of, how, end, whom);
    for (size_t i = 0; i < count; i++) {
        struct queue_run *r = w.run_from[end[i]];
        log_line(LOG_INFO, "preempt", -1, "job %lld (%s) gives its GPUs to job %lld", (long long)r->job->id,
                 r->job->spec.name, (long long)w.of.job[whom[i]].id);
        queue_run_stop(q, r, JOB_BY_PREEMPT);
    }
    free(how);
}
