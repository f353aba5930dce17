/* A thread that does one thing after the other, for the loop: what may wait for a disk. */
#pragma once

#include "base/error.h"
#include "net/loop.h"

struct worker;

/* run is called on the worker's thread, then done on the loop's (unless it is NULL). */
typedef void (*worker_fn)(void *ctx);

/* most: how many pieces of work may wait. */
int worker_new(struct loop *l, const char *name, unsigned most, struct worker **ret, struct error *e) MUST_CHECK;

/* From the loop. -EAGAIN: too much waits already, and neither function will be called. */
int worker_submit(struct worker *w, worker_fn run, worker_fn done, void *ctx, struct error *e) MUST_CHECK;

/* Whether something waits: from `run`, to be brief. */
unsigned worker_waiting(struct worker *w);

/* Does what waits, ends the thread. Calls of `done` that were posted are made when the loop runs on. Accepts NULL. */
void worker_end(struct worker *w);
