/* Who a pid on a GPU is: user, name, command line, start time. Looked up by a thread of its own, because a command line
 * cannot be read while its process holds its memory map (as one stuck in the driver may do for ever) and a user's name
 * may have to come over the network. Nobody waits: what is not known yet comes with a later list. A process is kept
 * by a pidfd, so that another one of the same number is never taken for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/wire_device.h"

/* Starts nothing yet; the thread comes with the first question. proc: "/proc", or a test's. */
void names_init(const char *proc);

/* Fills in what is known of p->of.pid; asks for it when nothing is. */
void names_look(struct wire_process *p, int64_t now_ns);

/* What a user is called. False: not known yet; it is asked for. "": he has no name. */
bool names_user(uint32_t uid, char *ret, size_t room);

/* Grows whenever something new is known: lists with those pids are worth sending again. */
uint32_t names_version(void);

/* Once a second: forgets who is gone and who was not asked for in a while. */
void names_tidy(int64_t now_ns);
