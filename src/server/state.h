/* The state file (DIR/server/state.db): accounts, sessions, tokens, groups, the audit log, the outbox. One thread writes
 * it; what several callers ask for at the same time is committed together, with one sync. What `done` reports as good is
 * on the disk. Reading goes the same way; what is needed at every request its owner keeps in memory (auth.c).
 *
 * A file of a newer gpumgr, or of another program, is refused and left as it is. */
#pragma once

#include "base/error.h"

struct state;
struct sql; /* state_sql.h */

enum { STATE_QUEUE_MAX = 4096 };

/* On the store thread, within a transaction: a negative result undoes what it did, and only that. */
typedef int (*state_work_fn)(struct sql *db, void *ctx, struct error *e);
/* On the loop, once, after the commit (or its failure). e is only valid during the call. */
typedef void (*state_done_fn)(void *ctx, int result, const struct error *e);
/* How the store thread reaches the loop: runs fn(arg) there, soon, in the order of the calls. */
typedef void (*state_post_fn)(void *loop, void (*fn)(void *arg), void *arg);

/* Opens, migrates; no thread yet. */
int state_open(const char *path, struct state **ret, struct error *e) MUST_CHECK;

/* Before state_start only: at once, in a transaction of its own. */
int state_run(struct state *s, state_work_fn work, void *ctx, struct error *e) MUST_CHECK;

int state_start(struct state *s, state_post_fn post, void *loop, struct error *e) MUST_CHECK;

/* From the loop. -EAGAIN: too much waits already, and neither function will be called. done may be NULL. */
int state_submit(struct state *s, state_work_fn work, state_done_fn done, void *ctx, struct error *e) MUST_CHECK;

/* Does what waits, ends the thread, closes the file. Whatever is still to be done on the loop was posted before. */
void state_close(struct state *s);
