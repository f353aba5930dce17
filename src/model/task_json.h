/* GPU tasks and containers as JSON, the same from `gpumgr ps`, the API and the stream. Every key is always there; what is
 * not known is null. Times are Unix seconds with their fractions. Pure: the caller says what time it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/wire_task.h"

#define TASK_ID_TEXT 48

/* A task's name for good: the beginning of its machine's boot id, pid and start time, and how often it came back. */
void task_json_id(const char *boot_id, const struct wire_task *t, char ret[TASK_ID_TEXT]);

/* Whether a task belongs to a container, and what to call that: its name, else the beginning of its id, else "". */
bool task_has_container(const struct wire_task *t);
void task_container_word(const struct wire_task *t, char *ret, size_t room);

/* now_boot_ns: by the clock of its times, for the time that is left to a running one; 0: as it was told. */
void task_json(struct buf *b, const struct wire_task *t, const char *node, const char *boot_id, int64_t now_boot_ns);

/* ahead_ns: wall clock less the boot clock of its times. The pairs go into an object that is open. */
void container_json_pairs(struct buf *b, const struct wire_container *c, const char *node, int64_t ahead_ns);
