/* The queue as model/plan sees it: numbers instead of names, and only what could start. For queue*.c. */
#pragma once

#include "model/plan.h"
#include "server/queue_own.h"
#include "server/queue_reserve.h"

struct queue_world {
    struct plan_world of;
    struct plan_gpu *gpu;
    struct plan_run *run;
    struct plan_job *job;
    struct plan_user *user;
    struct queue_job **from;     /* whose job[i] is; NULL: a trial's */
    struct queue_run **run_from; /* that run[i] is */
    uint32_t *held;              /* where the runs' GPUs lie */
    uint32_t *trial_scope;
    uint32_t job_cap;
    struct plan_window *window;
    size_t window_cap;
    struct queue_window_text *window_text;
    size_t window_texts;
};

/* trial: a job that is not in the queue, or NULL; it stands last. */
struct queue_trial {
    const struct job_spec *spec;
    const char *node, *user;
};
void queue_world_make(struct queue *q, const struct queue_trial *trial, struct queue_world *ret);
void queue_world_done(struct queue_world *w);
