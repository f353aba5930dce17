/* Server-sent events out of a stream of bytes that comes in pieces of any size. Pure. Comments, ids and what is not
 * known are passed over; a message beyond its limit is an error, never cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TOP_STREAM_MAX (8u << 20)

struct top_stream {
    struct buf line, data;
    char event[32];
    bool after_cr; /* a line feed that comes now belongs to the line before */
};

/* One whole message; a negative result stops the feeding and is returned. */
typedef int (*top_stream_fn)(void *ctx, const char *event, const char *data, size_t len);

void top_stream_done(struct top_stream *s);
int top_stream_feed(struct top_stream *s, const char *bytes, size_t n, top_stream_fn each, void *ctx) MUST_CHECK;
