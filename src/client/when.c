#include "client/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { DAY_S = 86400 };

/* "18:30" or "18:30:05": what follows it, or NULL. */
static const char *clock_part(const char *text, struct tm *tm) {
    int hour, minute, second = 0, n = 0, more = 0;
    if (strspn(text, "0123456789") > 2 || sscanf(text, "%2d:%2d%n", &hour, &minute, &n) != 2 || !n) return NULL;
    if (text[n] == ':' && sscanf(text + n, ":%2d%n", &second, &more) == 1) n += more;
    if (hour > 23 || minute > 59 || second > 59 || hour < 0 || minute < 0 || second < 0) return NULL;
    tm->tm_hour = hour;
    tm->tm_min = minute;
    tm->tm_sec = second;
    return text + n;
}

/* "2026-11-16 " or "2026-11-16T". */
static const char *date_part(const char *text, struct tm *tm) {
    int year, month, day, n = 0;
    if (strspn(text, "0123456789") != 4 || sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &n) != 3) return NULL;
    if (month < 1 || month > 12 || day < 1 || day > 31 || (text[n] != ' ' && text[n] != 'T')) return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return text + n + 1;
}

/* "Z" or "+01:00" at the end. False: something else. */
static bool zone_part(const char *text, long *ret_s) {
    int hour, minute, n = 0;
    *ret_s = 0;
    if (strcmp(text, "Z") == 0) return true;
    if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2d:%2d%n", &hour, &minute, &n) != 2 || text[1 + n])
        return false;
    *ret_s = (hour * 3600L + minute * 60L) * (*text == '-' ? -1 : 1);
    return hour <= 14 && minute <= 59;
}

/* mktime mends 31 November to 1 December; a person who typed that meant something else. */
static bool seconds_of(struct tm tm, const char *zone, int64_t *ret_s) {
    struct tm asked = tm;
    long ahead = 0;
    if (*zone && !zone_part(zone, &ahead)) return false;
    tm.tm_isdst = -1;
    time_t t = *zone ? timegm(&tm) - ahead : mktime(&tm);
    *ret_s = t;
    return tm.tm_mday == asked.tm_mday && tm.tm_mon == asked.tm_mon;
}

static bool on_the_clock(const char *text, int64_t now_s, int64_t *ret_s) {
    static const char tomorrow[] = "tomorrow ";
    bool is_tomorrow = strncmp(text, tomorrow, strlen(tomorrow)) == 0;
    time_t now = (time_t)now_s;
    struct tm tm;
    if (!localtime_r(&now, &tm)) return false;
    const char *rest = clock_part(is_tomorrow ? text + strlen(tomorrow) : text, &tm);
    if (!rest || *rest) return false;
    tm.tm_isdst = -1;
    tm.tm_mday += is_tomorrow;
    time_t t = mktime(&tm);
    if (!is_tomorrow && t <= now) {
        tm.tm_mday++;
        tm.tm_isdst = -1;
        t = mktime(&tm);
    }
    *ret_s = t;
    return true;
}

static bool on_a_date(const char *text, int64_t *ret_s) {
    struct tm tm = {0};
    const char *rest = date_part(text, &tm);
    rest = rest ? clock_part(rest, &tm) : NULL;
    return rest && seconds_of(tm, rest, ret_s);
}

static bool is_unix(const char *text, int64_t *ret_s) {
    size_t n = strspn(text, "0123456789");
    if (n < 9 || n > 11 || text[n]) return false;
    *ret_s = atoll(text);
    return true;
}

int when_parse(const char *flag, const char *text, int64_t now_ns, int64_t *ret_ns, struct error *e) {
    int64_t s = 0;
    if (!on_the_clock(text, now_ns / NS_PER_S, &s) && !on_a_date(text, &s) && !is_unix(text, &s))
        return fail(e, -EINVAL, "--%s: \"%.40s\" is no moment, as in 18:30, \"tomorrow 08:00\" or \"2026-11-16 08:00\"",
                    flag, text);
    *ret_ns = s * NS_PER_S;
    return 0;
}

void when_text(int64_t at_ns, int64_t now_ns, char ret[WHEN_TEXT]) {
    time_t at = (time_t)(at_ns / NS_PER_S), now = (time_t)(now_ns / NS_PER_S), next = now + DAY_S;
    struct tm t, today, tomorrow;
    snprintf(ret, WHEN_TEXT, "?");
    if (!localtime_r(&at, &t) || !localtime_r(&now, &today) || !localtime_r(&next, &tomorrow)) return;
    bool is_today = t.tm_year == today.tm_year && t.tm_yday == today.tm_yday;
    bool is_tomorrow = t.tm_year == tomorrow.tm_year && t.tm_yday == tomorrow.tm_yday;
    size_t n = is_today                     ? strftime(ret, WHEN_TEXT, "%H:%M", &t)
               : is_tomorrow                ? strftime(ret, WHEN_TEXT, "tomorrow %H:%M", &t)
               : t.tm_year == today.tm_year ? strftime(ret, WHEN_TEXT, "%a %d %b %H:%M", &t)
                                            : strftime(ret, WHEN_TEXT, "%Y-%m-%d %H:%M", &t);
    if (!n) snprintf(ret, WHEN_TEXT, "?");
}
