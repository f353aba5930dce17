/* The live stream (text/event-stream): a snapshot at first, then what changed, about once a second, and events as they
 * come. Each message is encoded once and shared by all readers; one that does not keep up is dropped and comes back. */
#pragma once

#include "net/http_server.h"
#include "server/live.h"

struct streams;

/* may_read: whether whoever opened a stream may still read it; asked now and then, NULL: he may. */
struct streams *streams_new(struct loop *l, struct live *live,
                            bool (*may_read)(void *ctx, const struct http_request *r), void *ctx);
void streams_free(struct streams *s); /* accepts NULL */
/* Jobs, too: the queue is made later than the streams. */
struct queue;
void streams_add_queue(struct streams *s, struct queue *q);

/* Takes the request over. -EBUSY: too many. */
int streams_add(struct streams *s, struct http_request *r, struct error *e) MUST_CHECK;

/* A node's round has ended: a good moment to tell. */
void streams_round(struct streams *s);
void streams_event(struct streams *s, const struct event *ev, int64_t id, const char *node,
                   const struct inventory *gpu);
unsigned streams_count(const struct streams *s);
