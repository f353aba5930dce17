/* The other end of gpusim's socket, for the NVML library, gpusim-task and `gpumgr sim`.
 *
 * Plain libc, no allocation, no logging, no global state; safe from any thread as long as one connection is used by one
 * thread at a time. Failures are negative errno values; what the simulator itself refuses is wire_reply.code.
 */
#pragma once

#include "sim/wire.h"

/* Connects to $dir/sock. Returns a close-on-exec descriptor, or -ENOENT / -ECONNREFUSED when nobody is there. */
int client_open(const char *dir);
void client_close(int fd);

/* Sends `q` and waits at most timeout_ms (-1: for ever) for the next packet. 0, or -ETIMEDOUT, -EPIPE... */
int client_ask(int fd, const struct wire_request *q, struct wire_reply *ret, int timeout_ms);

/* Waits for the next packet without asking (events, the end of a task). */
int client_receive(int fd, struct wire_reply *ret, int timeout_ms);

/* Opens, asks one thing, closes. */
int client_once(const char *dir, const struct wire_request *q, struct wire_reply *ret);
