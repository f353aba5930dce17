/* Cron expressions and intervals as anybody types them: the next time is always later, and none lies between. */
#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "model/moment.h"
#include "model/recur.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct zone zone; /* with a gap and an overlap every year */

static void walk(const struct recur *r, const struct zone *z, int64_t after_s) {
    for (int i = 0; i < 5; i++) {
        int64_t at = recur_next(r, z, after_s);
        if (at == RECUR_NEVER) return;
        if (at <= after_s || at >= MOMENT_MOST_S) __builtin_trap();
        if (recur_next(r, z, at - 1) != at) __builtin_trap();
        after_s = at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char text[200];
    struct recur r;
    struct error e;
    zone = (struct zone){
        .first_s = 3600,
        .has_rule = true,
        .standard_s = 3600,
        .summer_s = 7200,
        .begin = {.kind = 'M', .month = 3,  .week = 5, .at_s = 7200 },
        .end = {.kind = 'M', .month = 10, .week = 5, .at_s = 10800}
    };
    if (n >= sizeof text || memchr(bytes, 0, n)) return 0;
    memcpy(text, bytes, n);
    text[n] = 0;
    bool is_interval = text[0] == 'R';
    if (recur_parse(is_interval ? "" : text, is_interval ? text : "", &r, &e) < 0) return 0;
    static const int64_t from[] = {0, 1774659600, 1792886400, 4102444800, MOMENT_MOST_S - 100};
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        walk(&r, &zone, from[i]);
        walk(&r, NULL, from[i]);
    }
    return 0;
}
