/* What /proc of this machine says of the processes on its GPUs: user, CPU, memory, running time, command, container. Only
 * for showing: a pid may be gone or new by then. */
#pragma once

#include "client/top_processes.h"
#include "client/view.h"

struct top_proc; /* remembers what it has read, for shares of CPU time and for what does not change */

struct top_proc *top_proc_new(void);
void top_proc_free(struct top_proc *t);

/* The processes of a view, in its order. */
void top_proc_list(struct top_proc *t, const struct view *v, struct top_processes *ret);

/* When that process began, in ticks since boot; 0: there is none. */
uint64_t top_proc_start(uint32_t pid);
