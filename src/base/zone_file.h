/* The time zones that this machine has, as bytes (model/zone reads them): $TZDIR, else /usr/share/zoneinfo. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* name: Europe/Berlin; whoever asks has seen to it that it leads nowhere else. -ENOENT: there is no such zone, or there are none
 * at all (Debian's package is tzdata). */
int zone_file_read(const char *name, size_t max_bytes, struct buf *ret, struct error *e) MUST_CHECK;

/* The name of the zone that this machine's own clocks show; UTC where that cannot be told. */
void zone_file_local(char *ret, size_t room);
