/* Which GPUs a process of ours is stuck with. A thread that hangs in the driver and cannot be killed outlives its
 * process's death, and a second process must not ask the same card. Each thread that calls the driver for a GPU holds a
 * mark of that GPU for as long as it lives, in a small file that all samplers of an instance share. The kernel takes the
 * mark from a thread that ends, however it ends (robust mutexes); a stuck one keeps its own, and only its own, so the
 * other GPUs of the same process are free at once. A file lock would not do: it belongs to all threads together. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum fence_mark { FENCE_FAST, FENCE_SLOW, FENCE_MARKS };

struct fence;

/* RUN_DIR/fence, made if it is not there; stays mapped for the life of the process. */
int fence_open(const char *run_dir, struct fence **ret, struct error *e) MUST_CHECK;

/* Takes a GPU's mark for the calling thread, which keeps it until it ends. False: a stuck thread has it. */
bool fence_take(struct fence *f, unsigned gpu, enum fence_mark mark);

/* Whether a mark is free, without keeping it. */
bool fence_is_free(struct fence *f, unsigned gpu, enum fence_mark mark);
