/* A card on which everything can be set, and a library that does not survive it. */
#include "foreign.h"

HAS_DRIVER("580.159.04")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-5e77e000-0000-0000-0000-00000000000a")
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA H200")
SAYS_UINT(nvmlDeviceGetArchitecture, 9)
SAYS_UINT(nvmlDeviceGetPowerUsage, 650000)
SAYS_UINT(nvmlDeviceGetPowerManagementLimit, 700000)
SAYS_UINT(nvmlDeviceGetEnforcedPowerLimit, 700000)
SAYS_UINT(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
SAYS_UINT(nvmlDeviceGetNumFans, 1)
SAYS_UINT(nvmlDeviceGetFanSpeed, 60)

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    *to = 99; /* whoever guards would act */
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned *min, unsigned *max) {
    *min = 200000;
    *max = 700000;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned type, unsigned *to) {
    *to = 1980;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *to) {
    to[0] = 3201;
    *count = 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory, unsigned *count,
                                                         unsigned *to) {
    to[0] = 1980;
    to[1] = 345;
    *count = 2;
    return memory == 3201 ? SUCCESS : NOT_FOUND;
}

#define MUST_NOT(function)                                                                                             \
    EXPORT nvmlReturn_t function(void) {                                                                               \
        fprintf(stderr, "called: %s\n", #function);                                                                    \
        abort();                                                                                                       \
    }
MUST_NOT(nvmlDeviceSetPowerManagementLimit)
MUST_NOT(nvmlDeviceSetPowerManagementLimit_v2)
MUST_NOT(nvmlDeviceSetGpuLockedClocks)
MUST_NOT(nvmlDeviceResetGpuLockedClocks)
MUST_NOT(nvmlDeviceSetMemoryLockedClocks)
MUST_NOT(nvmlDeviceResetMemoryLockedClocks)
MUST_NOT(nvmlDeviceSetApplicationsClocks)
MUST_NOT(nvmlDeviceResetApplicationsClocks)
MUST_NOT(nvmlDeviceSetFanSpeed_v2)
MUST_NOT(nvmlDeviceSetDefaultFanSpeed_v2)
MUST_NOT(nvmlDeviceSetFanControlPolicy)
MUST_NOT(nvmlDeviceSetTemperatureThreshold)
MUST_NOT(nvmlDeviceSetClockOffsets)
MUST_NOT(nvmlDeviceSetPersistenceMode)
MUST_NOT(nvmlDeviceSetComputeMode)
MUST_NOT(nvmlDeviceSetEccMode)
MUST_NOT(nvmlDeviceSetMigMode)
MUST_NOT(nvmlDeviceSetAccountingMode)
MUST_NOT(nvmlDeviceSetAutoBoostedClocksEnabled)
MUST_NOT(nvmlDeviceClearEccErrorCounts)
MUST_NOT(nvmlDeviceClearAccountingPids)
MUST_NOT(nvmlDeviceClearCpuAffinity)
MUST_NOT(nvmlDeviceSetCpuAffinity)
MUST_NOT(nvmlDeviceResetNvLinkErrorCounters)
MUST_NOT(nvmlDeviceResetNvLinkUtilizationCounter)
MUST_NOT(nvmlDeviceSetNvLinkUtilizationControl)
MUST_NOT(nvmlDeviceRemoveGpu_v2)
