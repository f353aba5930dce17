/* systemd's notify protocol, in the few lines it takes: one datagram to the socket that NOTIFY_SOCKET names. Without
 * that variable these do nothing. */
#pragma once

#include <stdint.h>

#include "base/auto.h"

void notify_send(const char *fmt, ...) PRINTF(1, 2); /* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=..." */

/* How often systemd wants to hear WATCHDOG=1, halved; 0: never. */
int64_t notify_watchdog_ns(void);

/* What RELOADING=1 has to carry: systemd's clock stands still in suspend, ours (base/clock.h) does not. */
int64_t notify_monotonic_us(void);
