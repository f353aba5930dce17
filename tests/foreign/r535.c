/* Drivers 535.43 to 535.86: 32 bytes an entry under the _v3 names. With ENTRY 24 a library that only looks like one by
 * its symbols. */
#include "foreign.h"

#ifndef ENTRY
#define ENTRY 32
#endif
#if ENTRY == 24
typedef process_24 entry;
#else
typedef process_32 entry;
#endif

HAS_DRIVER("535.54.03")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-53554030-0000-0000-0000-000000000002")
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA A100-SXM4-80GB")
SAYS_UINT(nvmlDeviceGetPowerUsage, 61500)
SAYS_CODE(nvmlDeviceGetConfComputeMemSizeInfo, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetMPSComputeRunningProcesses_v3, NOT_SUPPORTED)

static nvmlReturn_t list(const entry *from, unsigned n, unsigned *count, entry *to) {
    if (*count < n || !to) {
        *count = n;
        return n ? INSUFFICIENT_SIZE : SUCCESS;
    }
    if (n) memcpy(to, from, n * sizeof *to);
    *count = n;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, entry *to) {
    static const entry all[] = {
        {.pid = 5001, .usedGpuMemory = 1111, .gpuInstanceId = ~0u, .computeInstanceId = ~0u},
        {.pid = 5002, .usedGpuMemory = 2222, .gpuInstanceId = ~0u, .computeInstanceId = ~0u},
        {.pid = 5003, .usedGpuMemory = 3333, .gpuInstanceId = ~0u, .computeInstanceId = ~0u},
    };
    return list(all, 3, count, to);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, entry *to) {
    return list(NULL, 0, count, to);
}
