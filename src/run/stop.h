/* What may be said to a shim: two real-time signals with a value, through its pidfd, from whoever may signal it (root, its
 * owner). It needs no socket, and cannot reach another process. SIGTERM means stop as well: cancelled, with the grace of its order. */
#pragma once

#include <stdint.h>

#define STOP_SIGNAL 36 /* value: stop_value */
#define PASS_SIGNAL 37 /* value: a signal for the job's processes */

#define STOP_GRACE_STEP_MS 100

/* Reason and grace in one int. */
static inline int stop_value(uint8_t reason, int64_t grace_ms) {
    int64_t steps = (grace_ms + STOP_GRACE_STEP_MS - 1) / STOP_GRACE_STEP_MS;
    if (steps < 0) steps = 0;
    if (steps > 0x7fffff) steps = 0x7fffff;
    return (int)(reason | steps << 8);
}
static inline uint8_t stop_reason(int value) { return (uint8_t)(value & 0xff); }
static inline int64_t stop_grace_ms(int value) { return (int64_t)((unsigned)value >> 8) * STOP_GRACE_STEP_MS; }

/* To the process of a pidfd; a negative errno. */
int stop_send(int pidfd, int signo, int value);
