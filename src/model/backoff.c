#include "model/backoff.h"

#define GOOD_RUN_NS 60000000000ll

int64_t backoff_next(struct backoff *b, int64_t ran_ns, uint32_t free, int64_t first_ns, int64_t most_ns) {
    if (ran_ns >= GOOD_RUN_NS) b->failures = 0;
    int64_t delay = first_ns;
    for (uint32_t i = free; i < b->failures && delay < most_ns; i++) delay *= 2;
    if (b->failures < 1000) b->failures++;
    return delay < most_ns ? delay : most_ns;
}
