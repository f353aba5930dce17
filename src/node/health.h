/* Whether a service's run is well, found out beside it: each has a thread of its own that asks its port or runs its command, as
 * often as its policy says, and tells the server what it found. What hangs, hangs there: the jobs' thread never waits. A node that
 * is started anew begins again with what goes on. */
#pragma once

#include "model/wire.h"
#include "node/runs.h"

/* A run is seen to be as it stands: one that runs is looked after from now on, one that ended no more. By the jobs' thread. */
void health_follow(const struct run *run);

/* TRY: looked into by a thread, and answered. */
void health_try(const struct wire_frame *f);
