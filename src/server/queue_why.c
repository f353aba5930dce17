/* Why a job waits, until when, and what would start it sooner: computed for what is shown only. */
#include <stdio.h>

#include "server/queue_own.h"

void queue_explain_job(struct queue *q, const struct queue_job *j, struct queue_reason *ret) {
    *ret = (struct queue_reason){0};
    if (j->is_held) {
        snprintf(ret->why, sizeof ret->why, "it is held until somebody lets it go");
        return;
    }
    if (j->after_count) snprintf(ret->why, sizeof ret->why, "it waits for job %lld to end", (long long)j->after[0].job);
}

void queue_plan_json(struct queue *q, struct buf *b) {}

void queue_explain_spec(struct queue *q, const struct job_spec *s, const char *node, const char *user,
                        struct queue_reason *ret) {
    *ret = (struct queue_reason){0};
}
