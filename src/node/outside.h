/* Processes that use a GPU outside the queue, where the operator wants something done about them (queue.outside): model/outside
 * decides, this warns on terminals and ends. A thread of its own does it; the tracker shows it once a second who is there. A node
 * that is started anew has warned nobody yet: then they have their full time again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/outside.h"
#include "model/wire.h"

int outside_start(struct error *e) MUST_CHECK;

/* For the tracker's thread, under its lock, once a second: who is there. */
void outside_look(void);

/* For the main thread: which GPUs somebody waits for, as the server says; false: the frame says something else. And: the server
 * is gone. */
bool outside_take(const struct wire_frame *f);
void outside_link_down(void);

/* Where a process stands; ends_ns: wall clock, 0: it will not be ended. From any thread. */
enum outside_step outside_of(int32_t pid, uint64_t ticks, int64_t *ends_ns);
