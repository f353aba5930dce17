/* The queue: jobs that wait, run and lately ended, in memory beside their rows in the state file (queue_store). Belongs to
 * the loop's thread.
 *
 * Memory goes first, the file follows, the word to anybody else comes last: a change marks what it touched, `settle`
 * (posted to the loop, once for whatever happens in one turn) makes a scheduling pass and writes all that was touched in one
 * transaction, and only after the commit a grant is sent, an end is acknowledged, a caller is answered. What could not be
 * written is written again with the next change or second. A server that is killed at any point finds in its file what it
 * told anybody; what it had not written comes again from the nodes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/event.h"
#include "model/settings.h"
#include "model/wire_run.h"
#include "server/link.h"
#include "server/live.h"
#include "server/queue_store.h"
#include "server/state.h"

struct queue;
struct queue_job;

/* Something that belongs into the list of events. */
typedef void (*queue_event_fn)(void *ctx, const char *node, const struct event *ev);

struct queue_setup {
    struct loop *loop;
    struct state *state;
    struct live *live;
    const struct settings *settings; /* those of the server: they may change */
    queue_event_fn on_event;         /* may be NULL */
    void *ctx;
};

/* While state_run is still allowed: reads what an earlier server left. */
int queue_new(const struct queue_setup *setup, struct queue **ret, struct error *e) MUST_CHECK;
/* The links are made later than the queue; nothing happens before. */
void queue_start(struct queue *q, struct links *links);
/* Where people find this server, for messages. */
void queue_set_link(struct queue *q, const char *url);
void queue_free(struct queue *q); /* accepts NULL */

/* ---- handing in ---- */

struct queue_submit {
    const struct wire_sealed *jobs;
    size_t count;
    const char *node, *account; /* account "": it came over the node's socket */
    enum queue_origin origin;
    const char *key; /* of the caller's choice: what he handed in by it before is not taken again; NULL or "": none */
};
/* first: the number of the first job. negative: none was taken. */
typedef void (*queue_submitted_fn)(void *ctx, int result, int64_t first, const struct error *e);
/* `done` is called once, after the commit, unless this fails. The bytes are copied. */
int queue_submit(struct queue *q, const struct queue_submit *s, queue_submitted_fn done, void *ctx, struct error *e)
    MUST_CHECK;
/* What is wrong with a job that this machine can never run, or with whom it waits for. */
int queue_admit(struct queue *q, const struct job_spec *s, const char *node, struct error *e) MUST_CHECK;

/* Has a node seal a record for an account; `done` gets it, or a sentence, once. */
typedef void (*queue_sealed_fn)(void *ctx, int result, const struct wire_sealed *s, const char *sentence);
int queue_seal(struct queue *q, const char *node, const char *account, bool is_admin, const struct buf *record,
               queue_sealed_fn done, void *ctx, struct error *e) MUST_CHECK;
/* The node that a job of this spec would go to: that of its GPUs, else the one with most that are free. NULL: none. */
const char *queue_node_for(struct queue *q, const struct job_spec *s);

/* Asks the node whether a service of this record could run there: its image, its port. `done` gets 0 or a sentence, once. */
typedef void (*queue_tried_fn)(void *ctx, int result, const char *sentence);
int queue_try(struct queue *q, const char *node, uint32_t uid, const void *record, size_t len, queue_tried_fn done,
              void *ctx, struct error *e) MUST_CHECK;
/* Who hears what nodes found when they checked a service's run. */
struct wire_health;
typedef void (*queue_health_fn)(void *ctx, const char *node, const struct wire_health *h);
void queue_on_health(struct queue *q, queue_health_fn fn, void *ctx);

/* ---- control ---- */

/* Who asks. */
struct queue_who {
    bool is_admin;
    bool has_uid;
    uint32_t uid;
    const char *account; /* or "" */
};
bool queue_may(const struct queue_job *j, const struct queue_who *who);

/* Called after the commit. */
typedef void (*queue_done_fn)(void *ctx, int result, const struct error *e);
struct queue_order {
    enum wire_control_verb verb;
    int64_t job, element; /* element: a number as people see it; -1: all */
    int64_t value;        /* of a priority; of a cancel 1: also where its machine is away */
};
/* `done` is called once, unless this fails: -ENOENT, -EACCES, -EBUSY (it is over). */
int queue_control(struct queue *q, const struct queue_who *who, const struct queue_order *o, queue_done_fn done,
                  void *ctx, struct error *e) MUST_CHECK;
/* reason NULL: back in service. */
int queue_cordon(struct queue *q, const char *uuid, const char *reason, const char *who, queue_done_fn done, void *ctx,
                 struct error *e) MUST_CHECK;

/* ---- looking ---- */

struct queue_job *queue_find(const struct queue *q, int64_t id); /* NULL: unknown, or over for long */

/* Where a job stands, as a word: another one when its state, its runs or its priority are others. */
#define QUEUE_STAGE 20
void queue_stage(const struct queue_job *j, char ret[QUEUE_STAGE]);
/* `done` is called once, when the job has left this stage, for_ns is over, or the server ends. False: it never will be, for the
 * job has left it already, is over or not known. */
bool queue_wait(struct queue *q, int64_t job, const char *stage, int64_t for_ns, void (*done)(void *ctx), void *ctx);
/* The server is about to end: whoever waits is answered now. Accepts NULL. */
void queue_drain(struct queue *q);

/* What runs that go on have held and used within these hours (unix hours, to is not included): a row for each. */
struct queue_report_row;
void queue_report_now(const struct queue *q, int64_t from_hour, int64_t to_hour,
                      void (*each)(void *ctx, const struct queue_report_row *row), void *ctx);

/* "waiting" (those that match), "running", "gpus" and "plan": keys for an open object. */
struct job_match;
void queue_json(struct queue *q, struct buf *b, const struct job_match *match, size_t limit);
/* A job with its place, reason and estimate where it waits. */
void queue_json_job(struct queue *q, struct buf *b, const struct queue_job *j);
/* A job that nobody handed in, of several: when it would start and where. */
struct queue_trial_of {
    const struct job_spec *jobs;
    size_t at;
    uint32_t step; /* 1 for who waits for none of the others (model/job_after.h) */
    const char *node, *user;
};
void queue_json_trial(struct queue *q, struct buf *b, const struct queue_trial_of *t);
/* The active runs of a job, as items of an open list. */
void queue_json_runs(struct queue *q, struct buf *b, const struct queue_job *j);
/* "jobs":[what changed since the streams were last told]; nothing where nothing did. b NULL: only notes it. */
bool queue_json_delta(struct queue *q, struct buf *b);
/* "jobs":[those that run, the first that wait, those that ended lately] */
void queue_json_snapshot(struct queue *q, struct buf *b);

/* ---- logs ---- */

typedef void (*queue_log_fn)(void *ctx, int result, const struct wire_log *log, const char *sentence);
int queue_log(struct queue *q, const char *node, const struct wire_log_ask *ask, queue_log_fn done, void *ctx,
              struct error *e) MUST_CHECK;
