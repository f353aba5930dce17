/* How long a job that failed waits before it is tried again. */
#pragma once

#include <stdint.h>

#define JOB_RETRY_FIRST_NS 1000000000LL /* doubles with each failure ... */
#define JOB_RETRY_LONGEST_NS (60 * JOB_RETRY_FIRST_NS)

static inline int64_t job_retry_pause_ns(int failures) {
    int64_t pause_ns = JOB_RETRY_FIRST_NS;
    for (int i = 1; i < failures && pause_ns < JOB_RETRY_LONGEST_NS; i++) pause_ns *= 2;
    return pause_ns;
}
