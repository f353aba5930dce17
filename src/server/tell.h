/* Telling someone: events become notices (model/notice), notices become messages (model/message), messages go out by each
 * way that is configured. A message is in the state file before anybody tries to send it, and leaves it when its
 * receiver took it: a restart loses none, and the one under way at a crash may come twice, with the same id.
 *
 * Everything here belongs to the loop's thread; each way has a thread of its own for the sending, so that a receiver
 * that hangs delays nobody else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/event.h"
#include "model/inventory.h"
#include "model/settings.h"
#include "net/loop.h"
#include "server/state.h"

struct tell;

struct tell_about {
    const char *stream; /* "node/boot id/source": where marks grow */
    uint64_t mark;      /* of this event in its stream */
    const char *node;
    const struct inventory *gpu; /* NULL: the machine */
    const struct event *event;
};

/* While state_run is still allowed: reads what an earlier server left. link: the server's URL for people, "" none. */
int tell_new(struct loop *l, struct state *s, const struct settings *settings, const char *link, struct tell **ret,
             struct error *e) MUST_CHECK;
/* The end in two steps, around state_close and the last calls on the loop: nothing is sent or stored any more; memory. */
void tell_stop(struct tell *t); /* accept NULL */
void tell_free(struct tell *t);

/* Other settings from now on; what waits for a way that is gone is dropped. */
void tell_reload(struct tell *t, const struct settings *settings);

/* Takes an event; one whose mark is known is not taken twice. */
void tell_event(struct tell *t, const struct tell_about *about);

/* Up to which mark a stream's events are in the state file: what is later must come again after a restart. 0: none. */
uint64_t tell_mark(const struct tell *t, const char *stream);

/* Whether a condition is open: "node:NAME", "node". */
bool tell_has_open(const struct tell *t, const char *subject, const char *topic);

/* Nobody waits any longer for the end of what is open about a subject. */
void tell_forget(struct tell *t, const char *subject);

/* A message by every way, to see whether it arrives. -ENOENT: no way is configured. */
int tell_test(struct tell *t, const char *node, struct error *e) MUST_CHECK;

/* {"channels":[...],"open":[...]}, without outer braces: keys for an open object. */
void tell_json(const struct tell *t, struct buf *out);
