#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/decimal.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53: whole numbers up to here are doubles */

static int decimals_of(double value, double scale) {
    if (scale <= 0) return fabs(value) >= 1e6 ? 0 : 6;
    int decimals = 0;
    while (scale < 0.9999999 && decimals < 9) {
        scale *= 10;
        decimals++;
    }
    return decimals;
}

void number_text(double value, double scale, char *ret, size_t room) {
    static const double tens[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    char text[DECIMAL_MAX];
    if (!isfinite(value)) {
        snprintf(ret, room, "null");
        return;
    }
    double unit = tens[decimals_of(value, scale)], steps = nearbyint(value * unit);
    if (steps == 0) steps = 0; /* not -0 */
    decimal_put(text, fabs(steps) < EXACT_MAX ? steps / unit : value);
    snprintf(ret, room, "%s", text);
}

void number_bytes(double bytes, char *ret, size_t room) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t u = 0;
    while (u + 1 < ARRAY_LEN(units) && bytes >= 1024) {
        bytes /= 1024;
        u++;
    }
    snprintf(ret, room, "%.*f %s", u < 3 ? 0 : 1, bytes, units[u]);
}

void number_age(int64_t ns, char *ret, size_t room) {
    static const struct {
        int64_t below, per;
        const char *unit;
    } rows[] = {
        {NS_PER_S,             NS_PER_MS,            "ms"  },
        {120 * NS_PER_S,       NS_PER_S,             "s"   },
        {120 * 60 * NS_PER_S,  60 * NS_PER_S,        "min" },
        {48 * 3600 * NS_PER_S, 3600 * NS_PER_S,      "h"   },
        {INT64_MAX,            24 * 3600 * NS_PER_S, "days"},
    };
    if (ns < 0) ns = 0;
    size_t i = 0;
    while (ns >= rows[i].below && i + 1 < ARRAY_LEN(rows)) i++;
    snprintf(ret, room, "%lld %s", (long long)(ns / rows[i].per), rows[i].unit);
}

void number_time_utc(int64_t real_ns, char *ret, size_t room) {
    time_t s = (time_t)(real_ns / NS_PER_S);
    struct tm tm;
    if (!gmtime_r(&s, &tm)) memset(&tm, 0, sizeof tm);
    snprintf(ret, room, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (int)(real_ns / NS_PER_MS % 1000));
}

void number_time_here(int64_t real_ns, int64_t now_real_ns, char *ret, size_t room) {
    time_t s = (time_t)(real_ns / NS_PER_S), now = (time_t)(now_real_ns / NS_PER_S);
    struct tm tm, today;
    if (!localtime_r(&s, &tm) || !localtime_r(&now, &today)) {
        snprintf(ret, room, "?");
        return;
    }
    bool same_day = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
    strftime(ret, room, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &tm);
}
