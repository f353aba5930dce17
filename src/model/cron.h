/* Cron expressions: minute, hour, day of the month, month, day of the week, with names, ranges, steps and lists, or @hourly,
 * @daily, @weekly, @monthly, @yearly. As in Vixie's cron, a day must fit both day fields where one of them begins with *, else
 * either of them.
 *
 * Where clocks change: an expression whose minute or hour begins with * means "every so often" and follows the time that
 * passes: it comes in both hours of an autumn night, and not at all in the hour that spring leaves out. Any other means times
 * of the day: one that the clocks leave out comes once, at the moment at which they are set forward; one that they show
 * twice comes once, the first time. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/zone.h"

#define CRON_TEXT_MAX 256 /* bytes, with its end */
#define CRON_NEVER INT64_MAX

struct cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* bits; days and months from 1, weekdays from 0, a Sunday */
    bool has_both;                          /* a day must fit both day fields */
    bool is_elapsed;                        /* follows the time that passes */
};

/* One that never comes is refused. The sentence begins with the text in quotes. */
int cron_parse(const char *text, struct cron *ret, struct error *e) MUST_CHECK;

/* The first time after a moment; CRON_NEVER: none until the year 2200. */
int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after_s);
