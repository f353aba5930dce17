/* Tasks and containers of all nodes as JSON: whole, and as what changed since the streams were last told. */
#pragma once

#include "base/buf.h"
#include "server/live.h"

/* "tasks":[...]: those that run and those that ended in the last minutes; with_ended false: only those that run. */
void live_json_tasks(struct buf *b, const struct live *l, bool with_ended, int64_t now_ns);
/* "tasks":[what changed], nothing where nothing did; notes what was told. b NULL: only notes. */
bool live_json_tasks_delta(struct buf *b, struct live *l, int64_t now_ns);
void live_json_task(struct buf *b, const struct live_node *n, const struct live_task *t, int64_t now_ns);

/* An object. now_real_ns: for the time of its last miss. */
void live_json_container(struct buf *b, const struct live_node *n, const struct live_container *c, int64_t now_ns,
                         int64_t now_real_ns);
/* "placement":{...} of a node, when it has told. */
void live_json_placement(struct buf *b, const struct live_node *n);
