/* Named sets of GPUs and nodes: kept in the state file, and in memory for those who ask. Belongs to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "server/state.h"

enum { GROUP_NAME_MAX = 64, GROUP_LABEL_MAX = 200, GROUP_MEMBERS_MAX = 65536 };

struct group {
    char *name, *label, *members; /* members: "gpu:UUID,node:NAME" */
    int64_t changed;              /* unix seconds */
};

struct groups {
    struct group *of; /* by name */
    size_t count;
};

/* While state_run is still allowed. */
int groups_load(struct groups *g, struct state *s, struct error *e) MUST_CHECK;
void groups_done(struct groups *g);

const struct group *groups_find(const struct groups *g, const char *name);
void groups_put(struct groups *g, const char *name, const char *label, const char *members, int64_t changed);
void groups_drop(struct groups *g, const char *name);

/* One sentence when it will not do. */
int groups_check_name(const char *name, struct error *e) MUST_CHECK;
int groups_check_members(const char *members, struct error *e) MUST_CHECK;

void groups_json(struct buf *b, const struct group *g);
