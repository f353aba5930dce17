/* A job's terminal that people may sit down at: a pseudo terminal, and a socket on which its user comes and goes. What
 * somebody is too slow to read is not kept for him: it is in the log. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/jobs_socket.h"

enum { TERMINAL_SEATS = 4, TERMINAL_FDS = TERMINAL_SEATS + 1 };

struct terminal_seat {
    int fd; /* -1: free */
    unsigned got;
    uint8_t piece[JOBS_PTY_HEAD + JOBS_PTY_MOST];
};

struct terminal {
    int master, slave, listener; /* -1: none */
    uid_t uid;
    struct terminal_seat seat[TERMINAL_SEATS];
};

/* The socket is made in the working directory, under the name `pty`. */
int terminal_open(struct terminal *t, uid_t uid, gid_t gid, struct error *e) MUST_CHECK;

/* What to poll for: always TERMINAL_FDS entries. */
void terminal_poll(const struct terminal *t, struct pollfd *fds);
void terminal_ready(struct terminal *t, const struct pollfd *fds);

/* What the job said, for all who sit there. */
void terminal_show(struct terminal *t, const char *bytes, size_t n);
void terminal_close(struct terminal *t);
