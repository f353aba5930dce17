/* What would have been: a trace of jobs played through on machines that do nothing else, by the very passes that schedule
 * (model/plan), under a policy. Pure; the same trace and setup give the same figures to the last bit.
 *
 * A pass follows every moment at which a job comes or ends, at which a reservation begins, ends or is given back, and, where
 * users' hours are limited, every hour. A job that is longer than its limit is ended at the limit. Jobs that the queue would
 * refuse are left out, and counted by why. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"
#include "model/trace.h"

struct simulate_window { /* of a reservation; on the trace's own clock, in seconds (trace.zero_ns) */
    int64_t from_s, to_s;
    int64_t made_s; /* nobody knew of it before */
    const uint32_t *gpu, *user;
    uint32_t gpus, users;
};

struct simulate_setup {
    uint32_t nodes, gpus_per_node;
    uint64_t gpu_bytes;         /* memory of each; 0: not known */
    const struct plan_gpu *gpu; /* these instead; NULL: nodes times gpus_per_node that are alike */
    uint32_t gpus;
    const struct plan_policy *policy;
    /* What the queue knows of a job's time: all, or what the like of it took before (model/likes), as a server would. */
    bool is_known;
    /* As close to a server as can be, and dearer: what is expected of those that wait follows what ends, unless they are very
     * many, and while GPUs are free a pass is made every minute. Else expectations are made when a job comes. */
    bool is_close;
    double half_life_h;   /* of what users had */
    int64_t fair_wait_ns; /* as in struct plan_world */
    int user_gpus;        /* at once; 0: no limit */
    double user_gpu_hours;
    const struct simulate_window *window; /* by from_s */
    uint32_t windows;
    int64_t unused_s, ahead_s; /* of reservations: as in the settings */
};

struct simulate_step { /* from then on */
    int64_t at_ns;
    uint32_t waiting;
    double busy; /* jobs; GPUs, of which a share is a part */
};

/*   id       what the jobs that were left out are, after "12 jobs " */
#define SIMULATE_OUTS(X)                                                                                               \
    X(GPUS, "gpus", "for more GPUs than a machine has")                                                                \
    X(USER, "user_gpus", "for more GPUs than a user may have at once")                                                 \
    X(MEMORY, "memory", "for more memory than a GPU has")                                                              \
    X(SCOPE, "scope", "for GPUs that are not there any more")                                                          \
    X(AFTER, "after", "that follow one which is left out, or each other")

enum simulate_out {
#define X(id, name, text) SIMULATE_##id,
    SIMULATE_OUTS(X)
#undef X
        SIMULATE_OUT_COUNT
};
extern const char *const simulate_out_names[SIMULATE_OUT_COUNT];
extern const char *const simulate_out_texts[SIMULATE_OUT_COUNT];

struct simulate_result {
    uint32_t jobs, left_out, out[SIMULATE_OUT_COUNT];
    uint32_t never; /* would wait for ever: reservations come again before they could be over */
    double wait_mean_s, wait_median_s, wait_p90_s, wait_p99_s, wait_max_s; /* from when it might have started */
    double turnaround_mean_s, makespan_s; /* from the first submission to the last end */
    double utilisation;                   /* of all GPUs, over the makespan */
    double utilisation_coming;            /* and until the last submission */
    uint32_t deadlines, deadlines_hit;
    double gpu_hours;
    uint64_t passes;
    uint32_t shares;   /* jobs with a part of a GPU */
    int64_t *start_ns; /* by job of the trace; -1: left out, or never */
    uint32_t *gpu_at;  /* by job: where its GPUs begin in gpu_list; NULL: they are not known */
    uint32_t *gpu_list;
    struct simulate_step *step;
    size_t steps, step_cap;
};

int simulate(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret, struct error *e)
    MUST_CHECK;
/* The same figures of what was, by when jobs began in truth; those of which that is not known are left out. */
void simulate_truth(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret);
void simulate_done(struct simulate_result *r);

/* How far two are apart: the part `rank` of the jobs that are in both begin within so many seconds of each other. */
double simulate_apart_s(const struct trace *t, const struct simulate_result *a, const struct simulate_result *b,
                        double rank);

/* Means over `count` equal parts of the time from 0 to `until_ns`: jobs that wait, or GPUs that are busy. */
void simulate_curve(const struct simulate_result *r, int64_t until_ns, bool is_busy, double *ret, size_t count);
