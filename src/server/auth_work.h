/* One thread for what takes long and much memory: hashes of passwords. One at a time; a few may wait, and who comes then is
 * told to come again, so that nobody can fill the memory by guessing. */
#pragma once

#include "base/error.h"
#include "server/state.h"

enum { WORK_WAITING_MAX = 8 };

struct work;

int work_new(state_post_fn post, void *loop, struct work **ret, struct error *e) MUST_CHECK;
void work_free(struct work *w); /* accepts NULL; what waits is not done any more */

/* run on the thread, then done on the loop. -EAGAIN: too many wait, neither will be called. */
int work_submit(struct work *w, void (*run)(void *ctx), void (*done)(void *ctx), void *ctx, struct error *e) MUST_CHECK;
