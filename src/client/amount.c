#include "client/amount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits and at most one point: no sign, no exponent, no "inf". Returns what follows them, or NULL. */
static const char *number(const char *text, double *ret) {
    size_t n = strspn(text, "0123456789.");
    char digits[16], *end;
    if (n == 0 || n >= sizeof digits) return NULL;
    memcpy(digits, text, n);
    digits[n] = 0;
    *ret = strtod(digits, &end);
    if (*end || end == digits) return NULL;
    return text + n + strspn(text + n, " ");
}

int amount_parse(const char *flag, const char *text, const char *unit, double *ret, struct error *e) {
    static const char degree[] = "°";
    double v;
    const char *rest = number(text, &v);
    if (rest && strncmp(rest, degree, strlen(degree)) == 0 && strcmp(unit, "C") == 0) rest += strlen(degree);
    if (!rest || (*rest && strcasecmp(rest, unit) != 0))
        return fail(e, -EINVAL, "--%s: \"%.40s\" is not a number of %s, as in %s%s", flag, text, unit,
                    strcmp(unit, "MHz") == 0 ? "1400"
                    : *unit == 'C'           ? "80"
                                             : "500",
                    unit);
    *ret = v;
    return 0;
}

static const struct {
    const char *unit;
    double ms;
} times[] = {
    {"ms", 1       },
    {"s",  1000    },
    {"m",  60000   },
    {"h",  3600000 },
    {"d",  86400000},
    {"",   1000    },
};

static void time_text(int64_t ms, char *ret, size_t room) {
    size_t i = ms >= 30 * (int64_t)times[4].ms ? 4 : 3; /* a week is 168h to those who hold a limit for hours */
    while (i > 0 && ms % (int64_t)times[i].ms) i--;
    snprintf(ret, room, "%lld%s", (long long)(ms / (int64_t)times[i].ms), times[i].unit);
}

int amount_time(const char *flag, const char *text, int64_t min_ms, int64_t max_ms, int64_t *ret_ms, struct error *e) {
    double v, ms = -1;
    char least[24], most[24];
    const char *rest = number(text, &v);
    for (size_t i = 0; rest && i < ARRAY_LEN(times); i++)
        if (strcmp(rest, times[i].unit) == 0) ms = v * times[i].ms;
    if (ms >= (double)min_ms && ms <= (double)max_ms) {
        *ret_ms = (int64_t)ms;
        return 0;
    }
    time_text(min_ms, least, sizeof least);
    time_text(max_ms, most, sizeof most);
    return fail(e, -EINVAL, "--%s: \"%.40s\" is not a time from %s to %s, as in 90s, 30m or 2h", flag, text, least,
                most);
}
