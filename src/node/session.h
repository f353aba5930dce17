/* What the node says to the server, and when: HELLO and inventories, then from the rings all that the server has not taken
 * yet (its WELCOME says so), then a round a second and events as they come. The rings are the spool: nothing is kept here
 * but cursors, and what the server is too slow for stays in the ring. Host readings, which are in no ring, are kept for
 * about a minute. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/host_metrics.h"
#include "node/rings.h"
#include "node/uplink.h"

void session_init(const struct instance *where, unsigned workers, const char *version);

/* The connection was made: says HELLO. */
void session_hello(struct uplink *u, int64_t now_ns);
void session_welcome(struct uplink *u, const struct wire_frame *f, int64_t now_ns);
void session_over(void);

/* Ten times a second: what must not wait for the next round. */
void session_prompt(struct uplink *u, int64_t now_ns);

/* Once a second. host: a new reading. */
void session_round(struct uplink *u, const struct host_sample *host, int64_t now_ns);

/* The server took something: more of what is behind. */
void session_more(struct uplink *u, int64_t now_ns);

/* Looks for replaced rings; what is left in the old ones goes out first. */
void session_look(struct uplink *u, int64_t now_ns);

/* Where a GPU is: its worker, and its index there. False: no such GPU. */
bool session_find(const char *uuid, unsigned *worker, int32_t *index);
unsigned session_workers(void);
bool session_is_live(void);
