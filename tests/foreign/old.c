/* A driver of long ago: plain names only, short process entries, the short PCI struct, throttle reasons. */
#include "foreign.h"

SAYS_CODE(nvmlInit, SUCCESS)
SAYS_CODE(nvmlShutdown, SUCCESS)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-01d0c0de-0000-0000-0000-000000000001")
SAYS_TEXT(nvmlDeviceGetName, "Tesla K20c")
SAYS_TEXT(nvmlDeviceGetSerial, "0324512045678")
SAYS_TEXT(nvmlDeviceGetVbiosVersion, "80.10.11.00.0C")
SAYS_UINT(nvmlDeviceGetPowerUsage, 51234)
SAYS_UINT(nvmlDeviceGetEnforcedPowerLimit, 225000)
SAYS_UINT(nvmlDeviceGetPerformanceState, 8)
SAYS_UINT(nvmlDeviceGetFanSpeed, 30)
SAYS_UINT(nvmlDeviceGetCurrPcieLinkGeneration, 2)
SAYS_UINT(nvmlDeviceGetCurrPcieLinkWidth, 16)

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned length) {
    snprintf(to, length, "304.137");
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *to) {
    *to = 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *to) {
    *to = card(index);
    return index == 0 ? SUCCESS : INVALID_ARGUMENT;
}

/* The struct of that time: the text first and 16 bytes long, the numbers after it, then what was reserved. */
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, void *to) {
    struct {
        char busId[16];
        unsigned domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
    } pci = {
        .busId = "0000:83:00.0", .bus = 0x83, .pciDeviceId = 0x102210de, .reserved = {~0u, ~0u, ~0u, ~0u}
    };
    memcpy(to, &pci, sizeof pci);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    if (sensor != 0) return INVALID_ARGUMENT;
    *to = 41;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *to) {
    *to = (nvmlUtilization_t){.gpu = 37, .memory = 12};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *to) {
    *to = (nvmlMemory_t){.total = 5032706048, .free = 4032706048, .used = 1000000000};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *to) {
    static const unsigned mhz[] = {705, 706, 2600};
    if (type > 2) return INVALID_ARGUMENT; /* it has not heard of a video clock */
    *to = mhz[type];
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *to) {
    *to = 0x4;
    return SUCCESS;
}

static nvmlReturn_t list(const process_16 *from, unsigned n, unsigned *count, process_16 *to) {
    if (*count < n) {
        *count = n;
        return INSUFFICIENT_SIZE;
    }
    memcpy(to, from, n * sizeof *to);
    *count = n;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, process_16 *to) {
    static const process_16 all[] = {
        {4001, 300000000},
        {4002, 200000000},
        {4003, 100000000}
    };
    return list(all, 3, count, to);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count, process_16 *to) {
    static const process_16 all[] = {
        {4002, 200000000},
        {4004, 50000000 }
    };
    return list(all, 2, count, to);
}
