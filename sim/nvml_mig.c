/* MIG devices: whether a card is divided, and into what. The division is given when the simulator starts and is not
   changed by clients. */
#include <string.h>

#include "sim/nvml_lib.h"

EXPORT nvml_return nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMigMode, device, CAN(MIG), pending ? current : NULL);
    if (r != NVML_SUCCESS) return r;
    *current = q.card->mig_mode;
    *pending = q.card->mig_mode;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMaxMigDeviceCount, device, 0, ret);
    if (r == NVML_SUCCESS) *ret = q.card->mig_mode ? SHM_MIG_MAX : 0;
    return r;
}

EXPORT nvml_return nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index,
                                                       struct nvml_device **ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMigDeviceHandleByIndex, device, CAN(MIG), ret);
    if (r != NVML_SUCCESS) return r;
    if (index >= q.card->mig_count) return NVML_ERROR_NOT_FOUND;
    *ret = handle_make(HANDLE_DEVICE, q.card->index, index);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceIsMigDeviceHandle, device, 0, ret);
    if (r == NVML_SUCCESS) *ret = q.mig != NVML_NO_INSTANCE;
    return r;
}

/* For calls that make sense on a MIG device only. */
static nvml_return ask_mig(struct ask *q, enum call call, struct nvml_device *d, const void *out) {
    nvml_return r = ask_any_device(q, call, d, 0, out);
    return r == NVML_SUCCESS && q->mig == NVML_NO_INSTANCE ? NVML_ERROR_INVALID_ARGUMENT : r;
}

EXPORT nvml_return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *device, struct nvml_device **ret) {
    struct ask q;
    nvml_return r = ask_mig(&q, CALL_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device, ret);
    if (r == NVML_SUCCESS) *ret = handle_make(HANDLE_DEVICE, q.card->index, NVML_NO_INSTANCE);
    return r;
}

EXPORT nvml_return nvmlDeviceGetGpuInstanceId(struct nvml_device *device, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_mig(&q, CALL_nvmlDeviceGetGpuInstanceId, device, ret);
    if (r == NVML_SUCCESS) *ret = q.card->mig[q.mig].gi;
    return r;
}

EXPORT nvml_return nvmlDeviceGetComputeInstanceId(struct nvml_device *device, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_mig(&q, CALL_nvmlDeviceGetComputeInstanceId, device, ret);
    if (r == NVML_SUCCESS) *ret = q.card->mig[q.mig].ci;
    return r;
}

static struct nvml_attributes attributes_of(const struct shm_mig *m) {
    return (struct nvml_attributes){
        m->sm_count, m->copy_engines, m->decoders, m->encoders,           m->jpegs,
        m->ofas,     m->slices,       m->slices,   m->memory_bytes >> 20,
    };
}

static nvml_return ask_attributes(struct ask *q, enum call call, struct nvml_device *d, const void *out) {
    nvml_return r = ask_any_device(q, call, d, 0, out);
    return r == NVML_SUCCESS && q->mig == NVML_NO_INSTANCE ? NVML_ERROR_NOT_SUPPORTED : r;
}

EXPORT nvml_return nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *ret) {
    struct ask q;
    nvml_return r = ask_attributes(&q, CALL_nvmlDeviceGetAttributes_v2, device, ret);
    if (r == NVML_SUCCESS) *ret = attributes_of(&q.card->mig[q.mig]);
    return r;
}

EXPORT nvml_return nvmlDeviceGetAttributes(struct nvml_device *device, void *ret) {
    struct ask q;
    nvml_return r = ask_attributes(&q, CALL_nvmlDeviceGetAttributes, device, ret);
    if (r != NVML_SUCCESS) return r;
    const struct nvml_attributes a = attributes_of(&q.card->mig[q.mig]);
    memcpy(ret, &a, offsetof(struct nvml_attributes, gpu_slices)); /* the first layout ends before the slices */
    return NVML_SUCCESS;
}
