#include "model/calendar.h"

#include <stdbool.h>

#define DAYS_400_YEARS 146097
#define DAYS_0000_TO_1970 719468 /* from 0000-03-01: a year that begins in March has its leap day at its end */

static bool is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int calendar_days_in(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

int64_t calendar_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

int64_t calendar_days(int64_t year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = calendar_div(y, 400), of_era = y - era * 400;
    int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    return era * DAYS_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_0000_TO_1970;
}

struct calendar_date calendar_date(int64_t days) {
    int64_t z = days + DAYS_0000_TO_1970, era = calendar_div(z, DAYS_400_YEARS), of_era = z - era * DAYS_400_YEARS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int from_march = (int)((5 * of_year + 2) / 153);
    struct calendar_date d = {.year = era * 400 + year, .month = from_march < 10 ? from_march + 3 : from_march - 9};
    d.day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
    d.year += d.month <= 2;
    return d;
}

int calendar_weekday(int64_t days) {
    int64_t w = (days + 4) % 7; /* 1970-01-01 was a Thursday */
    return (int)(w < 0 ? w + 7 : w);
}
