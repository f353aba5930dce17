/* The node's task table (gpumgr/tasks.h) as a client reads it: mapped read-only, and only where it is sound. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/instance.h"
#include "base/shm.h"
#include "gpumgr/tasks.h"

struct task_table {
    struct shm shm;
    char path[300];
};

/* -ENOENT: no node has made one here. */
int task_table_open(struct task_table *t, const struct instance *i, struct error *e) MUST_CHECK;
void task_table_close(struct task_table *t); /* accepts what is not open */

static inline const struct gpumgr_tasks *task_table_head(const struct task_table *t) { return t->shm.mem; }

/* The name of the container that a process is in; false: not known. Opens the table anew when it was replaced. */
bool task_table_container(struct task_table *t, uint32_t pid, uint64_t ticks, char *ret, size_t room);
