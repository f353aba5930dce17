/* The machines that belong here, over restarts of the server: what live knows of them, kept in the state file. So a
 * machine that fell silent while nobody looked is missed all the same, and one that is gone stays listed until somebody
 * with the right to do so forgets it.
 *
 * A machine that comes back under another name is known by its cards: once another one that is connected has them all,
 * the old name goes without a word. (A container has a new name each time it is made.) Belongs to the loop's thread. */
#pragma once

#include "server/live.h"
#include "server/state.h"

struct roster;

/* A machine that goes because node `to` has its cards; n is valid during the call. */
typedef void (*roster_moved_fn)(void *ctx, struct live_node *n, const char *to);

/* While state_run is still allowed. Puts those that are known into live, as silent. */
int roster_new(struct state *s, struct live *live, roster_moved_fn moved, void *ctx, struct roster **ret,
               struct error *e) MUST_CHECK;
void roster_free(struct roster *r); /* accepts NULL; after state_close */

/* Once a second, after live_tick: writes what has changed. */
void roster_tick(struct roster *r, int64_t now_ns);

/* The last time: when each was seen. Before state_close. */
void roster_stop(struct roster *r);

/* Forgets a node that is gone: first in the file, then `done`, which is to take it off live. */
int roster_forget(struct roster *r, const char *name, state_done_fn done, void *ctx, struct error *e) MUST_CHECK;
