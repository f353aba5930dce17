/* See amount.h. Nothing here accepts a number with something left over. */
#include "sim/amount.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The number at the start of s, and where it ended. Hexadecimal and nan are not amounts. */
static bool leading_number(const char *s, double *ret, const char **ret_end) {
    if (!s || !((*s >= '0' && *s <= '9') || *s == '.' || *s == '+' || *s == '-')) return false;
    if (strpbrk(s, "xX")) return false;
    char *end;
    double v = strtod(s, &end);
    if (end == s || !isfinite(v)) return false;
    *ret = v;
    *ret_end = end;
    return true;
}

static bool scaled(const char *s, const char *const *units, const double *factors, double *ret) {
    double v;
    const char *end;
    if (!leading_number(s, &v, &end)) return false;
    for (int i = 0; units[i]; i++) {
        if (strcasecmp(end, units[i]) != 0) continue;
        *ret = v * factors[i];
        return true;
    }
    return false;
}

bool amount_bytes(const char *s, uint64_t *ret) {
    static const char *const units[] = {"",   "k",   "m",   "g",   "t",   "kb", "mb", "gb",
                                        "tb", "kib", "mib", "gib", "tib", "b",  NULL};
    static const double factors[] = {1,      0x1p10, 0x1p20, 0x1p30, 0x1p40, 0x1p10, 0x1p20,
                                     0x1p30, 0x1p40, 0x1p10, 0x1p20, 0x1p30, 0x1p40, 1};
    double v;
    if (!scaled(s, units, factors, &v) || v < 0 || v > 0x1p50) return false;
    *ret = (uint64_t)v;
    return true;
}

bool amount_share(const char *s, double *ret) {
    static const char *const units[] = {"", "%", NULL};
    static const double factors[] = {1, 0.01};
    double v;
    if (!scaled(s, units, factors, &v) || v < 0 || v > 1) return false;
    *ret = v;
    return true;
}

bool amount_seconds(const char *s, double *ret) {
    static const char *const units[] = {"", "s", "ms", "m", "min", "h", NULL};
    static const double factors[] = {1, 1, 0.001, 60, 60, 3600};
    double v;
    if (!scaled(s, units, factors, &v) || v < 0) return false;
    *ret = v;
    return true;
}

bool amount_number(const char *s, double lo, double hi, double *ret) {
    double v;
    const char *end;
    if (!leading_number(s, &v, &end) || *end || v < lo || v > hi) return false;
    *ret = v;
    return true;
}

bool amount_count(const char *s, uint32_t lo, uint32_t hi, uint32_t *ret) {
    double v;
    if (!amount_number(s, lo, hi, &v) || v != floor(v)) return false;
    *ret = (uint32_t)v;
    return true;
}
