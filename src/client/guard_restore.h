/* What a client may know of the setters of a driver: guard_restore.c alone calls them. */
#pragma once

#include "gpu/device.h"

/* What a guard would move on this card, or "none", and why; by reading only. */
void guard_restore_lever(struct gpu *g, char *name, size_t name_room, char *why, size_t why_room);
