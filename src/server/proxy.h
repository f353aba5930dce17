/* UIs of jobs and containers, opened through the server. Each has an origin of its own: a port out of ui.ports, or a name of its own where
 * ui.url says how names are made. It is open from when somebody who may asks for it until the job ends, and only for those who asked:
 * a ticket that works once becomes a cookie, which counts as long as the session that asked for it. Belongs to the loop's thread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "model/ui.h"
#include "model/wire_stream.h"
#include "server/auth.h"

struct server;
struct proxy;
struct call;

/* What is to be opened. */
struct proxy_target {
    char node[64], title[128], owner[64];
    struct wire_stream_open open; /* kind, run or container, port (0: the one it declared) */
    int64_t job, element;         /* job 0: a container */
    struct ui ui;
};

int proxy_new(struct server *s, struct proxy **ret, struct error *e) MUST_CHECK;
void proxy_free(struct proxy *p);  /* accepts NULL */
void proxy_drain(struct proxy *p); /* the server stops: nothing is open any more */

/* Opens it for who calls; appends the address with its ticket. */
int proxy_open(struct proxy *p, const struct call *c, const struct proxy_target *t, struct buf *url, struct error *e)
    MUST_CHECK;
