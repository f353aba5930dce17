/* Something that happened to a GPU or to us, with its reason: XIDs, a card lost and back, a driver gone. Fixed size,
 * so that it can lie in the ring and be written from a thread that must not allocate. */
#pragma once

#include <stdint.h>

enum event_severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR, EVENT_CRITICAL };

struct event {
    int64_t boot_ns, real_ns;
    int32_t severity;
    int32_t device; /* number in the ring, -1: the machine */
    int32_t code;   /* XID code and the like, else 0 */
    int32_t pid;    /* the process it is laid to, else 0 */
    char kind[24];  /* a stable word: "xid", "gpu_lost", "gpu_back", "driver_gone" */
    char text[168];
};

const char *event_severity_name(enum event_severity s);
