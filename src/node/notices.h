/* Words to the owner of a job on this machine: on his terminals, or by a command of his own, as himself. The server only says that
 * something happened; whom that concerns, and what is run, is in the job's sealed record. */
#pragma once

#include <stdint.h>

#include "model/job.h"
#include "model/wire.h"

/* For the jobs' thread: does what the frame asks for, on a thread of its own, and answers. */
void notices_take(const struct wire_frame *f);

/* A line on somebody's terminals, when it can be; nobody waits for it. */
void notices_word(uint32_t uid, const char *text);

/* Whether this job's words may be said here. */
int notices_admit(const struct job_spec *s, bool may_command, struct error *e) MUST_CHECK;

/* The other end of a command: `gpumgr-node say FD` reads an order, becomes its user and runs it. */
int notices_say(const char *fd);
