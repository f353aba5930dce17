/* What newer cards know of the platform around them: confidential computing, the chassis, repairs, licences. All
   of it is there and says that nothing of the kind is in use. */
#include "sim/nvml_lib.h"

static nvml_return ask_hopper(struct ask *q, enum call call, struct nvml_device *d, const void *out) {
    nvml_return r = ask_device(q, call, d, 0, out);
    return r == NVML_SUCCESS && q->card->architecture < NVML_ARCH_HOPPER ? NVML_ERROR_NOT_SUPPORTED : r;
}

struct conf_memory {
    uint64_t protected_kib, unprotected_kib;
};

EXPORT nvml_return nvmlDeviceGetConfComputeMemSizeInfo(struct nvml_device *device, struct conf_memory *ret) {
    struct ask q;
    nvml_return r = ask_hopper(&q, CALL_nvmlDeviceGetConfComputeMemSizeInfo, device, ret);
    if (r == NVML_SUCCESS) *ret = (struct conf_memory){.unprotected_kib = q.card->memory_bytes >> 10};
    return r;
}

EXPORT nvml_return nvmlDeviceGetConfComputeProtectedMemoryUsage(struct nvml_device *device, struct nvml_memory *ret) {
    struct ask q;
    nvml_return r = ask_hopper(&q, CALL_nvmlDeviceGetConfComputeProtectedMemoryUsage, device, ret);
    if (r == NVML_SUCCESS) *ret = (struct nvml_memory){0};
    return r;
}

struct platform_info { /* both versions are of this size; the second gave some members other names */
    uint32_t version;
    uint8_t ib_guid[16], chassis[16];
    uint8_t slot, tray, host, peer_type, module_id;
};
NVML_LAYOUT(struct platform_info, 44);

EXPORT nvml_return nvmlDeviceGetPlatformInfo(struct nvml_device *device, struct platform_info *ret) {
    struct ask q;
    nvml_return r = ask_hopper(&q, CALL_nvmlDeviceGetPlatformInfo, device, ret);
    if (r != NVML_SUCCESS) return r;
    bool is_known =
        ret->version == NVML_VERSION(struct platform_info, 1) || ret->version == NVML_VERSION(struct platform_info, 2);
    if (!is_known) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *ret = (struct platform_info){.version = ret->version, .module_id = (uint8_t)q.card->module_id};
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetRepairStatus(struct nvml_device *device, struct nvml_repair_status *ret) {
    struct ask q;
    nvml_return r = ask_hopper(&q, CALL_nvmlDeviceGetRepairStatus, device, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_REPAIR_STATUS_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    ret->channel_pending = ret->tpc_pending = 0;
    return NVML_SUCCESS;
}

/* The four layouts begin alike; with no feature to list nothing else of them is written. */
struct license_head {
    int32_t is_supported;
    uint32_t features;
};

static nvml_return licenses(enum call call, struct nvml_device *d, struct license_head *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, call, d, 0, ret);
    if (r == NVML_SUCCESS) *ret = (struct license_head){0};
    return r;
}
#define LICENSES(name)                                                                                                 \
    EXPORT nvml_return name(struct nvml_device *device, struct license_head *ret) {                                    \
        return licenses(CALL_##name, device, ret);                                                                     \
    }
LICENSES(nvmlDeviceGetGridLicensableFeatures)
LICENSES(nvmlDeviceGetGridLicensableFeatures_v2)
LICENSES(nvmlDeviceGetGridLicensableFeatures_v3)
LICENSES(nvmlDeviceGetGridLicensableFeatures_v4)
