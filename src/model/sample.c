#include "model/sample.h"

void latest_take(struct latest *l, const struct sample *s, const int64_t for_ns[METRIC_COUNT]) {
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (sample_has(s, i)) {
            l->of[i].value = s->value[i];
            l->of[i].boot_ns = s->boot_ns;
            if (__builtin_add_overflow(s->boot_ns, for_ns[i], &l->of[i].until_ns)) l->of[i].until_ns = INT64_MAX;
        } else if (bits_test(s->asked, i)) {
            l->of[i].boot_ns = 0;
        }
    }
}
