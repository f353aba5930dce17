/* What the driver has a call for and none of these cards has: each says NOT_SUPPORTED after the same checks as any
   other, so that a lost card is lost here, too, and a wrong handle wrong. */
#include "sim/nvml_lib.h"

#define ABSENT(call, ...)                                                                                              \
    EXPORT nvml_return call(struct nvml_device *device, ##__VA_ARGS__) {                                               \
        struct ask q;                                                                                                  \
        nvml_return r = ask_any_device(&q, CALL_##call, device, 0, device);                                            \
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;                                                       \
    }

/* a bridge chip, an operation mode, a driver model: boards of long ago, and Windows */
ABSENT(nvmlDeviceGetBridgeChipInfo, void *ret)
ABSENT(nvmlDeviceGetGpuOperationMode, uint32_t *current, uint32_t *pending)
ABSENT(nvmlDeviceSetGpuOperationMode, uint32_t mode)
ABSENT(nvmlDeviceGetDriverModel, uint32_t *current, uint32_t *pending)
ABSENT(nvmlDeviceGetDriverModel_v2, uint32_t *current, uint32_t *pending)
ABSENT(nvmlDeviceSetDriverModel, uint32_t model, uint32_t flags)
/* automatic boost: Kepler and Maxwell only */
ABSENT(nvmlDeviceGetAutoBoostedClocksEnabled, uint32_t *enabled, uint32_t *by_default)
ABSENT(nvmlDeviceSetAutoBoostedClocksEnabled, uint32_t enabled)
ABSENT(nvmlDeviceSetDefaultAutoBoostedClocksEnabled, uint32_t enabled, uint32_t flags)
/* memory that a CPU shares, and links to one */
ABSENT(nvmlDeviceGetNumaNodeId, uint32_t *ret)
ABSENT(nvmlDeviceGetC2cModeInfoV, void *ret)
/* confidential computing */
ABSENT(nvmlDeviceGetConfComputeGpuCertificate, void *ret)
ABSENT(nvmlDeviceGetConfComputeGpuAttestationReport, void *ret)
/* virtual GPUs */
ABSENT(nvmlDeviceGetActiveVgpus, uint32_t *count, uint32_t *out)
ABSENT(nvmlDeviceGetSupportedVgpus, uint32_t *count, uint32_t *out)
ABSENT(nvmlDeviceGetCreatableVgpus, uint32_t *count, uint32_t *out)
ABSENT(nvmlDeviceGetHostVgpuMode, uint32_t *ret)
ABSENT(nvmlDeviceGetVgpuUtilization, uint64_t last_seen_us, uint32_t *type, uint32_t *count, void *out)
ABSENT(nvmlDeviceGetVgpuProcessUtilization, uint64_t last_seen_us, uint32_t *count, void *out)
ABSENT(nvmlDeviceGetPgpuMetadataString, char *out, uint32_t *size)
/* link counters that went with Volta */
ABSENT(nvmlDeviceGetNvLinkUtilizationControl, uint32_t link, uint32_t counter, void *ret)
ABSENT(nvmlDeviceSetNvLinkUtilizationControl, uint32_t link, uint32_t counter, void *control, uint32_t reset)
ABSENT(nvmlDeviceGetNvLinkUtilizationCounter, uint32_t link, uint32_t counter, uint64_t *rx, uint64_t *tx)
ABSENT(nvmlDeviceFreezeNvLinkUtilizationCounter, uint32_t link, uint32_t counter, uint32_t freeze)
ABSENT(nvmlDeviceResetNvLinkUtilizationCounter, uint32_t link, uint32_t counter)
/* encryption and clock faults: later boards, or cars */
ABSENT(nvmlDeviceGetDramEncryptionMode, void *current, void *pending)
ABSENT(nvmlDeviceGetClkMonStatus, void *ret)
