/* Streams of bytes to something on a node (model/wire_stream.h), over the connection that the node makes for them. Belongs to the loop's
 * thread. Memory is bounded by windows: what was handed out by `data` counts until link_stream_took says that it has left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/wire_stream.h"

struct links;
struct link_stream;

/* Any of them may call any function here. ctx is what link_stream_open was given. */
struct link_stream_events {
    void (*opened)(void *ctx);
    void (*data)(void *ctx, const void *bytes, size_t n);
    void (*room)(void *ctx);  /* link_stream_room became larger */
    void (*ended)(void *ctx); /* no more data will come */
    /* Once, and the last: it is over, and the handle is not valid any more. result 0: in good order; else a sentence, which is
     * also how a stream that could not be opened is told. Not called after link_stream_close. */
    void (*closed)(void *ctx, int result, const char *sentence);
};

/* o->id is filled in. -ENOTCONN: the node is not there. */
int link_stream_open(struct links *l, const char *node, struct wire_stream_open *o,
                     const struct link_stream_events *events, void *ctx, struct link_stream **ret, struct error *e)
    MUST_CHECK;

/* How much may be written now; 0 also before `opened`. */
size_t link_stream_room(const struct link_stream *s);
void link_stream_write(struct link_stream *s, const void *bytes, size_t n); /* at most link_stream_room */
void link_stream_took(struct link_stream *s, size_t n);
void link_stream_end(struct link_stream *s); /* no more data from here; what comes still comes */
void link_stream_size(struct link_stream *s, unsigned rows, unsigned columns);
void link_stream_close(struct link_stream *s); /* accepts NULL */
