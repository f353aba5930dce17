/* nvmlDeviceGetSamples: the driver's own short history of power, utilisation and clocks. */
#include <stddef.h>

#include "sim/nvml_lib.h"

enum { UTILIZATION_SLOTS = 72, CLOCK_SLOTS = 100 };

static const struct {
    enum ability needs;
    uint32_t at;
} kinds[NVML_SAMPLES_COUNT] = {
    [NVML_SAMPLES_POWER] = {ABILITY_POWER,    offsetof(struct shm_sample, power_mw)},
    [NVML_SAMPLES_GPU_UTIL] = {ABILITY_UTIL,     offsetof(struct shm_sample, util_gpu)},
    [NVML_SAMPLES_MEMORY_UTIL] = {ABILITY_UTIL,     offsetof(struct shm_sample, util_mem)},
    [NVML_SAMPLES_ENC_UTIL] = {ABILITY_CODEC,    offsetof(struct shm_sample, util_enc)},
    [NVML_SAMPLES_DEC_UTIL] = {ABILITY_CODEC,    offsetof(struct shm_sample, util_dec)},
    [NVML_SAMPLES_GPU_CLOCK] = {ABILITY_CLOCKS,   offsetof(struct shm_sample, sm_mhz)  },
    [NVML_SAMPLES_MEMORY_CLOCK] = {ABILITY_CLOCKS,   offsetof(struct shm_sample, mem_mhz) },
    [NVML_SAMPLES_JPG_UTIL] = {ABILITY_JPEG_OFA, offsetof(struct shm_sample, util_jpg)},
    [NVML_SAMPLES_OFA_UTIL] = {ABILITY_JPEG_OFA, offsetof(struct shm_sample, util_ofa)},
};

/* Clocks have a buffer that nothing is put into. */
static bool is_clock(uint32_t type) { return type == NVML_SAMPLES_GPU_CLOCK || type == NVML_SAMPLES_MEMORY_CLOCK; }

static bool is_utilization(uint32_t type) { return type != NVML_SAMPLES_POWER && !is_clock(type); }

/* The newest `room` of those after last_seen_us, oldest first. */
static uint32_t copy_newer(const struct shm_samples *h, uint32_t at, uint64_t last_seen_us, uint32_t room,
                           struct nvml_sample *out) {
    uint64_t have = h->written < SHM_SAMPLES_MAX ? h->written : SHM_SAMPLES_MAX;
    uint64_t first = h->written - have;
    while (first < h->written && h->sample[first % SHM_SAMPLES_MAX].at_us <= last_seen_us) first++;
    if (h->written - first > room) first = h->written - room;
    uint32_t n = 0;
    for (uint64_t i = first; i < h->written; i++) {
        const struct shm_sample *s = &h->sample[i % SHM_SAMPLES_MAX];
        out[n] = (struct nvml_sample){.timestamp_us = s->at_us};
        out[n++].value.u = *(const uint32_t *)(const void *)((const char *)s + at);
    }
    return n;
}

EXPORT nvml_return nvmlDeviceGetSamples(struct nvml_device *device, uint32_t type, uint64_t last_seen_us,
                                        uint32_t *value_type, uint32_t *count, struct nvml_sample *out) {
    struct ask q;
    struct shm_samples history;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetSamples, device, CAN(SAMPLES), value_type ? count : NULL);
    if (r != NVML_SUCCESS) return r;
    bool is_known =
        type < NVML_SAMPLES_COUNT && type != NVML_SAMPLES_MODULE_POWER; /* there is no module around these */
    if (!is_known || (out && *count == 0)) return NVML_ERROR_INVALID_ARGUMENT;
    if (!ask_can(&q, kinds[type].needs)) return NVML_ERROR_NOT_SUPPORTED;
    if (q.card->mig_mode && is_utilization(type)) return NVML_ERROR_NOT_SUPPORTED;
    *value_type = NVML_VALUE_UINT;
    if (!out) {
        *count = is_clock(type) ? CLOCK_SLOTS : is_utilization(type) ? UTILIZATION_SLOTS : SHM_SAMPLES_MAX;
        return NVML_SUCCESS;
    }
    if (is_clock(type)) return NVML_ERROR_NOT_FOUND;
    shm_read_samples(q.gpu, &history);
    uint32_t room = is_utilization(type) && *count > UTILIZATION_SLOTS ? UTILIZATION_SLOTS : *count;
    uint32_t n = copy_newer(&history, kinds[type].at, last_seen_us, room, out);
    if (n == 0) return NVML_ERROR_NOT_FOUND; /* the count stays as it was */
    *count = n;
    return NVML_SUCCESS;
}
