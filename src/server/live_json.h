/* Live state as JSON: whole, and as what changed since the streams were last told. */
#pragma once

#include "base/buf.h"
#include "server/live.h"

/* One GPU with its node and instances; with_inventory: what the card is, too. */
void live_json_gpu(struct buf *b, const struct live_node *n, const struct live_device *d, int64_t now_ns,
                   bool with_inventory);
/* "gpus":[...] of all nodes, and "nodes":[...] */
void live_json_gpus(struct buf *b, const struct live *l, int64_t now_ns);
void live_json_nodes(struct buf *b, const struct live *l, int64_t now_ns);
void live_json_node(struct buf *b, const struct live_node *n, int64_t now_ns);

/* The two keys "gpus" and "nodes" of a delta, and notes what was told. False: nothing changed. */
bool live_json_delta(struct buf *b, struct live *l, int64_t now_ns);
/* A snapshot tells everything: notes that. */
void live_told(struct live *l, int64_t now_ns);

/* An event as the API gives it. gpu may be NULL. id 0: not known. */
struct event;
void live_json_event(struct buf *b, const struct event *ev, int64_t id, const char *node, const struct inventory *gpu);
