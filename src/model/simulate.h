/* What would have been: a trace of jobs played through on machines that do nothing else, by the very passes that schedule
 * (model/plan), under a policy. Pure; the same trace and setup give the same figures to the last bit.
 *
 * A pass follows every moment at which a job comes or ends. A job that is longer than its limit is ended at the limit. Jobs that
 * want more GPUs than a machine has are left out: the queue would refuse them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan_policy.h"
#include "model/trace.h"

struct simulate_setup {
    uint32_t nodes, gpus_per_node;
    const struct plan_policy *policy;
    /* What the queue knows of a job's time: all, or what the like of it took before (model/likes), as a server would. */
    bool is_known;
    double half_life_h;   /* of what users had */
    int64_t fair_wait_ns; /* as in struct plan_world */
};

struct simulate_step { /* from then on */
    int64_t at_ns;
    uint32_t waiting, busy; /* jobs; GPUs */
};

struct simulate_result {
    uint32_t jobs, left_out;
    double wait_mean_s, wait_median_s, wait_p90_s, wait_p99_s, wait_max_s;
    double turnaround_mean_s, makespan_s; /* from the first submission to the last end */
    double utilisation;                   /* of all GPUs, over the makespan */
    double utilisation_coming;            /* and until the last submission */
    uint32_t deadlines, deadlines_hit;
    double gpu_hours;
    uint64_t passes;
    int64_t *start_ns; /* by job of the trace; -1: left out */
    struct simulate_step *step;
    size_t steps, step_cap;
};

int simulate(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret, struct error *e)
    MUST_CHECK;
void simulate_done(struct simulate_result *r);

/* Means over `count` equal parts of the time from 0 to `until_ns`: jobs that wait, or GPUs that are busy. */
void simulate_curve(const struct simulate_result *r, int64_t until_ns, bool is_busy, double *ret, size_t count);
