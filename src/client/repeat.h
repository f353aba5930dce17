/* Times of repeating jobs, as `gpumgr repeat` and `gpumgr submit` print them. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json_tree.h"

enum { REPEAT_WHEN = 40 };
/* "2026-11-16 03:00 +01:00" of the API's "local". */
void repeat_when(const struct json_tree *slot, char ret[REPEAT_WHEN]);

/* The next times of an expression, a line each, behind a line that names it; asks the server. NULL: not given. json: the
 * answer as it came. */
struct repeat_times {
    const char *cron, *interval, *zone;
};
int repeat_times_put(const char *dir, const struct repeat_times *t, bool json, struct buf *out, struct error *e)
    MUST_CHECK;

/* "repeat 3 comes next 2026-11-16 03:00 +01:00 (Europe/Berlin)"; false: nobody knows. */
bool repeat_first_line(const char *dir, int64_t id, struct buf *out);
