/* Who may start now: model/plan says who, here it is done. */
#include "server/queue_world.h"

/* The next element that waits. */
static uint32_t next_element(struct queue_job *j) {
    while (j->cursor < j->elements && j->element[j->cursor].state != JOB_WAITING) j->cursor++;
    return j->cursor;
}

void queue_pass(struct queue *q) {
    AUTO(queue_world_done) struct queue_world w;
    const struct plan_grant *grant;
    int64_t from_ns = clock_boot_ns();
    queue_world_make(q, NULL, &w);
    size_t grants = w.of.jobs ? plan_pass(q->plan, &w.of, &grant) : 0;
    for (size_t i = 0; i < grants; i++) {
        struct queue_job *j = w.from[grant[i].job];
        uint32_t element = next_element(j);
        size_t gpus[JOB_GPUS_MAX];
        for (uint16_t k = 0; k < grant[i].gpus; k++) gpus[k] = grant[i].gpu[k];
        if (grant[i].is_turn) q->user[j->user_at].turn_ns = w.of.now_ns;
        if (element < j->elements) queue_grant(q, j, element, gpus, grant[i].gpus);
    }
    queue_preempt(q);
    q->pass_ns = clock_boot_ns() - from_ns;
}
