/* XIDs reach the board by two ways: the driver's events, and the kernel log, which has those that the driver keeps to
 * itself (79, 119, 120) and names the process. One thread each, both blocked nearly always. */
#pragma once

#include "core/watch.h"

struct xids {
    struct watch_common *common;
    struct watch *watches;
    unsigned count;
    char kmsg[256];
    int log; /* opened at its end, for the first that follows it; -1: not */
};

/* The kernel log, from here on: before any GPU is looked at, so that none of their XIDs is missed. "": none. */
void xids_open(struct xids *x, const char *kmsg);
/* x must stay as long as the process. A log that cannot be read is said once and done without. */
void xids_start(struct xids *x);
