/* What link.c (connections) and link_stream.c (the streams over one of them) know of each other. */
#pragma once

#include <stdint.h>

#include "model/wire_stream.h"

struct bufferevent;
struct links;

/* A node's connection for streams. */
struct link_streams {
    struct link_streams *next;
    char node[64];
    struct bufferevent *bev;
    struct link_stream *first;
    uint32_t last_id;
    unsigned count;
};

struct link_streams **links_streams(struct links *l); /* the list of them */

/* hello: the connection's first frame. An older connection of the same node is found by links_streams_of. */
int link_streams_new(struct links *l, struct bufferevent *bev, const struct wire_frame *hello,
                     struct link_streams **ret, struct error *e) MUST_CHECK;
int link_streams_take(struct link_streams *k, const struct wire_frame *f, struct error *e) MUST_CHECK;
void link_streams_tick(struct link_streams *k, int64_t now_ns);
void link_streams_free(struct links *l, struct link_streams *k); /* tells whoever has a stream */
