/* Streams of bytes between the server and something here (model/wire_stream.h): the port of a run or a container, a terminal. A thread of
 * its own with a connection of its own; what may take long (finding whose port it is, connecting) is done in threads of their own, one
 * for each stream that is being opened. */
#pragma once

#include "base/instance.h"
#include "model/settings.h"
#include "model/wire_stream.h"

/* What a stream leads to: a descriptor that does not block; a socket can be closed in halves. */
struct stream_end {
    int fd;
    void *ctx;
    /* What was read, changed where it lies: how much is left of it. NULL: nothing is changed. */
    size_t (*take)(void *ctx, char *bytes, size_t n);
    /* A terminal's size changed; must not wait. NULL: it has none. */
    void (*size)(void *ctx, unsigned rows, unsigned columns);
    /* How it ended, once fd is at its end; may wait. NULL: there is nothing to say. */
    int (*code)(void *ctx);
    /* The stream is over, fd is closed already; must not wait. NULL: nothing is left. */
    void (*done)(void *ctx);
};

/* Makes one, or says why not. Called in a thread that may wait; settings are a copy. */
typedef int (*stream_open_fn)(const struct settings *s, const struct wire_stream_open *o, struct stream_end *ret,
                              struct error *e);

/* Before streams_start: who opens streams of a kind (RUN is known here). */
void streams_on(enum wire_stream_kind kind, stream_open_fn open);
int streams_start(const struct instance *where, const struct settings *s, const char *version, struct error *e)
    MUST_CHECK;
void streams_reload(const struct settings *s);
