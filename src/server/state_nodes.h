/* The machines that belong here, as rows of the state file. On the store thread, and before it starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/state_sql.h"

struct state_node {
    const char *name;
    int64_t seen; /* unix seconds */
    bool is_gone;
    const char *gpus; /* UUIDs with blanks between them */
};

int state_nodes_read(struct sql *db, void (*each)(void *ctx, const struct state_node *n), void *ctx, struct error *e)
    MUST_CHECK;
int state_node_put(struct sql *db, const struct state_node *n, struct error *e) MUST_CHECK;
int state_node_drop(struct sql *db, const char *name, struct error *e) MUST_CHECK; /* one that is not there, too */
