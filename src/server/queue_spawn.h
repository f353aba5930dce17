/* Jobs that the server makes of a record that was handed in once and is kept: a slot of a repeat, a service. The record and
 * the seal are those that its owner handed in, byte for byte, so a node takes such a job as it takes any other.
 *
 * Exactly once: the job's row and whatever its parent changes in its own tables lie in one transaction. On the loop's
 * thread, but for `work`. */
#pragma once

#include "model/job.h"
#include "server/queue.h"

/* How a job of a parent stands. */
struct queue_child {
    int64_t parent, job;
    enum job_state state;
    bool is_over;         /* it is, and stays so */
    int64_t ended_ns;     /* 0: it is not over */
    struct wire_run last; /* the end that came last; key.attempt 0: none did */
};

/* What a parent is to the queue. Stays until the queue is freed. */
struct queue_spawner {
    void *ctx;
    /* Whether a record is its own: then `take` gets what was handed in (it goes alone) instead of the queue, and calls `done`
     * with the number of what it made of it, once, after the commit, unless it fails. The bytes are the caller's. */
    bool (*is_own)(const struct job_spec *s);
    int (*take)(void *ctx, const struct queue_submit *from, queue_submitted_fn done, void *done_ctx, struct error *e);
    /* A job of its own has changed. It may be told the same twice, and before that is in the file: a server that is killed
     * then hears it again. May spawn. */
    void (*news)(void *ctx, const struct queue_child *c);
};
/* Before queue_start. */
void queue_spawn_register(struct queue *q, enum queue_parent kind, const struct queue_spawner *s);

struct queue_spawn {
    enum queue_parent kind;
    int64_t parent;
    int64_t behind; /* not before this job is over, however it ends; 0: at once */
    uint32_t uid;
    const char *user, *account, *node;
    enum queue_origin origin;
    const void *record, *seal;
    size_t record_len, seal_len;
};
/* On the store thread, in the transaction that makes the job, after its row was made: a negative result undoes both. */
typedef int (*queue_spawn_work_fn)(struct sql *db, void *ctx, int64_t job, struct error *e);
/* `done` is called once, after the commit, unless this fails; then the job is in the queue. The bytes are copied. Whether the
 * machine can run it is not asked again: it waits, and the queue says what for. */
int queue_spawn(struct queue *q, const struct queue_spawn *s, queue_spawn_work_fn work, queue_submitted_fn done,
                void *ctx, struct error *e) MUST_CHECK;

/* How a job of a parent stands now. False: it is over for long (queue_store has it), or never was. */
bool queue_spawn_look(const struct queue *q, int64_t job, struct queue_child *ret);

/* Ends a job of a parent, if it is not over: `text` says to people why. */
void queue_spawn_end(struct queue *q, int64_t job, const char *text);

/* The caller's key as the file knows it, for a parent that keeps its own; "": he gave none. */
#define QUEUE_ASK 240
void queue_ask_text(const struct queue_submit *from, char ret[QUEUE_ASK]);

/* For queue_submit: 1: it was taken by a parent; 0: it is the queue's; negative: it makes no sense. */
int queue_spawn_take(struct queue *q, const struct queue_submit *from, queue_submitted_fn done, void *ctx,
                     struct error *e) MUST_CHECK;
