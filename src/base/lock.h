/* A lock that has an owner: a file that one process holds, and that says who. The lock goes with the process, however it
 * ends; but a process one of whose threads is stuck in the kernel does not end, and keeps it. So an owner is never kept off
 * by its own earlier process: what else keeps the two apart is for the caller to know. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Returns a descriptor, to be closed when it is over. -EBUSY: another owner has it; then, and only then, *holder says who
 * ("pid 4711, /var/lib/gpumgr"), as far as it is known. */
int lock_take(const char *path, const char *owner, char *holder, size_t room, struct error *e) MUST_CHECK;
