/* The keys of a job's terminal: ours is raw, what is typed goes to the job, and it knows the window's size. Ctrl-] leaves it
 * running. What the job shows comes by its log, which has all of it, also what it wrote before we sat down. */
#pragma once

#include <stdbool.h>
#include <termios.h>

#include "base/error.h"
#include "model/jobs_socket.h"
#include "model/wire_run.h"

struct job_pty {
    int fd;                             /* -1: not open */
    bool is_raw, has_left, has_no_keys; /* left: by Ctrl-]; no keys: standard input is over */
    struct termios before;
};
#define JOB_PTY_CLOSED                                                                                                 \
    { .fd = -1 }

/* dir: of the instance. -ENOENT, -ECONNREFUSED: it is not there yet, or no more. Again after the connection was lost. */
int job_pty_open(struct job_pty *p, const char *dir, const struct wire_run_key *run, struct error *e) MUST_CHECK;
void job_pty_close(struct job_pty *p); /* our terminal is as it was; accepts what is not open */

/* Standard input has something: to the job. */
int job_pty_keys(struct job_pty *p, struct error *e) MUST_CHECK;
/* The job wrote something: thrown away here. False: the connection is gone; the terminal stays raw until job_pty_close. */
bool job_pty_drain(struct job_pty *p);
/* The window's size, at first and when it changed. */
int job_pty_size(struct job_pty *p, struct error *e) MUST_CHECK;
