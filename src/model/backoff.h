/* How long to wait before something that ended is started again: doubling, bounded, forgotten after a good run. */
#pragma once

#include <stdint.h>

struct backoff {
    uint32_t failures;
};

/* ran_ns: how long the last run lasted. Returns the delay before the next. */
int64_t backoff_next(struct backoff *b, int64_t ran_ns, int64_t first_ns, int64_t most_ns);
