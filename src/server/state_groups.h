/* Named sets of GPUs and nodes, as rows of the state file. On the store thread, or before it starts (state_run). */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "server/state_sql.h"

enum { STATE_GROUPS_MAX = 1000 };

struct state_group {
    const char *name, *label; /* label "" when there is none */
    const char *members;      /* "gpu:UUID,node:NAME" */
    int64_t changed;          /* unix seconds */
};

int state_groups_read(struct sql *db, void (*each)(void *ctx, const struct state_group *g), void *ctx, struct error *e)
    MUST_CHECK;
/* Makes or replaces. */
int state_group_put(struct sql *db, const struct state_group *g, struct error *e) MUST_CHECK;
/* -ENOENT: there is none of that name. */
int state_group_drop(struct sql *db, const char *name, struct error *e) MUST_CHECK;
