/* Who may start now, on which GPUs, and why the others wait: from the state of the queue to grants and sentences. Pure: no
 * I/O, no clock; the same world gives the same answer.
 *
 *   order     priority; then of each user the first job, where it waits and none of his had a turn for fair_wait_ns, so that
 *             nobody waits for ever because of what he had; then those whose deadline can only just be kept, the earliest
 *             first; then the user who had least lately (usage, and what he holds and has before this one in the queue, in
 *             steps of PLAN_FAIR_STEP_S); within a user and within a step first come, first served.
 *   grants    all or nothing, GPUs of one node, none that is not measured free.
 *   keeping   The first job of each kind that cannot start gets GPUs kept for the earliest time at which it can, by the
 *             expected ends of what runs. Where some end is not known, what is free of them is kept from now on. GPUs that
 *             are out of reach (foreign, lost, cordoned) are waited for by nobody: nothing is kept for a job that needs one.
 *   backfill  A job behind it starts now on kept GPUs only if it is surely over by then (most_ns), so that nobody who is
 *             ahead starts later because of it. On all others it may start at once.
 *   windows   People may keep GPUs for a time. Who might not be over by then does not start there, unless it is his; within
 *             his own he starts whatever is kept for others.
 *   picking   Exactly the scope where it leaves no choice; else the node with the fewest spare GPUs, there the smallest that
 *             do, not those that a waiting job must have, and the coolest. is_listed: as they stand in the scope.
 *
 * Numbers: GPUs, users and waiting jobs are meant by their place in the world's arrays. Whoever makes one leaves out what
 * cannot start anyway: jobs that are held, that wait for another job, whose next try is due later. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "model/occupancy.h"
#include "model/plan_policy.h"

#define PLAN_NONE UINT32_MAX
#define PLAN_NEVER INT64_MAX
#define PLAN_FAIR_STEP_S 900.0 /* GPU seconds that make no difference between users */
#define PLAN_KEPT_MAX 64       /* kinds of jobs that GPUs are kept for at once */

struct plan_gpu {
    uint32_t node; /* those of one node lie side by side */
    int index;     /* as people call it ... */
    bool is_part;  /* an instance of a card that is cut (MIG) ... */
    int part;      /* ... which of them */
    uint64_t memory_bytes;
    bool is_here;           /* its node is connected and has it */
    enum occupancy verdict; /* as measured; one that a run of ours holds is FREE or as it would be without it */
    int64_t since_ns;       /* of the verdict; 0: not known */
    double temp_c;          /* NaN: not known */
    const char *node_name;  /* these are for sentences only */
    const char *user;       /* who has it outside the queue; NULL: nobody or not known */
    const char *note;       /* what is the matter, after "GPU 3"; NULL: the verdict's own words */
};

struct plan_run { /* granted, starting, running or ending */
    int64_t job, element;
    uint32_t user;
    const uint32_t *gpu;
    uint16_t gpus;
    uint64_t share_bytes;     /* 0: it has them whole */
    int64_t start_ns, end_ns; /* end: as expected, from its limit or from history; 0: nobody knows */
    bool is_endless; /* it stays until somebody ends it: nothing is kept for whoever would need its GPUs, too */
};

struct plan_job { /* that waits; in the order in which they came */
    int64_t id;
    uint32_t user, node; /* node: that sealed it; PLAN_NONE: any */
    int priority;
    int gpus;
    const uint32_t *scope; /* that it may have; is_scoped and none: nothing that exists */
    uint32_t scope_len;
    bool is_scoped, is_listed;
    uint64_t memory_bytes, share_bytes;
    int64_t finish_by_ns;
    int64_t expect_ns; /* how long it will take, from history or its limit; 0: nobody knows */
    int64_t most_ns;   /* how long it can take: its time limit; 0: for ever */
    int64_t since_ns;  /* it waits since then; 0: nobody knows */
    uint32_t elements; /* that wait */
    uint32_t room;     /* how many of them may start, by "at once"; UINT32_MAX: all */
};

struct plan_user {
    const char *name;
    double usage_s, weight; /* decayed GPU seconds up to now, with those of what runs; weight 0 is 1 */
    int64_t turn_ns;        /* when the first of his jobs had its turn last (is_turn); 0: not yet */
    int gpus_max;           /* at once; 0: no limit */
    double seconds_left;    /* GPU seconds of this week; INFINITY: no limit */
    double seconds_max;     /* what the week has: for the sentence */
};

struct plan_window { /* kept by people: nobody but its users starts what would run into it */
    uint32_t gpu;
    const uint32_t *user; /* whose it is */
    uint32_t users;
    int64_t from_ns, to_ns;
    int64_t id;      /* these are for sentences only: a reservation's number ... */
    const char *who; /* ... and whose it is */
};

struct plan_line; /* see plan_line_new */
struct plan_world {
    int64_t now_ns;                   /* wall clock, as all times here */
    const struct plan_policy *policy; /* NULL: the usual one */
    int64_t fair_wait_ns;             /* see order; 0: nobody is put first for having waited */
    struct plan_line *line;           /* of those in job[] that wait; NULL: all of them do */
    const struct plan_gpu *gpu;
    const struct plan_run *run;
    const struct plan_job *job;
    const struct plan_user *user;
    const struct plan_window *window;
    uint32_t gpus, runs, jobs, users, windows;
};

struct plan; /* memory that passes use again */
struct plan *plan_new(void);
void plan_free(struct plan *p); /* accepts NULL */

/* A line that is kept from pass to pass, for whoever plays a long time through: a pass then costs what changed, not what waits.
 * Jobs are meant by their places in job[], which must be in the order in which they came; those that were added must stay as
 * they are, but for elements and room. The same jobs in a line and in a world without one have the same passes. */
struct plan_line *plan_line_new(const struct plan_policy *policy);
void plan_line_free(struct plan_line *l);
void plan_line_add(struct plan_line *l, const struct plan_job *jobs, uint32_t job);
void plan_line_drop(struct plan_line *l, const struct plan_job *jobs, uint32_t job);

struct plan_grant {
    uint32_t job; /* one of its elements */
    uint16_t gpus;
    bool is_turn;               /* none of its user's jobs is passed over: his turn_ns is now */
    uint32_t gpu[JOB_GPUS_MAX]; /* in the order of its scope with is_listed, else by number */
};
/* What starts now, in order. *ret is good until p is used again. With these running, the next pass finds nothing more. */
size_t plan_pass(struct plan *p, const struct plan_world *w, const struct plan_grant **ret);

struct plan_reason {
    uint32_t place;   /* in the queue, from 1 */
    bool is_now;      /* a pass would start it */
    int64_t start_ns; /* estimate; 0: nobody knows */
    char why[200];    /* "2 GPUs are needed and 1 of 8 is free" */
    char sooner[160]; /* "now with 1 GPU instead of 2"; "": nothing that we know of */
};
/* For `count` waiting jobs, each meant by its place in the world, in one walk: the cost is that of the jobs before them. */
void plan_explain(struct plan *p, const struct plan_world *w, const uint32_t *jobs, size_t count,
                  struct plan_reason *ret);

/* What the last plan_explain expects, for a timeline. */
struct plan_bar {
    uint32_t gpu, job;
    int64_t from_ns, to_ns; /* to: PLAN_NEVER: nobody knows */
};
size_t plan_bars(const struct plan *p, const struct plan_bar **ret);

/* Whether a job can ever start on what there is, whoever has it now: for the submission. The sentence begins with the key. */
int plan_admit(const struct plan_world *w, const struct plan_job *j, struct error *e) MUST_CHECK;
