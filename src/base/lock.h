/* A lock that has an owner: a file that one process holds, and that says who. The lock goes with the process, however it
 * ends; but a process one of whose threads is stuck in the kernel does not end, and keeps it. So an owner is never kept off
 * by its own earlier process: what else keeps the two apart is for the caller to know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Returns a descriptor, to be closed when it is over. -EBUSY: another owner has it, and *holder says who ("pid 4711,
 * /var/lib/gpumgr"), as far as it is known. Where it was taken, *holder says which other owner had it last, or "". */
int lock_take(const char *path, const char *owner, char *holder, size_t room, struct error *e) MUST_CHECK;

/* The owner in what lock_take says of a holder, or NULL. */
const char *lock_owner(const char *holder);

/* Whether nobody has it at this moment; takes nothing. */
bool lock_is_free(const char *path);
