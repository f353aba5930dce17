#include "model/zone_rule.h"

#include <string.h>

#include "model/calendar.h"

#define DAY_S 86400

/* ---- reading: what follows, or NULL, which stays NULL ---- */

static const char *number(const char *at, int least, int most, int *ret) {
    int v = 0, digits = 0;
    for (; at && *at >= '0' && *at <= '9' && digits < 4; at++, digits++) v = v * 10 + (*at - '0');
    *ret = v;
    return at && digits && v >= least && v <= most ? at : NULL;
}

static const char *sign(const char *at, char c) { return at && *at == c ? at + 1 : NULL; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* CET, or <+0330>: what it is called does not matter here. */
static const char *name(const char *at) {
    const char *from = at;
    if (!at) return NULL;
    if (*at == '<') {
        at = strchr(at, '>');
        return at ? at + 1 : NULL;
    }
    while (is_letter(*at)) at++;
    return at - from >= 3 ? at : NULL;
}

/* [+-]hh[:mm[:ss]] */
static const char *span(const char *at, int hours_most, int32_t *ret_s) {
    int hours = 0, minutes = 0, seconds = 0;
    bool is_minus = at && *at == '-';
    if (at && (*at == '-' || *at == '+')) at++;
    at = number(at, 0, hours_most, &hours);
    if (at && *at == ':') at = number(at + 1, 0, 59, &minutes);
    if (at && *at == ':') at = number(at + 1, 0, 59, &seconds);
    *ret_s = (hours * 3600 + minutes * 60 + seconds) * (is_minus ? -1 : 1);
    return at;
}

static const char *day(const char *at, struct zone_day *ret) {
    int v = 0, month = 0, week = 0;
    *ret = (struct zone_day){.at_s = 2 * 3600};
    if (at && *at == 'M') {
        at = sign(number(at + 1, 1, 12, &month), '.');
        at = sign(number(at, 1, 5, &week), '.');
        at = number(at, 0, 6, &v);
        ret->kind = 'M';
    } else if (at && *at == 'J') {
        at = number(at + 1, 1, 365, &v);
        ret->kind = 'J';
    } else {
        at = number(at, 0, 365, &v);
        ret->kind = 'n';
    }
    ret->month = (uint8_t)month;
    ret->week = (uint8_t)week;
    ret->day = (uint16_t)v;
    return at && *at == '/' ? span(at + 1, 167, &ret->at_s) : at;
}

bool zone_rule_parse(const void *footer, size_t len, struct zone *z) {
    char text[128];
    const char *s = footer, *end = len > 1 ? memchr(s + 1, '\n', len - 1) : NULL;
    if (len == 0 || s[0] != '\n' || !end) return false;
    size_t n = (size_t)(end - s) - 1;
    if (n == 0) return true;
    if (n >= sizeof text || memchr(s + 1, 0, n)) return false;
    memcpy(text, s + 1, n);
    text[n] = 0;
    const char *at = span(name(text), 24, &z->standard_s);
    z->standard_s = z->summer_s = -z->standard_s; /* POSIX counts westwards */
    if (at && *at) {
        at = name(at);
        z->summer_s += 3600;
        if (at && *at != ',') {
            at = span(at, 24, &z->summer_s);
            z->summer_s = -z->summer_s;
        }
        at = day(sign(at, ','), &z->begin);
        at = day(sign(at, ','), &z->end);
    }
    z->has_rule = at && !*at;
    return z->has_rule;
}

/* ---- years ---- */

static int64_t day_of(const struct zone_day *d, int64_t year) {
    int64_t first = calendar_days(year, 1, 1);
    if (d->kind == 'n') return first + d->day;
    if (d->kind == 'J') return first + d->day - 1 + (d->day > 59 && calendar_days_in(year, 2) == 29);
    first = calendar_days(year, d->month, 1);
    int64_t on = first + (d->day - calendar_weekday(first) + 7) % 7 + 7 * (d->week - 1);
    return on < first + calendar_days_in(year, d->month) ? on : on - 7;
}

static int64_t begin_of(const struct zone *z, int64_t year) {
    return day_of(&z->begin, year) * DAY_S + z->begin.at_s - z->standard_s;
}
static int64_t end_of(const struct zone *z, int64_t year) {
    return day_of(&z->end, year) * DAY_S + z->end.at_s - z->summer_s;
}

/* The change that came last says what holds. A summer that begins as the last one ends goes on. */
int32_t zone_rule_offset_s(const struct zone *z, int64_t unix_s) {
    if (z->standard_s == z->summer_s) return z->standard_s;
    int64_t year = calendar_date(calendar_div(unix_s, DAY_S)).year, begin = INT64_MIN, end = INT64_MIN;
    for (int64_t y = year - 2; y <= year + 1; y++) {
        if (begin_of(z, y) <= unix_s) begin = begin_of(z, y);
        if (end_of(z, y) <= unix_s) end = end_of(z, y);
    }
    return begin >= end ? z->summer_s : z->standard_s;
}

bool zone_rule_next(const struct zone *z, int64_t after_s, int64_t *ret) {
    if (z->standard_s == z->summer_s) return false;
    int64_t year = calendar_date(calendar_div(after_s, DAY_S)).year, least = INT64_MAX;
    for (int64_t y = year - 1; y <= year + 2; y++) {
        const int64_t changes[] = {begin_of(z, y), end_of(z, y)};
        for (int i = 0; i < 2; i++)
            if (changes[i] > after_s && changes[i] < least &&
                zone_rule_offset_s(z, changes[i]) != zone_rule_offset_s(z, changes[i] - 1))
                least = changes[i];
    }
    if (least != INT64_MAX) *ret = least;
    return least != INT64_MAX;
}
