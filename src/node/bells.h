/* Waits on the samplers' bells for everybody else: a bell is a word to sleep on, which poll cannot do, and it tolls for every
 * reading. One small thread a ring; only when a process list was written anew does it say so. */
#pragma once

#include "base/instance.h"

/* fd: an eventfd that becomes readable. The threads run until the process ends. */
void bells_start(const struct instance *where, unsigned workers, int fd);
