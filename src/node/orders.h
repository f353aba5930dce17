/* What the server asks of the samplers, handed on: only root and the owner of an instance may talk to a sampler, and the
 * server is neither. Just the verbs of orders.c pass, and the sampler checks what they say. Nobody waits: an order is a
 * connection in our poll set, with a deadline. */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "base/instance.h"
#include "model/wire_server.h"
#include "node/uplink.h"

enum { ORDERS_MAX = 32 };

void orders_init(const struct instance *where);

/* Takes one up; the result goes to u, at once where it is refused. */
void orders_take(struct uplink *u, const struct wire_frame *f, int64_t now_ns);

/* Fills in what to poll for; orders_ready gets the same entries back. */
unsigned orders_poll(struct pollfd *fds);
void orders_ready(struct uplink *u, const struct pollfd *fds, unsigned n, int64_t now_ns);

/* Those that got no answer in time. */
void orders_tick(struct uplink *u, int64_t now_ns);

/* Whoever asked is gone. */
void orders_drop(void);
