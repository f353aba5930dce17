/* Containers from the browser and the command line: which there are, adding, starting, stopping, removing, changing, their logs.
 * The node decides who may and acts; the server only passes on what an account asks (model/wire_container_call.h). An engine
 * makes one wait, so each call has a thread for itself, a few at a time; nobody else ever waits here.
 *
 * These functions are for the main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/instance.h"
#include "model/settings.h"
#include "node/uplink.h"

/* Listens on DIR/run/containers.sock, and mends what a killed predecessor left half changed. */
int control_start(const struct instance *where, const struct settings *s, struct error *e) MUST_CHECK;
/* The node ends. */
void control_close(void);
void control_reload(const struct settings *s);

/* A frame of the server that is about containers; false: it is not. */
bool control_take(const struct wire_frame *f);
void control_link_down(void);

/* Readable when there is something for control_put. */
int control_fd(void);
void control_put(struct uplink *u, size_t most_bytes);
