/* Memory of a card or of a MIG device, BAR1, and the utilisation counters. */
#include "sim/nvml_lib.h"

void mig_memory(const struct ask *q, uint64_t *ret_total, uint64_t *ret_used) {
    struct shm_state s;
    SHM_GET(q->gpu, mig_used_bytes, mig_used_bytes, &s);
    *ret_total = q->card->mig[q->mig].memory_bytes;
    *ret_used = s.mig_used_bytes[q->mig];
}

static struct nvml_memory_v2 memory_of(const struct ask *q) {
    struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2};
    if (q->mig == NVML_NO_INSTANCE) {
        m.total = q->card->memory_bytes;
        m.reserved = q->card->reserved_bytes;
        m.used = q->s.used_bytes;
    } else {
        mig_memory(q, &m.total, &m.used);
    }
    uint64_t taken = m.used + m.reserved;
    m.free = m.total > taken ? m.total - taken : 0;
    return m;
}

EXPORT nvml_return nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetMemoryInfo, device, CAN(MEMORY), ret);
    if (r != NVML_SUCCESS) return r;
    struct nvml_memory_v2 m = memory_of(&q);
    *ret = (struct nvml_memory){.total = m.total, .free = m.free, .used = m.total - m.free};
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetMemoryInfo_v2, device, CAN(MEMORY), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_MEMORY_V2) return NVML_ERROR_FUNCTION_NOT_FOUND; /* older than the code for a mismatch */
    *ret = memory_of(&q);
    return NVML_SUCCESS;
}

/* A MIG device has the window of its memory slices, of which there are eight to a card. */
enum { MEMORY_SLICES = 8 };

EXPORT nvml_return nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1 *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetBAR1MemoryInfo, device, CAN(BAR1), ret);
    if (r != NVML_SUCCESS) return r;
    uint32_t slices = q.mig == NVML_NO_INSTANCE ? MEMORY_SLICES : q.card->mig[q.mig].mem_slices;
    ret->total = q.card->bar1_bytes / MEMORY_SLICES * slices;
    ret->used = q.s.bar1_used_bytes / MEMORY_SLICES * slices;
    ret->free = ret->total - ret->used;
    return NVML_SUCCESS;
}

/* With MIG on there is no utilisation of the whole, only GPM's of each instance. */
static nvml_return ask_util(struct ask *q, enum call call, struct nvml_device *d, enum ability a, const void *out) {
    nvml_return r = ask_device(q, call, d, UINT64_C(1) << a, out);
    return r == NVML_SUCCESS && q->card->mig_mode ? NVML_ERROR_NOT_SUPPORTED : r;
}

EXPORT nvml_return nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *ret) {
    struct ask q;
    nvml_return r = ask_util(&q, CALL_nvmlDeviceGetUtilizationRates, device, ABILITY_UTIL, ret);
    if (r == NVML_SUCCESS) *ret = (struct nvml_utilization){q.s.util_gpu, q.s.util_mem};
    return r;
}

#define UTILIZATION_OF(call, ability, member)                                                                          \
    EXPORT nvml_return call(struct nvml_device *device, uint32_t *ret, uint32_t *period_us) {                          \
        struct ask q;                                                                                                  \
        nvml_return r = ask_util(&q, CALL_##call, device, ability, period_us ? ret : NULL);                            \
        if (r != NVML_SUCCESS) return r;                                                                               \
        *ret = q.s.member;                                                                                             \
        *period_us = q.s.util_period_us;                                                                               \
        return NVML_SUCCESS;                                                                                           \
    }
UTILIZATION_OF(nvmlDeviceGetEncoderUtilization, ABILITY_CODEC, util_enc)
UTILIZATION_OF(nvmlDeviceGetDecoderUtilization, ABILITY_CODEC, util_dec)
UTILIZATION_OF(nvmlDeviceGetJpgUtilization, ABILITY_JPEG_OFA, util_jpg)
UTILIZATION_OF(nvmlDeviceGetOfaUtilization, ABILITY_JPEG_OFA, util_ofa)
