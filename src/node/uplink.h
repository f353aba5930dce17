/* The connection to the server: a stream socket that never blocks us. What is to be said is appended to `out`; it leaves
 * as the server reads. Nobody is there, he is slow, he talks nonsense: all of that is normal, and a new try comes after
 * a pause with jitter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/wire.h"

enum uplink_state { UPLINK_DOWN, UPLINK_CONNECTING, UPLINK_UP };

struct uplink {
    char path[108];
    int fd; /* -1: none */
    enum uplink_state state;
    struct buf out;
    size_t sent;       /* of out */
    int64_t try_ns;    /* when to connect next */
    int64_t since_ns;  /* state is so since then */
    int64_t moved_ns;  /* when the server last took something, or had nothing to take */
    uint32_t failures; /* tries in a row */
    uint64_t jitter;   /* state of a small generator */
    bool is_quiet;     /* somebody else says when the server is gone */
    struct wire_stream in;
};

void uplink_init(struct uplink *u, const char *path);
void uplink_done(struct uplink *u);

/* Connects when that is due; true when the connection was made just now. */
bool uplink_tick(struct uplink *u, int64_t now_ns);

/* What poll should look for; 0 when there is no connection. */
short uplink_events(const struct uplink *u);

/* poll found something. True when the connection was made just now. */
bool uplink_ready(struct uplink *u, short events, int64_t now_ns);

/* A frame from the server, or 0: none. Garbage closes the connection. */
int uplink_next(struct uplink *u, struct wire_frame *ret, int64_t now_ns);

void uplink_flush(struct uplink *u, int64_t now_ns);
size_t uplink_queued(const struct uplink *u);

/* why: for the log, or NULL when that is not worth a line. */
void uplink_close(struct uplink *u, int64_t now_ns, const char *why);
