/* What runs leave behind besides their own rows: which GPU each held and when, to find those of a span of time without a walk
 * through all, and curves of what they used. All functions run on the store thread (or before it starts), within a transaction. */
#pragma once

#include "model/curve.h"
#include "server/queue_store.h"

/* A run that is over, under each of its GPUs. */
int trail_store_end(struct sql *db, const struct queue_run_row *r, struct error *e) MUST_CHECK;
int trail_store_curve(struct sql *db, const struct wire_run_key *k, const void *body, size_t len, struct error *e)
    MUST_CHECK;
/* Of a job that is forgotten. */
int trail_drop(struct sql *db, int64_t job, struct error *e) MUST_CHECK;

/* Runs that are over and held a GPU at some time from `from` until `to`: first those that began within, the newest first, at most
 * `limit`; then, if those were all, the ones that went on at its beginning. `each` gets a job and its run. 1: there are more. */
struct trail_ask {
    const char *gpu;
    int64_t from_ns, to_ns;
    int limit;
};
int trail_of_gpu(struct sql *db, const struct trail_ask *a,
                 int (*each)(void *ctx, const struct queue_job_row *j, const struct queue_run_row *r, struct error *e),
                 void *ctx, struct error *e) MUST_CHECK;

/* A run's curve as it was stored last; attempt 0: of the last run that has one. */
struct trail_curve {
    struct wire_run_key key; /* element: the place, not the number */
    int64_t started_ns, ended_ns;
    struct curve curve;
};
/* number: of the element, as people see it; below 0: of a job that is none of several. 1; 0: there is none; -ENOENT: no such job
 * or element. */
int trail_curve(struct sql *db, int64_t job, int64_t number, uint32_t attempt, struct trail_curve *ret, struct error *e)
    MUST_CHECK;
/* All curves of jobs that are not over. One that cannot be read is passed over. */
int trail_open_curves(struct sql *db, void (*each)(void *ctx, const struct wire_run_key *k, const struct curve *c),
                      void *ctx, struct error *e) MUST_CHECK;
