/* Questions to nodes about their containers (model/wire_container_call.h), answered later. The server decides nothing here: it says
 * which account asks, and the node does the rest. Belongs to the loop's thread. */
#pragma once

#include "base/error.h"
#include "model/wire_container_call.h"
#include "net/loop.h"
#include "server/link.h"
#include "server/live.h"

struct containers;

struct containers *containers_new(struct loop *l, struct links *links);
void containers_free(struct containers *c); /* accepts NULL; whoever waits is told */

/* Called once, unless containers_ask fails. a NULL: no answer came. */
typedef void (*containers_fn)(void *ctx, int result, const struct wire_container_answer *a, const char *sentence);
/* call->request is filled in. */
int containers_ask(struct containers *c, struct live_node *n, struct wire_container_call *call, containers_fn done,
                   void *ctx, struct error *e) MUST_CHECK;
