/* Jobs, their runs, cordons and usage as rows of the state file. All functions run on the store thread (or before it starts,
 * by state_run), each call within one transaction. Times are wall clock nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/wire_run.h"
#include "server/state_sql.h"

/* By which way a job came. A watchmen client's is a lease: GPUs are set aside for him, nothing is started. */
enum queue_origin { QUEUE_BY_SOCKET, QUEUE_BY_ACCOUNT, QUEUE_BY_WATCHMEN, QUEUE_ORIGIN_COUNT };

/* Who made a job out of a record that was handed in once; QUEUE_OF_NOBODY: the one who handed it in. */
enum queue_parent { QUEUE_OF_NOBODY, QUEUE_OF_REPEAT, QUEUE_OF_SERVICE, QUEUE_PARENT_COUNT };

struct queue_job_row {
    int64_t id, submitted_ns, ended_ns; /* ended 0: not over */
    uint32_t uid;
    const char *user, *account; /* account: who handed it in by the API; "": nobody */
    const char *node;           /* whose seal it is: it runs there or nowhere */
    const char *text;           /* what people should know about its end */
    uint8_t origin, state;      /* enum queue_origin, enum job_state */
    uint8_t parent_kind;        /* enum queue_parent ... */
    int64_t parent;             /* ... and its number */
    int64_t behind;             /* a job that must be over before, however it ends; 0: none but those of its record */
    int priority;               /* its record's, or what somebody made of it */
    uint32_t elements, at_once;
    uint32_t counts[JOB_STATE_COUNT]; /* of several elements that are over; only read, and only with runs */
    bool is_held;                     /* by somebody, until he lets it go */
    const void *record, *seal;
    size_t record_len, seal_len;
    const char *ask; /* of the first of several: by what it was asked for (not read back); NULL */
};

struct queue_run_row {
    struct wire_run of; /* key, times, exit, figures, text; its state is not kept */
    uint8_t state;      /* enum job_state */
    uint8_t stop;       /* enum job_reason that it was told to end for; JOB_BY_ITSELF: it was not */
    bool again;         /* it is over, and another attempt of its element follows */
    const char *gpus;   /* UUIDs with commas */
    int64_t granted_ns;
    const struct wire_figures *now; /* of one that goes on; not in the file; NULL: nothing was told */
};

/* What a run that is over has cost, to be spread over the hours that it held its GPUs in. */
struct queue_usage {
    const char *user;
    int64_t from_ns, to_ns;
    double gpus;             /* a share of one is less than 1 */
    double used_s, energy_j; /* of all its GPUs together */
    double wait_s;           /* from submission (or the end before) to the grant */
    bool is_failed;
};

/* ---- changes ---- */

/* Numbers follow each other from *ret_first on; none is ever used twice. All or nothing. */
int queue_store_add(struct sql *db, const struct queue_job_row *rows, size_t count, int64_t *ret_first, struct error *e)
    MUST_CHECK;
/* The first job that was asked for by this, and how many came with it. 1; 0: none was; negative. */
int queue_store_asked(struct sql *db, const char *ask, int64_t *ret_first, int64_t *ret_count, struct error *e)
    MUST_CHECK;
/* State, text, end, priority and hold of a job. */
int queue_store_job(struct sql *db, const struct queue_job_row *j, struct error *e) MUST_CHECK;
/* Makes or replaces a run's row. */
int queue_store_run(struct sql *db, const struct queue_run_row *r, struct error *e) MUST_CHECK;
/* Whether this run's end is stored already. 1, 0, or negative. */
int queue_store_is_over(struct sql *db, const struct wire_run_key *k, struct error *e) MUST_CHECK;
/* The seal of a job, appended. */
int queue_store_seal(struct sql *db, int64_t job, struct buf *ret, struct error *e) MUST_CHECK;
int queue_store_usage(struct sql *db, const struct queue_usage *u, struct error *e) MUST_CHECK;
/* reason NULL: the GPU is in service again. */
int queue_store_cordon(struct sql *db, const char *uuid, const char *reason, const char *who, int64_t now_ns,
                       struct error *e) MUST_CHECK;
/* The GPUs that were put back into service, and when. */
int queue_store_sound(struct sql *db, void (*each)(void *ctx, const char *uuid, int64_t since_ns), void *ctx,
                      struct error *e) MUST_CHECK;
/* Forgets jobs that ended before, a bounded number; how many. */
int queue_store_trim(struct sql *db, int64_t ended_before_ns, struct error *e) MUST_CHECK;

/* ---- reading ---- */

/* What is pointed to is good during the call. A job comes before its runs, which come in the order of elements and attempts. */
struct queue_reader {
    void *ctx;
    int (*job)(void *ctx, const struct queue_job_row *j, struct error *e);
    int (*run)(void *ctx, const struct queue_run_row *r, struct error *e);
    void (*cordon)(void *ctx, const char *uuid, const char *reason, const char *who, int64_t since_ns);
    void (*usage)(void *ctx, const char *user, int64_t hour, double held_s);
    bool (*fits)(void *ctx, const struct queue_job_row *j); /* asked first; NULL: all do */
};
/* All jobs that are not over with their runs, all cordons, usage since an hour (unix hours). Seals are not read. */
int queue_store_read(struct sql *db, int64_t since_hour, const struct queue_reader *r, struct error *e) MUST_CHECK;

/* A page of jobs, the newest first, each with its runs if it has few. */
struct queue_ask {
    int64_t before;   /* numbers below this; 0: all */
    uint64_t states;  /* bits of enum job_state; 0: any */
    uint64_t origins; /* bits of enum queue_origin; 0: any */
    const char *user; /* NULL: anybody's */
    int limit;
    int64_t only;       /* above 0: just this one */
    uint32_t runs_most; /* of each job; 1: the one that goes on, else the last that ended as the job did; 0: none */
    bool has_number;    /* of several: only those of the element of this number, as people see it */
    int64_t number;
};
/* How many jobs were looked at. */
int queue_store_list(struct sql *db, const struct queue_ask *a, const struct queue_reader *r, struct error *e)
    MUST_CHECK;
/* The state of a job that may be over; -ENOENT: there is none of that number. */
int queue_store_state(struct sql *db, int64_t job, struct error *e) MUST_CHECK;

/* Of an element that was given GPUs; 0: it never was. */
int queue_store_last_attempt(struct sql *db, int64_t job, uint32_t element, struct error *e) MUST_CHECK;

struct queue_report_row {
    const char *user;
    double held_s, used_s, energy_j, wait_s;
    int64_t runs, failed; /* that have ended */
    int64_t running;
};
/* By user. Hours from..to (unix hours, to is not included). */
int queue_store_report(struct sql *db, int64_t from_hour, int64_t to_hour,
                       void (*each)(void *ctx, const struct queue_report_row *row), void *ctx, struct error *e)
    MUST_CHECK;
