/* Whose processes are on a GPU, from /proc; only for showing: a pid may be gone or new by then. */
#pragma once

#include <stddef.h>

#include "model/ring.h"

/* " alice,bob": each name once, in the order of the list; empty when none is known. */
void users_of(const struct ring_processes *p, char *ret, size_t room);
