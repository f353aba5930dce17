#include "base/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXACT_MAX 9007199254740992.0 /* 2^53: whole numbers up to here are doubles */

/* units / 10^places, which is what the text will be read as: a quotient of two exact doubles, rounded once. */
static size_t put_fixed(char out[DECIMAL_MAX], uint64_t units, int places, int is_negative) {
    char digits[24];
    int n = 0;
    size_t len = 0;
    while (places > 0 && units % 10 == 0) {
        units /= 10;
        places--;
    }
    do {
        digits[n++] = (char)('0' + units % 10);
        units /= 10;
    } while (units || n <= places);
    if (is_negative) out[len++] = '-';
    while (n > 0) {
        if (n == places) out[len++] = '.';
        out[len++] = digits[--n];
    }
    out[len] = 0;
    return len;
}

size_t decimal_put(char out[DECIMAL_MAX], double v) {
    static const struct {
        double unit;
        int places;
    } steps[] = {
        {1,   0},
        {1e3, 3},
        {1e6, 6},
        {1e9, 9}
    };
    double size = fabs(v);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        double units = nearbyint(size * steps[i].unit);
        if (units >= EXACT_MAX) break;
        if (units / steps[i].unit == size) return put_fixed(out, (uint64_t)units, steps[i].places, signbit(v));
    }
    for (int digits = 15;; digits++) {
        int n = snprintf(out, DECIMAL_MAX, "%.*g", digits, v);
        if (digits == 17 || strtod(out, NULL) == v) return (size_t)n;
    }
}
