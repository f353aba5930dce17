/* What the files queue*.c do for each other; queue_own.h has what they share. */
#pragma once

#include "server/queue_own.h"

struct queue_retry {
    struct queue_retry *next;
    int64_t job, due_ns;
    uint32_t element;
};

/* ---- queue.c ---- */
char *queue_copy(const char *text);
struct queue_job *queue_job_new(const struct queue_job_row *row, struct error *e);
void queue_job_free(struct queue_job *j);
void queue_add(struct queue *q, struct queue_job *j); /* numbers only grow */
enum job_state queue_job_state(const struct queue_job *j);
/* A run of it is over: the job is shown by that one, unless it has one that says more of why it is as it is. */
void queue_job_take_end(struct queue_job *j, const struct queue_run_row *row);
void queue_element_set(struct queue *q, struct queue_job *j, uint32_t element, enum job_state to);
struct queue_run *queue_run_find(const struct queue *q, const struct wire_run_key *k);
void queue_run_drop(struct queue_run *r);
/* The job may be over: sets its end, tells those that wait for it. */
void queue_job_settle(struct queue *q, struct queue_job *j);

/* ---- queue_after.c ---- */
/* Of a job that has its record; behind: one more, however it ends; 0: none. */
void queue_after_take(struct queue_job *j, int64_t behind);
/* On the store thread: whether whom a new job waits for is there, and did not end badly. */
int queue_after_check(struct sql *db, const struct queue_job *j, struct error *e) MUST_CHECK;
/* The job has its number and is in the queue: what it waits for may be over by now. */
void queue_after_add(struct queue *q, struct queue_job *j);
/* A job of this number is over in this state: those that waited for it hear of it, and of whoever ends by that. */
void queue_resolve(struct queue *q, int64_t id, enum job_state state);
/* What came from the file: looks up those that only the file has; and then lets them be over. */
int queue_after_load(struct sql *db, struct queue *q, struct error *e) MUST_CHECK;
void queue_after_begin(struct queue *q);

/* ---- queue_spawn.c ---- */
void queue_spawn_news(struct queue *q, const struct queue_job *j); /* its parent hears how it stands */

/* ---- queue_past.c ---- */
void queue_past_add(struct queue *q, const char *user, const char *name, int64_t took_ns);
/* How long the like of it takes, or its limit; 0: nothing is known. */
int64_t queue_past_ns(const struct queue *q, const char *user, const char *name, int64_t limit_ns);
/* When one ends that began then and may take so long (0: for ever); 0: nobody knows. */
int64_t queue_past_end(const struct queue *q, const char *user, const char *name, int64_t start_ns, int64_t limit_ns,
                       int64_t now_ns);
uint32_t queue_user_number(struct queue *q, const char *name);
void queue_usage_add(struct queue *q, const char *user, double held_s, int64_t then_ns, int64_t now_ns);

/* ---- queue_flush.c ---- */
/* Something changed: the streams are told, the file follows; pass: somebody may start. */
void queue_touch(struct queue *q, struct queue_job *j);
void queue_touch_run(struct queue *q, struct queue_run *r);
void queue_end_row(struct queue *q, struct queue_run *r,
                   bool again); /* its last state; again: another attempt follows */
void queue_want_pass(struct queue *q);
/* After the next commit, in the order of the calls. */
void queue_then_grant(struct queue *q, const struct wire_run_key *k);
void queue_then_stored(struct queue *q, const char *node, const struct wire_run_key *k);
void queue_then(struct queue *q, queue_done_fn done, void *ctx);
void queue_add_usage(struct queue *q, const struct queue_usage *u);
void queue_add_letter(struct queue *q, const struct letter_row *l);
void queue_settle_soon(struct queue *q);
void queue_flush_free(struct flush *f);
void queue_run_row(const struct queue_run *r, struct buf *gpus, struct queue_run_row *ret);

/* ---- queue_report.c ---- */
double queue_run_worth(const struct queue *q, const struct queue_run *r); /* in GPUs: a share of one is less than 1 */

/* ---- queue_wanted.c ---- */
/* Which GPUs somebody waits for that a process outside the queue has: told to their nodes where that changed. */
void queue_wanted_tick(struct queue *q);
void queue_tell_wanted(struct queue *q, struct live_node *n);

/* ---- queue_run.c ---- */
/* Gives GPUs to an element: memory and file; the node hears of it after the commit. */
void queue_grant(struct queue *q, struct queue_job *j, uint32_t element, const size_t *gpus, int count);
/* A run is over: w says how. */
void queue_run_end(struct queue *q, struct queue_run *r, const struct wire_run *w);
void queue_run_stop(struct queue *q, struct queue_run *r, enum job_reason why);
void queue_send_stop(struct queue *q, const struct queue_run *r);
void queue_send_grant(struct queue *q, const struct wire_run_key *k, const struct buf *seal);
int queue_take_run(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_take_figures(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
void queue_tell_runs(struct queue *q, struct live_node *n);
void queue_retry_tick(struct queue *q, int64_t now_ns);

/* ---- queue_submit.c, queue_control.c ---- */
/* Fills elements, priority and state of a job that is new, and of its row, which then points into it. */
int queue_job_begin(struct queue_job *j, struct queue_job_row *row, struct error *e) MUST_CHECK;
int queue_take_submit(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_take_control(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
void queue_staged_end(struct queue *q, const char *node, int64_t now_ns); /* node NULL: those that wait for too long */
void queue_cancel_elements(struct queue *q, struct queue_job *j, int64_t element, const char *text);

/* ---- queue_ask.c ---- */
int queue_take_sealed(struct queue *q, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_take_log(struct queue *q, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_take_tried(struct queue *q, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_take_health(struct queue *q, const struct live_node *n, const struct wire_frame *f, struct error *e)
    MUST_CHECK;
void queue_asks_end(struct queue *q, const char *node,
                    int64_t now_ns); /* of a node that left, or overdue (node NULL) */

/* ---- queue_pass.c, queue_preempt.c ---- */
void queue_preempt(struct queue *q); /* tells runs to end that yield to who waits */
void queue_pass(struct queue *q);

/* ---- queue_why.c ---- */
struct queue_reason {
    char why[200], sooner[160];
    int64_t place, starts_ns;
    bool is_now;
};
/* gpus: those that it would be given, UUIDs with commas; nothing where that is not known. */
void queue_explain_spec(struct queue *q, const struct job_spec *s, const char *node, const char *user,
                        struct queue_reason *ret, struct buf *gpus);
void queue_explain_job(struct queue *q, const struct queue_job *j, struct queue_reason *ret);
/* Of several, in the order of their numbers, for the price of the last. */
void queue_explain_jobs(struct queue *q, const struct queue_job *const *jobs, size_t count, struct queue_reason *ret);
/* Items of an open list: what runs, and what these jobs that wait may expect. */
void queue_plan_json(struct queue *q, struct buf *b, const struct queue_job *const *jobs, size_t count);

/* ---- queue_lost.c ---- */
void queue_lost_tick(struct queue *q, int64_t now_ns);
/* Somebody insists: what is to end on a machine that is away is over. element -1: all. */
void queue_lost_force(struct queue *q, struct queue_job *j, int64_t element);
/* A node has a run that is none of ours. */
void queue_lost_found(struct queue *q, const struct live_node *n, const struct wire_run_key *k);

/* ---- queue_wait.c ---- */
void queue_waits_look(struct queue *q, int64_t job);
void queue_waits_tick(struct queue *q);
void queue_waits_free(struct queue *q);

/* ---- queue_tell.c ---- */
void queue_tell_start(struct queue *q, const struct queue_run *r);
void queue_tell_unrun(struct queue *q, const struct queue_job *j); /* it is over and was never given a GPU */
void queue_tell_end(struct queue *q, const struct queue_job *j, const struct wire_run *w, enum job_state state,
                    bool again);
