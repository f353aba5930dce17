/* The nodes' connections: DIR/run/server/link.sock, for root and the instance's owner only. Frames go to live; what we
 * have to say (marks, orders) goes back the same way. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/wire_server.h"
#include "net/loop.h"
#include "server/live.h"

struct links;

int links_new(struct loop *l, struct live *live, const char *path, uid_t owner, struct links **ret, struct error *e)
    MUST_CHECK;
void links_free(struct links *l); /* accepts NULL */

/* Stops listening and lets go of the nodes: they come back to whoever listens next. */
void links_close(struct links *l);

/* Ends a node's connection, if it has one. */
void link_end(struct links *l, const struct live_node *n, const char *why);

/* Has a node do something. `done` is called once: with its answer, or when its connection ends, or after ten seconds.
 * -ENOTCONN: there is no connection. o->id is filled in. */
typedef void (*link_done_fn)(void *ctx, int result, const char *sentence);
int link_order(struct links *l, struct live_node *n, struct wire_order *o, link_done_fn done, void *ctx,
               struct error *e) MUST_CHECK;

/* Who takes frames about jobs, hears of a node that was welcomed, and of one that left. A copy is kept. */
struct link_jobs {
    void *ctx;
    int (*take)(void *ctx, struct live_node *n, const struct wire_frame *f, struct error *e);
    void (*came)(void *ctx, struct live_node *n);
    void (*left)(void *ctx, struct live_node *n);
};
void links_on_jobs(struct links *l, const struct link_jobs *jobs);
/* The same about containers; `came` is not called. */
void links_on_containers(struct links *l, const struct link_jobs *containers);

/* Frames to a node; no answer is waited for. -ENOTCONN: there is no connection. */
int link_send(struct links *l, struct live_node *n, const struct buf *frames, struct error *e) MUST_CHECK;

uid_t links_owner(const struct links *l); /* of the instance */
