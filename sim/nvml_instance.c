/* GPU and compute instances of a divided card, as objects of their own, and the profiles they were cut by. Each GPU
   instance holds one compute instance that fills it. */
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

EXPORT nvml_return nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, uint32_t profile,
                                                      struct nvml_compute_instance **out, uint32_t *count) {
    struct ask q;
    enum call call = CALL_nvmlGpuInstanceGetComputeInstances;
    nvml_return r = ask_instance(&q, call, HANDLE_GPU_INSTANCE, instance, out ? count : NULL);
    if (r != NVML_SUCCESS) return r;
    *count = profile == CI_PROFILE_WHOLE;
    if (*count) out[0] = handle_make(HANDLE_COMPUTE_INSTANCE, q.card->index, q.mig);
    return NVML_SUCCESS;
}

struct compute_profile {
    uint32_t id, slices, most, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
};
NVML_LAYOUT(struct compute_profile, 36);

/* NVML numbers profiles by their slices: 1 2 3 4 7 8 6. Offered is the one that fills the instance. */
EXPORT nvml_return nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, uint32_t profile,
                                                                uint32_t engines, struct compute_profile *ret) {
    static const uint32_t slices_of[] = {1, 2, 3, 4, 7, 8, 6};
    struct ask q;
    enum call call = CALL_nvmlGpuInstanceGetComputeInstanceProfileInfo;
    nvml_return r = ask_instance(&q, call, HANDLE_GPU_INSTANCE, instance, ret);
    if (r != NVML_SUCCESS) return r;
    const struct shm_mig *m = &q.card->mig[q.mig];
    if (engines != 0) return NVML_ERROR_INVALID_ARGUMENT;
    bool is_it = profile < sizeof slices_of / sizeof *slices_of && slices_of[profile] == m->slices;
    if (!is_it) return NVML_ERROR_NOT_SUPPORTED;
    *ret = (struct compute_profile){
        CI_PROFILE_WHOLE, m->slices, 1, m->sm_count, m->copy_engines, m->decoders, m->encoders, m->jpegs, m->ofas,
    };
    return NVML_SUCCESS;
}

struct gpu_instance_profile {
    uint32_t id, has_p2p, slices, most, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
};
NVML_LAYOUT(struct gpu_instance_profile, 48);

/* Known for the profiles that the card is divided into; others are not offered. */
static nvml_return profile_info(enum call call, struct nvml_device *d, uint32_t profile, const void *out,
                                struct gpu_instance_profile *ret, const char **ret_name) {
    struct ask q;
    nvml_return r = ask_device(&q, call, d, CAN(MIG), out);
    if (r != NVML_SUCCESS) return r;
    for (uint32_t i = 0; i < q.card->mig_count; i++) {
        const struct shm_mig *m = &q.card->mig[i];
        if (m->profile_id != profile || profile >= PROFILE_COUNT) continue;
        *ret_name = m->profile;
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

EXPORT nvml_return nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, uint32_t profile,
                                                       struct gpu_instance_profile *ret) {
    const char *name;
    return profile_info(CALL_nvmlDeviceGetGpuInstanceProfileInfo, device, profile, ret, ret, &name);
}

/* Version 3 dropped the word about peers and has capabilities at the end. */
struct gpu_instance_profile_v2 {
    uint32_t version;
    uint32_t id, has_p2p, slices, most, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
    char name[NVML_NAME_SIZE];
};
struct gpu_instance_profile_v3 {
    uint32_t version;
    uint32_t id, slices, most, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
    char name[NVML_NAME_SIZE];
    uint32_t capabilities;
};
NVML_LAYOUT(struct gpu_instance_profile_v2, 152);
NVML_LAYOUT(struct gpu_instance_profile_v3, 152);

EXPORT nvml_return nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, uint32_t profile, void *ret) {
    struct gpu_instance_profile p;
    const char *name;
    uint32_t version = 0;
    nvml_return r = profile_info(CALL_nvmlDeviceGetGpuInstanceProfileInfoV, device, profile, ret, &p, &name);
    if (r != NVML_SUCCESS) return r;
    memcpy(&version, ret, sizeof version);
    if (version == NVML_VERSION(struct gpu_instance_profile_v2, 2)) {
        struct gpu_instance_profile_v2 *v = ret;
        *v = (struct gpu_instance_profile_v2){
            version,    p.id,    0,      p.slices,     p.most, p.multiprocessors, p.copy_engines, p.decoders,
            p.encoders, p.jpegs, p.ofas, p.memory_mib, ""};
        snprintf(v->name, sizeof v->name, "MIG %s", name);
        return NVML_SUCCESS;
    }
    if (version == NVML_VERSION(struct gpu_instance_profile_v3, 3)) {
        struct gpu_instance_profile_v3 *v = ret;
        *v = (struct gpu_instance_profile_v3){version,        p.id,       p.slices,   p.most,  p.multiprocessors,
                                              p.copy_engines, p.decoders, p.encoders, p.jpegs, p.ofas,
                                              p.memory_mib,   "",         0};
        snprintf(v->name, sizeof v->name, "MIG %s", name);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}
