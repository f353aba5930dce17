/* Times that come again: a cron expression or an ISO 8601 repeating interval (cron.h, interval.h say what each means where clocks
 * change). Pure: no clock, and the zone comes from outside. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/cron.h"
#include "model/interval.h"
#include "model/zone.h"

#define RECUR_NEVER INT64_MAX

struct recur {
    bool is_cron;
    struct cron cron;
    struct interval interval;
};

/* One of the two; the other is "" or NULL. The sentence begins with the key: "cron: ...", "interval: ...". */
int recur_parse(const char *cron, const char *interval, struct recur *ret, struct error *e) MUST_CHECK;

/* The first time after a moment (Unix seconds); RECUR_NEVER: there is none any more. z NULL: no zone was given, which is UTC
 * for a cron expression and for an interval that is written without an offset. */
int64_t recur_next(const struct recur *r, const struct zone *z, int64_t after_s);
