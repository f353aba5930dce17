/* How long to wait before something that ended is started again: doubling, bounded, forgotten after a good run. */
#pragma once

#include <stdint.h>

struct backoff {
    uint32_t failures;
};

/* Returns the delay before the next start. ran_ns: how long the last run lasted. free: so many ends in a row cost no
 * more than first_ns: none for what fails by itself, many for what does its work and is killed by others. */
int64_t backoff_next(struct backoff *b, int64_t ran_ns, uint32_t free, int64_t first_ns, int64_t most_ns);
