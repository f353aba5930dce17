/* Jobs that were: who wanted how many GPUs when, and for how long. Read from CSV bytes, or filled from elsewhere; in the order
 * in which they came. Pure.
 *
 * CSV: a line of names, then a line a job. Columns are known by name, in any order, others are left alone:
 *   user, gpus, submit_min, duration_min   must be there
 *   deadline_min   after the submission; empty or 0: none
 *   limit_min      its time limit; empty or 0: none
 *   priority, name, job
 * Each _min may be _s (seconds) instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TRACE_JOBS_MAX 2000000u
#define TRACE_BYTES_MAX (512u << 20)
#define TRACE_USERS_MAX 100000u

struct trace_job {
    int64_t submit_ns, run_ns; /* submit: from the trace's own beginning */
    int64_t finish_by_ns;      /* on the same clock; 0: no deadline */
    int64_t limit_ns;
    uint64_t like; /* jobs of one number take about as long (likes_key) */
    uint32_t user;
    int gpus, priority;
};

struct trace {
    struct trace_job *job;
    uint32_t jobs;
    char **user;
    uint32_t users;
    uint32_t *user_at; /* hash table */
    size_t job_cap, user_cap, table_cap;
};

void trace_done(struct trace *t);

/* The number of a user of that name, who is made if need be. -E2BIG: there are too many. */
int trace_user(struct trace *t, const char *name, size_t len, uint32_t *ret, struct error *e) MUST_CHECK;
int trace_add(struct trace *t, const struct trace_job *j, struct error *e) MUST_CHECK;
/* To be called after the last: the first comes at 0, and all are in order. */
void trace_order(struct trace *t);

/* The sentence names line and column. */
int trace_read_csv(struct trace *t, const char *bytes, size_t len, struct error *e) MUST_CHECK;
