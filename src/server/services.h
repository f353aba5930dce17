/* Services: jobs that are to stay up. model/service says what is to be done; here it is done: jobs are made of a revision's record
 * (queue_spawn) and ended (queue_control), facts are taken from the queue and from the nodes' checks. On the loop's thread.
 *
 * Memory goes first, the file follows, the word to who asked comes last, as in the queue. The job that a service is given and the
 * line that says so lie in one transaction; while that is under way nothing else of that service is written, so that no older
 * state can come after it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "server/queue.h"

struct services;
struct services_setup {
    struct loop *loop;
    struct state *state;
    struct queue *queue;
    queue_event_fn on_event; /* may be NULL */
    void *ctx;
};

/* While state_run is still allowed, after the queue was made and before it is started. */
int services_new(const struct services_setup *setup, struct services **ret, struct error *e) MUST_CHECK;
void services_start(struct services *s); /* after queue_start */
void services_free(struct services *s);  /* accepts NULL */

/* word: a number, or a name: his own first, then anybody's that is the only one. 0: there is none. */
int64_t services_find(const struct services *s, const char *word, const struct queue_who *who, struct error *e);

enum service_verb { SERVICE_DO_SUSPEND, SERVICE_DO_RESUME, SERVICE_DO_RESTART, SERVICE_DO_REMOVE };
/* `done` is called once, after the commit, unless this fails: -ENOENT, -EACCES, -EBUSY. */
int services_do(struct services *s, const struct queue_who *who, int64_t id, enum service_verb verb, queue_done_fn done,
                void *ctx, struct error *e) MUST_CHECK;

/* Items of an open list. */
void services_json(struct services *s, struct buf *b);
/* One of them, with its checks, its revisions and its jobs; false: there is none. */
bool services_json_one(struct services *s, struct buf *b, int64_t id);
/* What it was made of, as it can be handed in again: with its environment, so for its owner alone. */
int services_json_spec(struct services *s, struct buf *b, int64_t id, uint32_t revision, const struct queue_who *who,
                       struct error *e) MUST_CHECK;
