/* A log that a browser follows: a call becomes a stream of events, and its source is asked again and again until it is over or the
 * reader is gone. Belongs to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "server/call.h"

/* The first member of whoever is followed. */
struct follower {
    struct follower *next;
    struct http_request *request; /* NULL: its reader is gone */
    bool is_asking;               /* an answer is on its way, and will come */
    bool is_over;                 /* no more will be said */
    const struct auth *auth;      /* by follow_begin: who reads must still be signed in */
    struct caller who;
    /* Asks for what is new: sets is_asking, unless it cannot be asked now. */
    void (*ask)(struct follower *f);
    void (*drop)(struct follower *f); /* frees it, and all around it */
};

/* -EAGAIN: too many are followed. */
int follow_check(struct error *e) MUST_CHECK;

/* The call is answered by a stream from now on, and freed. The follower is dropped when it is over. */
void follow_begin(struct loop *l, struct follower *f, struct call *c);

/* How many of these are whole characters: the rest comes with what comes next. */
size_t follow_whole_characters(const uint8_t *s, size_t n);

/* Bytes to the reader, who must be there. He may be gone after that. */
void follow_say(struct follower *f, const struct buf *b);
