/* A connection to a port that a run or a container of this machine listens at, and to no other's: nothing is published for it.
 *
 * A process's port is one of this machine; it counts only if the socket that listens there is open in a process of that very run. A
 * container's is in its own network: the socket is made by a child that enters it, and connects to where something listens. One that
 * shares the machine's network is held to the same rule as a process.
 *
 * These wait (for /proc, for an engine, for the connection): for threads that may. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/settings.h"

/* run: its name, "17.0.1". Returns a connected socket that does not block. -ECONNREFUSED: nothing listens there yet; -EPERM: what
 * listens there is not the run's; -ENOENT: there is no such run. */
int reach_run(const struct settings *s, const char *run, uint16_t port, int timeout_ms, struct error *e) MUST_CHECK;
/* container: its id or its name. */
int reach_container(const struct settings *s, const char *container, uint16_t port, int timeout_ms, struct error *e)
    MUST_CHECK;

/* ---- the parts, for tests ---- */

struct reach_listener {
    uint64_t inode;
    struct sockaddr_storage to; /* where to connect: "any address" is loopback */
};
/* Who listens at a port, from the text of /proc/net/tcp or tcp6. */
unsigned reach_listeners(const char *text, bool is_v6, uint16_t port, struct reach_listener *ret, unsigned room);
