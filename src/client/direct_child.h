/* The side of direct.c that runs in the child: the only place of the client that calls into a driver. */
#pragma once

#include <stdnoreturn.h>
#include <sys/types.h>

#include "client/direct.h"

/* What it says to its parent, a byte each. */
enum { DIRECT_STEP = 's', DIRECT_DONE = 'd', DIRECT_FAILED = 'f' };

/* Answers until its parent is gone. */
noreturn void direct_child(struct direct_shared *s, const char *library, int ask_fd, int answer_fd, pid_t parent);
