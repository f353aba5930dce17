/* What `gpumgr jobs JOB` prints: all that is known of one. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "client/output.h"

/* element: of an array, by its number; -1: all of the job. -ENOENT: that one never ran. */
int jobs_detail(const struct json_tree *root, int64_t element, const struct screen *screen, struct buf *out,
                struct error *e) MUST_CHECK;
