/* Notes when processes end, and does nothing else: a thread that only waits on pidfds is there when it matters, while whoever
 * makes something of it may be held up by a file of /proc (the kernel has one lock for all cgroups). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* wake_fd: an eventfd that becomes readable when there are some. The thread runs until the process ends. */
int ends_start(int wake_fd, struct error *e) MUST_CHECK;

/* Closing the pidfd takes it out again. False: it cannot be waited on. */
bool ends_add(int pidfd, uint32_t number);

/* One that ended since the last call, and when; false: none. */
bool ends_take(uint32_t *ret_number, int64_t *ret_ns);
