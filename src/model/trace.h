/* Jobs that were: who wanted how many GPUs when, and for how long. Read from CSV bytes, or filled from elsewhere; in the order
 * in which they came. Pure.
 *
 * CSV: a line of names, then a line a job. Columns are known by name, in any order, others are left alone and named:
 *   user, gpus, submit_min, duration_min   must be there
 *   deadline_min   after the submission; empty or 0: none
 *   limit_min      its time limit; empty or 0: none
 *   share_gib      a part of one GPU's memory; empty or 0: it has its GPUs whole
 *   memory_gib     each of its GPUs has at least so much
 *   priority, name
 *   job, after     after: which of them (as in job, with blanks or semicolons between) must have ended before it may start
 * Each _min may be _s (seconds) instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/names.h"

#define TRACE_JOBS_MAX 2000000u
#define TRACE_BYTES_MAX (512u << 20)
#define TRACE_USERS_MAX 100000u
#define TRACE_NONE UINT32_MAX

struct trace_job {
    int64_t submit_ns, run_ns; /* submit: from the trace's own beginning */
    int64_t finish_by_ns;      /* on the same clock; 0: no deadline */
    int64_t limit_ns;
    int64_t start_ns; /* when it began in truth, on the same clock; negative: not known */
    uint64_t like;    /* jobs of one number take about as long (likes_key) */
    uint64_t memory_bytes, share_bytes;
    uint32_t user, node; /* node: the only one it may be on, as in struct plan_gpu; TRACE_NONE: any */
    uint32_t number;     /* in which it was added */
    uint32_t
        array; /* after trace_order: the place of the first of its array, before: its number; TRACE_NONE: its own */
    uint32_t at_once;             /* of its array; 0: all */
    uint32_t scope_at, scope_len; /* GPUs, in trace.list */
    uint32_t after_at,
        after_len;    /* jobs, in trace.list, to each its own: after trace_order their places, before: their numbers */
    int64_t pause_ns; /* after those that it follows: only then may it start */
    uint32_t gpu;     /* the first that it had in truth; TRACE_NONE: not known */
    int gpus, priority;
    bool is_scoped, is_listed;
    bool is_unlike; /* how long it took says nothing of its like: it failed, or was ended */
};

struct trace {
    struct trace_job *job;
    uint32_t jobs;
    struct names users;
    uint32_t *list; /* of numbers, for jobs' scopes and afters */
    uint32_t list_len;
    uint32_t shares, afters; /* jobs that have such */
    int64_t zero_ns;         /* where the trace begins on the clock that it came with */
    struct buf unused;       /* names of columns that were left alone, with ", " between */
    size_t job_cap, list_cap;
};

void trace_done(struct trace *t);

/* The number of a user of that name, who is made if need be. -E2BIG: there are too many. */
int trace_user(struct trace *t, const char *name, size_t len, uint32_t *ret, struct error *e) MUST_CHECK;
int trace_add(struct trace *t, const struct trace_job *j, struct error *e) MUST_CHECK;
/* One more of the last job's list, which is the last in trace.list; for its scope or its afters, one after the other. */
void trace_list_add(struct trace *t, uint32_t number);
/* To be called after the last: the first comes at 0, and all are in order. Those of one array come together. */
void trace_order(struct trace *t);

/* The sentence names line and column. */
int trace_read_csv(struct trace *t, const char *bytes, size_t len, struct error *e) MUST_CHECK;
