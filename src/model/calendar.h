/* Days of the Gregorian calendar, counted from 1970-01-01, also before it. Pure. */
#pragma once

#include <stdint.h>

struct calendar_date {
    int64_t year;
    int month, day; /* from 1 */
};

int calendar_days_in(int64_t year, int month);
int64_t calendar_days(int64_t year, int month, int day);
struct calendar_date calendar_date(int64_t days);
int calendar_weekday(int64_t days); /* 0: Sunday */

/* Division that rounds down, so that what lies before 1970 is counted like the rest. */
int64_t calendar_div(int64_t a, int64_t b);
