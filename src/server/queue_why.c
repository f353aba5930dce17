/* Why a job waits, until when, and what would start it sooner: computed for what is shown only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/queue_world.h"

/* What model/plan never sees: jobs that could not start if all GPUs were free. */
static bool own_reason(const struct queue_job *j, struct queue_reason *ret) {
    if (j->is_held)
        snprintf(ret->why, sizeof ret->why, "it is held until somebody lets it go");
    else if (j->after_count)
        snprintf(ret->why, sizeof ret->why, "it waits for job %lld to end%s", (long long)j->after[0].job,
                 j->after[0].any ? "" : " well");
    else if (!j->counts[JOB_WAITING] && j->counts[JOB_HELD])
        snprintf(ret->why, sizeof ret->why, "it failed, and is tried again in a moment");
    else
        return !j->counts[JOB_WAITING];
    return true;
}

static void reason_take(const struct plan_reason *from, struct queue_reason *ret) {
    ret->place = from->place;
    ret->starts_ns = from->start_ns;
    ret->is_now = from->is_now;
    snprintf(ret->why, sizeof ret->why, "%s", from->why);
    snprintf(ret->sooner, sizeof ret->sooner, "%s", from->sooner);
}

void queue_explain_jobs(struct queue *q, const struct queue_job *const *jobs, size_t count, struct queue_reason *ret) {
    AUTO(queue_world_done) struct queue_world w;
    uint32_t *place = calloc(count + 1, sizeof *place);
    size_t *of = calloc(count + 1, sizeof *of), asked = 0;
    struct plan_reason *reasons = calloc(count + 1, sizeof *reasons);
    if (!place || !of || !reasons) abort();
    queue_world_make(q, NULL, &w);
    for (size_t i = 0, at = 0; i < count; i++) { /* both in the order of their numbers */
        ret[i] = (struct queue_reason){0};
        if (own_reason(jobs[i], &ret[i])) continue;
        while (at < w.of.jobs && w.from[at]->id < jobs[i]->id) at++;
        if (at == w.of.jobs || w.from[at] != jobs[i]) continue;
        place[asked] = (uint32_t)at;
        of[asked++] = i;
    }
    if (asked) plan_explain(q->plan, &w.of, place, asked, reasons);
    for (size_t i = 0; i < asked; i++) reason_take(&reasons[i], &ret[of[i]]);
    free(place);
    free(of);
    free(reasons);
}

void queue_explain_job(struct queue *q, const struct queue_job *j, struct queue_reason *ret) {
    *ret = (struct queue_reason){0};
    if (!own_reason(j, ret)) queue_explain_jobs(q, &j, 1, ret);
}

void queue_explain_spec(struct queue *q, const struct job_spec *s, const char *node, const char *user,
                        struct queue_reason *ret, struct buf *gpus) {
    AUTO(queue_world_done) struct queue_world w;
    const struct plan_bar *bar;
    struct plan_reason reason;
    *ret = (struct queue_reason){0};
    queue_world_make(q, &(struct queue_trial){s, node, user}, &w);
    uint32_t at = w.of.jobs - 1;
    plan_explain(q->plan, &w.of, &at, 1, &reason);
    reason_take(&reason, ret);
    size_t bars = plan_bars(q->plan, &bar);
    for (size_t i = 0; i < bars; i++)
        if (bar[i].job == at) buf_printf(gpus, "%s%s", gpus->len ? "," : "", q->gpu[bar[i].gpu].uuid);
}

static void put_bar(struct buf *b, const char *uuid, int64_t from_ns, int64_t to_ns, int64_t job, const char *kind) {
    json_open(b, '{');
    json_pair_str(b, "gpu", uuid);
    json_pair_num(b, "from", (double)(from_ns / NS_PER_MS) / 1e3);
    json_key(b, "to");
    if (to_ns > 0 && to_ns != PLAN_NEVER)
        json_num(b, (double)(to_ns / NS_PER_MS) / 1e3);
    else
        json_nil(b);
    json_pair_int(b, "job", job);
    json_pair_str(b, "kind", kind);
    json_close(b, '}');
}

/* What runs, and what is expected to follow on it for those who are first in the queue. */
void queue_plan_json(struct queue *q, struct buf *b, const struct queue_job *const *jobs, size_t count) {
    AUTO(queue_world_done) struct queue_world w;
    const struct plan_bar *bar;
    queue_world_make(q, NULL, &w);
    for (uint32_t i = 0; i < w.of.runs; i++)
        for (uint16_t k = 0; k < w.run[i].gpus; k++)
            put_bar(b, q->gpu[w.run[i].gpu[k]].uuid, w.run[i].start_ns, w.run[i].end_ns, w.run[i].job, "run");
    uint32_t *place = calloc(count + 1, sizeof *place);
    struct plan_reason *reasons = calloc(count + 1, sizeof *reasons);
    size_t asked = 0;
    if (!place || !reasons) abort();
    for (size_t i = 0, at = 0; i < count; i++) {
        while (at < w.of.jobs && w.from[at]->id < jobs[i]->id) at++;
        if (at < w.of.jobs && w.from[at] == jobs[i]) place[asked++] = (uint32_t)at;
    }
    if (asked) {
        plan_explain(q->plan, &w.of, place, asked, reasons);
        size_t bars = plan_bars(q->plan, &bar);
        for (size_t i = 0; i < bars; i++)
            put_bar(b, q->gpu[bar[i].gpu].uuid, bar[i].from_ns, bar[i].to_ns, w.of.job[bar[i].job].id, "plan");
    }
    free(place);
    free(reasons);
}
