/* ISO 8601 repeating intervals: R5/2026-11-15T03:00:00+01:00/PT12H is five times, half a day apart; R/.../P1M goes on for ever.
 * R5/START/END has END - START between them; R5/PT12H/END is five intervals of which the last ends then, each counted by its
 * beginning. R5 is five times, not six.
 *
 * Years, months, weeks and days are those of the calendar in a zone: 03:00 stays 03:00 when clocks change, and a month after
 * 31 January is the last of February, but two months after it 31 March. Hours, minutes and seconds are time that passes. A
 * time without an offset is one of the zone; where there is a zone besides an offset, the calendar is the zone's. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/zone.h"

#define INTERVAL_TEXT_MAX 128 /* bytes, with its end */
#define INTERVAL_NEVER INT64_MAX

struct interval {
    int64_t count;    /* 0: without end */
    bool is_to_end;   /* counted back from anchor, which is its end */
    bool is_local;    /* the anchor is local time of the zone */
    int64_t anchor_s; /* a moment, or a local time */
    int32_t offset_s; /* that the anchor was written with */
    int64_t months, days, seconds;
};

/* Two times must be a minute apart or more. The sentence begins with the text in quotes. */
int interval_parse(const char *text, struct interval *ret, struct error *e) MUST_CHECK;

/* The first time after a moment; INTERVAL_NEVER: they are over, or come after 2200. z NULL: none was given. */
int64_t interval_next(const struct interval *v, const struct zone *z, int64_t after_s);
