/* A body made smaller for the way, as gzip: quickly rather than as small as can be. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define GZIP_LEAST 1400 /* what fits into one packet is not worth it */

/* Into ret, which must be empty. False: it would not be smaller, and ret is empty. */
bool gzip_pack(const void *bytes, size_t len, struct buf *ret);
