#include "model/moment.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/calendar.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Just n digits. What follows them, or NULL; NULL stays NULL, so that parts can be read one after the other. */
static const char *digits(const char *at, int n, int *ret) {
    int v = 0;
    for (; at && n > 0; n--, at++) {
        if (!is_digit(*at)) return NULL;
        v = v * 10 + (*at - '0');
    }
    *ret = v;
    return at;
}

static const char *sign(const char *at, char c) { return at && *at == c ? at + 1 : NULL; }

/* "Z", "+01:00" or "+0100": seconds ahead of UTC. What follows it, or NULL. */
static const char *zone(const char *at, int64_t *ret_s) {
    int hour = 0, minute = 0;
    *ret_s = 0;
    if (*at == 'Z' || *at == 'z') return at + 1;
    if (*at != '+' && *at != '-') return NULL;
    bool is_behind = *at == '-';
    at = digits(at + 1, 2, &hour);
    if (at && *at == ':') at++;
    at = digits(at, 2, &minute);
    *ret_s = (hour * 3600LL + minute * 60LL) * (is_behind ? -1 : 1);
    return at && hour <= 14 && minute <= 59 ? at : NULL;
}

static const char *fraction(const char *at, int64_t *ret_ns) {
    int64_t step = 100000000;
    *ret_ns = 0;
    if (!is_digit(*at)) return NULL;
    for (; is_digit(*at); at++, step /= 10) *ret_ns += (*at - '0') * step;
    return at;
}

int moment_parse(const char *text, int64_t *ret_ns, struct error *e) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    int64_t ahead_s = 0, part_ns = 0;
    const char *at = sign(digits(text, 4, &year), '-');
    at = digits(sign(digits(at, 2, &month), '-'), 2, &day);
    if (at) at = *at == 'T' || *at == 't' || *at == ' ' ? at + 1 : NULL;
    at = digits(sign(digits(at, 2, &hour), ':'), 2, &minute);
    if (at && *at == ':') {
        at = digits(at + 1, 2, &second);
        if (at && *at == '.') at = fraction(at + 1, &part_ns);
    }
    bool is_date = at && year >= 1970 && year < 2200 && month >= 1 && month <= 12 && day >= 1 &&
                   day <= calendar_days_in(year, month) && hour <= 23 && minute <= 59 && second <= 59;
    if (!is_date) return fail(e, -EINVAL, "\"%.40s\" is no point in time, as in 2026-11-15T18:30:00Z", text);
    at = zone(at, &ahead_s);
    if (!at || *at)
        return fail(e, -EINVAL, "\"%.40s\" does not end with its zone, as in 2026-11-15T18:30:00Z or 18:30:00+01:00",
                    text);
    int64_t s = calendar_days(year, month, day) * 86400 + hour * 3600LL + minute * 60LL + second - ahead_s;
    if (s < 0) return fail(e, -ERANGE, "\"%.40s\" is before 1970", text);
    *ret_ns = s * 1000000000LL + part_ns;
    return 0;
}
