/* A tar archive in memory, in the POSIX ustar format: plain files, no owners. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

int ustar_add(struct buf *archive, const char *name, const void *bytes, size_t n, int64_t mtime_s, struct error *e)
    MUST_CHECK;
void ustar_end(struct buf *archive);
