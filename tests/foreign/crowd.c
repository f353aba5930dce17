/* Three thousand processes that become more with every look, and shares in more samples than anybody expects. */
#include "foreign.h"

#include <stdatomic.h>
#include <time.h>

enum { AT_FIRST = 3000, MORE = 7, GRAPHICS = 2000, FIRST_PID = 100000, SAMPLES = 700 };

HAS_DRIVER("570.86.10")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-c204d000-0000-0000-0000-000000000004")
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA Crowd")
SAYS_UINT(nvmlDeviceGetPowerUsage, 200000)

static _Atomic unsigned calls;

static nvmlReturn_t list(unsigned n, unsigned *count, process_24 *to) {
    unsigned room = *count;
    *count = n;
    if (room < n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) to[i] = (process_24){FIRST_PID + i, 1000 + i, ~0u, ~0u};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    unsigned n = atomic_fetch_add(&calls, 1);
    return list(AT_FIRST + (n < 10 ? n : 10) * MORE, count, to);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    return list(GRAPHICS, count, to); /* the first of them have both kinds of context */
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *to,
                                                    unsigned *count, unsigned long long since_us) {
    struct timespec now;
    unsigned room = *count;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long now_us = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
    *count = SAMPLES;
    if (!to || room < SAMPLES) return INSUFFICIENT_SIZE;
    memset(to, 0, room * sizeof *to);
    for (unsigned i = 0; i < SAMPLES; i++) {
        /* the first process is not sampled, the second twice (the older one last), the third with garbage */
        unsigned pid = FIRST_PID + 1 + i;
        to[i] = (nvmlProcessUtilizationSample_t){pid, now_us, 10 + i % 50, 5, 0, 0};
        if (i == 1) to[i].smUtil = 4000000000u;
    }
    to[SAMPLES - 1] = (nvmlProcessUtilizationSample_t){FIRST_PID + 1, now_us - 1, 99, 99, 0, 0};
    return SUCCESS;
}
