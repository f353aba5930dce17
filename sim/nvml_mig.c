/* MIG: whether a card is divided, and into what. The division is given when the simulator starts and is not changed by
   clients; each GPU instance holds one compute instance that fills it. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml_lib.h"

enum { CI_PROFILE_WHOLE = 0 };

/* By NVML_GPU_INSTANCE_PROFILE_*: what the hardware calls the profile, and how many of it a card holds. */
static const struct {
    uint32_t id, most;
} profiles[] = {
    {19, 7},
    {14, 3},
    {9,  2},
    {5,  1},
    {0,  1},
    {0,  1},
    {0,  1},
    {20, 1},
    {0,  1},
    {15, 4},
};
enum { PROFILE_COUNT = sizeof profiles / sizeof *profiles };

static uint32_t profile_number(const struct shm_mig *m) {
    return m->profile_id < PROFILE_COUNT ? profiles[m->profile_id].id : 0;
}

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
    if (r == NVML_SUCCESS) *ret = ask_can(&q, ABILITY_MIG) ? SHM_MIG_MAX : 0;
    return r;
}

EXPORT nvml_return nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, uint32_t index,
                                                       struct nvml_device **ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMigDeviceHandleByIndex, device, CAN(MIG), ret);
    if (r != NVML_SUCCESS) return r;
    if (index >= SHM_MIG_MAX) return NVML_ERROR_INVALID_ARGUMENT;
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

EXPORT nvml_return nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_attributes *ret) {
    struct ask q;
    nvml_return r = ask_mig(&q, CALL_nvmlDeviceGetAttributes_v2, device, ret);
    if (r == NVML_SUCCESS) *ret = attributes_of(&q.card->mig[q.mig]);
    return r;
}

EXPORT nvml_return nvmlDeviceGetAttributes(struct nvml_device *device, void *ret) {
    struct ask q;
    nvml_return r = ask_mig(&q, CALL_nvmlDeviceGetAttributes, device, ret);
    if (r != NVML_SUCCESS) return r;
    const struct nvml_attributes a = attributes_of(&q.card->mig[q.mig]);
    memcpy(ret, &a, offsetof(struct nvml_attributes, gpu_slices)); /* the first layout ends before the slices */
    return NVML_SUCCESS;
}

/* GPU and compute instances, as objects of their own. */
struct placement {
    uint32_t start, size;
};
struct gpu_instance_info {
    struct nvml_device *device;
    uint32_t id, profile;
    struct placement placement;
};
struct compute_instance_info {
    struct nvml_device *device;
    struct nvml_gpu_instance *gpu_instance;
    uint32_t id, profile;
    struct placement placement;
};
NVML_LAYOUT(struct gpu_instance_info, 24);
NVML_LAYOUT(struct compute_instance_info, 32);

static nvml_return ask_instance(struct ask *q, enum call call, enum handle_kind kind, const void *handle,
                                const void *out) {
    uint32_t gpu, mig;
    const struct shm_root *root;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!out || !handle_read(kind, handle, &gpu, &mig)) return NVML_ERROR_INVALID_ARGUMENT;
    r = ask_index(q, call, gpu);
    q->mig = mig;
    return r;
}

EXPORT nvml_return nvmlDeviceGetGpuInstanceById(struct nvml_device *device, uint32_t id,
                                                struct nvml_gpu_instance **ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetGpuInstanceById, device, CAN(MIG), ret);
    if (r != NVML_SUCCESS) return r;
    if (!q.card->mig_mode) return NVML_ERROR_NOT_SUPPORTED;
    for (uint32_t i = 0; i < q.card->mig_count; i++) {
        if (q.card->mig[i].gi != id) continue;
        *ret = handle_make(HANDLE_GPU_INSTANCE, q.card->index, i);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvml_return nvmlDeviceGetGpuInstances(struct nvml_device *device, uint32_t profile,
                                             struct nvml_gpu_instance **out, uint32_t *count) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetGpuInstances, device, CAN(MIG), out ? count : NULL);
    if (r != NVML_SUCCESS) return r;
    if (!q.card->mig_mode) return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (uint32_t i = 0; i < q.card->mig_count; i++)
        if (profile_number(&q.card->mig[i]) == profile)
            out[(*count)++] = handle_make(HANDLE_GPU_INSTANCE, q.card->index, i);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct gpu_instance_info *ret) {
    struct ask q;
    nvml_return r = ask_instance(&q, CALL_nvmlGpuInstanceGetInfo, HANDLE_GPU_INSTANCE, instance, ret);
    if (r != NVML_SUCCESS) return r;
    const struct shm_mig *m = &q.card->mig[q.mig];
    *ret = (struct gpu_instance_info){
        handle_make(HANDLE_DEVICE, q.card->index, NVML_NO_INSTANCE),
        m->gi,
        profile_number(m),
        {m->place_start, m->mem_slices},
    };
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, uint32_t id,
                                                         struct nvml_compute_instance **ret) {
    struct ask q;
    nvml_return r = ask_instance(&q, CALL_nvmlGpuInstanceGetComputeInstanceById, HANDLE_GPU_INSTANCE, instance, ret);
    if (r != NVML_SUCCESS) return r;
    if (q.card->mig[q.mig].ci != id) return NVML_ERROR_NOT_FOUND;
    *ret = handle_make(HANDLE_COMPUTE_INSTANCE, q.card->index, q.mig);
    return NVML_SUCCESS;
}

static nvml_return compute_info(enum call call, struct nvml_compute_instance *instance,
                                struct compute_instance_info *ret) {
    struct ask q;
    nvml_return r = ask_instance(&q, call, HANDLE_COMPUTE_INSTANCE, instance, ret);
    if (r != NVML_SUCCESS) return r;
    const struct shm_mig *m = &q.card->mig[q.mig];
    const struct compute_instance_info info = {
        handle_make(HANDLE_DEVICE, q.card->index, NVML_NO_INSTANCE),
        handle_make(HANDLE_GPU_INSTANCE, q.card->index, q.mig),
        m->ci,
        CI_PROFILE_WHOLE,
        {0, m->slices},
    };
    bool has_placement = call == CALL_nvmlComputeInstanceGetInfo_v2;
    memcpy(ret, &info, has_placement ? sizeof info : offsetof(struct compute_instance_info, placement));
    return NVML_SUCCESS;
}
EXPORT nvml_return nvmlComputeInstanceGetInfo(struct nvml_compute_instance *instance,
                                              struct compute_instance_info *ret) {
    return compute_info(CALL_nvmlComputeInstanceGetInfo, instance, ret);
}
EXPORT nvml_return nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *instance,
                                                 struct compute_instance_info *ret) {
    return compute_info(CALL_nvmlComputeInstanceGetInfo_v2, instance, ret);
}

struct gpu_instance_profile {
    uint32_t id, has_p2p, slices, most, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
};
NVML_LAYOUT(struct gpu_instance_profile, 48);

/* Known for the profiles that the card is divided into; others are not offered. */
EXPORT nvml_return nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, uint32_t profile,
                                                       struct gpu_instance_profile *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetGpuInstanceProfileInfo, device, CAN(MIG), ret);
    if (r != NVML_SUCCESS) return r;
    for (uint32_t i = 0; i < q.card->mig_count; i++) {
        const struct shm_mig *m = &q.card->mig[i];
        if (m->profile_id != profile || profile >= PROFILE_COUNT) continue;
        *ret = (struct gpu_instance_profile){
            profiles[profile].id,
            0,
            m->slices,
            profiles[profile].most,
            m->sm_count,
            m->copy_engines,
            m->decoders,
            m->encoders,
            m->jpegs,
            m->ofas,
            m->memory_bytes >> 20,
        };
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_SUPPORTED;
}
