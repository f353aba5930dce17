/* What `gpumgr jobs JOB` prints: all that is known of one. */
#pragma once

#include "base/buf.h"
#include "base/json_tree.h"
#include "client/output.h"

void jobs_detail(const struct json_tree *root, const struct screen *screen, struct buf *out);
