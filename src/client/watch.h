/* --watch: the same view again and again, in place on a terminal, until a signal ends it. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* every_s: 0 means every second. A view that fails is shown as its sentence: whoever watches waits for it to come back. An
 * exit code. */
int watch_show(double every_s, bool is_json, int (*show)(void *ctx, struct buf *out, struct error *e), void *ctx);
