#include "model/duration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t ns;
} units[] = {
    {"d",  86400000000000LL},
    {"h",  3600000000000LL },
    {"m",  60000000000LL   },
    {"s",  1000000000LL    },
    {"ms", 1000000LL       },
};

static const char form[] = "as in 500ms, 30s, 2m, 1h, 7d or 1m30s";

/* The longest unit that text begins with and that letters do not go on after: "ms" is not m and s. */
static int unit_of(const char *text, size_t *ret_len) {
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z')) n++;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strlen(units[i].name) == n && strncmp(text, units[i].name, n) == 0) {
            *ret_len = n;
            return (int)i;
        }
    return -1;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "12" or "1.5", as a whole and billionths. Returns its length; 0: no number; -1: too long to be meant. */
static int number_of(const char *text, int64_t *ret_whole, int64_t *ret_billionths) {
    int64_t whole = 0, part = 0, step = 100000000;
    int n = 0;
    while (is_digit(text[n])) {
        if (n >= 12) return -1;
        whole = whole * 10 + (text[n++] - '0');
    }
    if (n == 0) return 0;
    if (text[n] == '.') {
        if (!is_digit(text[n + 1])) return 0;
        for (n++; is_digit(text[n]); n++) {
            if (step == 0) return -1;
            part += (text[n] - '0') * step;
            step /= 10;
        }
    }
    *ret_whole = whole;
    *ret_billionths = part;
    return n;
}

/* Billionths of a unit in ns, without a product that overflows. */
static int64_t part_ns(int64_t billionths, int64_t unit_ns) {
    return billionths * (unit_ns / 1000000) / 1000; /* every unit is a multiple of a millisecond */
}

static int out_of_range(const char *text, struct error *e) {
    return fail(e, -ERANGE, "\"%.40s\" is not from 1ms to 366 days", text);
}

int duration_parse(const char *text, int64_t *ret_ns, struct error *e) {
    int64_t sum = 0;
    int last = -1;
    const char *at = text;
    if (!*text) return fail(e, -EINVAL, "\"\" is not a length of time, %s", form);
    while (*at) {
        int64_t whole, part;
        size_t len;
        int n = number_of(at, &whole, &part);
        if (n < 0) return fail(e, -EINVAL, "\"%.40s\" has more digits than a length of time needs", text);
        if (n == 0) return fail(e, -EINVAL, "\"%.40s\" is not a length of time, %s", text, form);
        at += n;
        if (!*at) return fail(e, -EINVAL, "\"%.40s\" has a number without a unit: ms, s, m, h or d, %s", text, form);
        int unit = unit_of(at, &len);
        if (unit < 0)
            return fail(e, -EINVAL, "\"%.40s\" has a unit other than ms, s, m, h and d; write it %s", text, form);
        if (unit <= last)
            return fail(e, -EINVAL, "\"%.40s\" has its units out of order or twice; write it %s", text, form);
        last = unit;
        at += len;
        if (whole > DURATION_MOST_NS / units[unit].ns) return out_of_range(text, e);
        sum += whole * units[unit].ns + part_ns(part, units[unit].ns);
        if (sum > DURATION_MOST_NS) return out_of_range(text, e);
    }
    if (sum < DURATION_LEAST_NS) return out_of_range(text, e);
    *ret_ns = sum;
    return 0;
}

void duration_text(int64_t ns, char ret[DURATION_TEXT]) {
    size_t n = 0;
    ret[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(units) && ns > 0; i++) {
        if (ns < units[i].ns) continue;
        n += (size_t)snprintf(ret + n, DURATION_TEXT - n, "%lld%s", (long long)(ns / units[i].ns), units[i].name);
        ns %= units[i].ns;
    }
    if (!n) snprintf(ret, DURATION_TEXT, "0ms");
}
