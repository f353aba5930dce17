/* Which GPUs have a fault (model/fault.h), and what is known to have cured one: a driver that went and came back, a recovery action
 * that is no longer asked for, an operator's word. A node that was started anew knows only the last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/rings.h"

/* For the tracker's thread, under its lock. card: of which an instance is a part, else the device itself, which has the fault. bit:
 * of the device in the task table. False: it is sound. */
bool faults_look(const struct rings_one *one, uint32_t device, uint32_t card, int bit, int64_t now_ns, char *ret,
                 size_t room);

/* An operator said at that time that this GPU is sound. From any thread. */
void faults_sound(const char *uuid, int64_t since_ns);
