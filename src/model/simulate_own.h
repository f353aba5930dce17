/* What the files simulate*.c share, and nobody else. */
#pragma once

#include "model/likes.h"
#include "model/simulate.h"
#include "model/usage.h"

#define SIMULATE_NS 1000000000LL
#define SIMULATE_HOUR_NS (3600 * SIMULATE_NS)

struct held { /* by user */
    struct usage usage;
    double gpus, since_s; /* of what runs: how many, and the sum of when each began */
    uint64_t like;
};

struct lineup { /* elements of one array that wait; of a plain job itself */
    uint32_t first, last, active;
};

struct play {
    const struct trace *t;
    const struct simulate_setup *setup;
    struct plan *plan;
    struct plan_line *line;
    struct plan_world w;
    struct plan_gpu *gpu;
    struct plan_job *job; /* all of the trace, in order; elements of an array are the first of it */
    struct plan_run *run; /* that go on, in no order */
    struct plan_user *user;
    struct held *held;
    struct lineup *lineup;      /* by job: of the first of its array */
    uint32_t *next;             /* by job: the next one in its lineup */
    uint32_t *queue, *queue_at; /* those in line, in no order; by job: its place there */
    uint32_t queued;
    bool is_learnt;            /* how long the like takes: since the last look at those that wait */
    uint32_t *run_of, *job_of; /* by job: its place in run; by place: its job */
    double *worth;             /* by job that runs: how much of the GPUs it has */
    uint32_t *end;             /* jobs that run, a heap by when they end */
    int64_t *end_ns;           /* by job */
    uint32_t *missing;         /* by job: what must happen before it comes; 0: it came. NULL: nobody follows anybody */
    uint32_t *follower_at, *follower;              /* by job: where those that follow it begin */
    uint32_t *paused, pauses;                      /* that may start a while after those that they follow */
    int64_t *pause_end_ns;                         /* by job */
    uint32_t *users_on;                            /* by GPU: runs */
    uint32_t ends, waiting, waiting_shares, taken; /* taken: GPUs that somebody has some of */
    double busy;
    struct likes likes;
    int64_t event_ns; /* when somebody last came or ended */
    int64_t wake_ns;  /* when time alone may let somebody start */
    struct plan_window *window;
    size_t window_cap;
    int64_t *last_use_s;         /* by window of the setup */
    uint32_t window_from;        /* those before are over */
    uint32_t *waits, wait_slots; /* by user, and by node that they must have: jobs that wait */
    signed char
        admits[JOB_GPUS_MAX + 1]; /* plain jobs, by GPUs: enum simulate_out and 1; 0: not looked at, -1: taken */
    struct simulate_result *r;
};

/* How long it has its GPUs. */
static inline int64_t simulate_time_of(const struct trace_job *j) {
    return j->limit_ns && j->limit_ns < j->run_ns ? j->limit_ns : j->run_ns;
}

void *simulate_room(size_t count, size_t size); /* cleared */

/* simulate_windows.c */
void windows_begin(struct play *p);
void windows_done(struct play *p);
/* Everything stays as it is until then, and then something happens. */
void windows_use(struct play *p, int64_t until_ns);
/* For a pass. */
void windows_make(struct play *p);
int64_t windows_wake_ns(const struct play *p);
uint32_t *windows_waits(struct play *p, uint32_t job); /* how many of its user wait for such nodes */

/* simulate_figures.c */
void simulate_note(struct simulate_result *r, int64_t at_ns, uint32_t waiting, double busy);
void simulate_add_up(const struct trace *t, const struct simulate_setup *s, struct simulate_result *r);
double simulate_worth(const struct simulate_setup *s, const struct trace_job *j, uint32_t gpu);
