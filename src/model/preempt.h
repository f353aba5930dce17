/* Who must give GPUs back so that somebody more important can start: of the runs that have agreed to that (a service with
 * yield), the fewest, of these the least important, of these those that began last. Nothing is ended in vain: a set of runs
 * counts only if a pass over the same world without them starts the job that waits. Pure. */
#pragma once

#include "model/plan.h"

struct preempt_run { /* beside the world's run of the same place */
    int priority;
    bool yields;    /* it may be ended for a job of a higher priority */
    bool is_ending; /* it was told to: its GPUs will be free */
};

#define PREEMPT_RUNS_MAX 256 /* that are told to end by one look */
#define PREEMPT_JOBS_MAX 16  /* that are looked at, the most important first */

/* The places of the runs that are to end now, and for each the place of the job that it ends for; how many. p: memory of its own,
 * not that of a pass whose grants are still wanted. */
size_t preempt_choose(struct plan *p, const struct plan_world *w, const struct preempt_run *runs,
                      uint32_t ret[PREEMPT_RUNS_MAX], uint32_t ret_for[PREEMPT_RUNS_MAX]);
