/* Video: encoder sessions and statistics, and frame buffer capture, which nobody does here. A process that encodes
   is one session of 1080p H.264. */
#include "sim/nvml_lib.h"

enum { CODEC_H264 = 0, CODEC_HEVC = 1, CODEC_AV1 = 2, SESSION_WIDTH = 1920, SESSION_HEIGHT = 1080 };
enum { SESSION_FPS = 60, SESSION_LATENCY_US = 4000 };

struct encoder_session {
    uint32_t id, pid, codec, width, height, fps, latency_us;
};
NVML_LAYOUT(struct encoder_session, 28);

static uint32_t encoders_of(const struct ask *q, struct shm_procs *p) {
    uint32_t n = 0;
    shm_read_procs(q->gpu, p);
    for (uint64_t i = 0; i < p->count; i++)
        if (p->proc[i].enc_pct > 0) p->proc[n++] = p->proc[i];
    p->count = n;
    return n;
}

EXPORT nvml_return nvmlDeviceGetEncoderStats(struct nvml_device *device, uint32_t *sessions, uint32_t *fps,
                                             uint32_t *latency_us) {
    struct ask q;
    struct shm_procs p;
    const void *out = fps && latency_us ? sessions : NULL;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetEncoderStats, device, CAN(CODEC), out);
    if (r != NVML_SUCCESS) return r;
    *sessions = encoders_of(&q, &p);
    *fps = *sessions ? SESSION_FPS : 0;
    *latency_us = *sessions ? SESSION_LATENCY_US : 0;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetEncoderSessions(struct nvml_device *device, uint32_t *count,
                                                struct encoder_session *out) {
    struct ask q;
    struct shm_procs p;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetEncoderSessions, device, CAN(CODEC), count);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = *count;
    *count = encoders_of(&q, &p);
    if (!out) return NVML_SUCCESS; /* only the number was asked for */
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++)
        out[i] = (struct encoder_session){
            i + 1, p.proc[i].pid, CODEC_H264, SESSION_WIDTH, SESSION_HEIGHT, SESSION_FPS, SESSION_LATENCY_US,
        };
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetEncoderCapacity(struct nvml_device *device, uint32_t codec, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetEncoderCapacity, device, CAN(CODEC), ret);
    if (r != NVML_SUCCESS) return r;
    if (codec > CODEC_AV1) return NVML_ERROR_INVALID_ARGUMENT;
    bool has_av1 = q.card->architecture == NVML_ARCH_ADA || q.card->architecture >= NVML_ARCH_BLACKWELL;
    if (codec == CODEC_AV1 && !has_av1) return NVML_ERROR_NOT_SUPPORTED;
    *ret = q.s.util_enc > 100 ? 0 : 100 - q.s.util_enc;
    return NVML_SUCCESS;
}

struct capture_stats {
    uint32_t sessions, fps, latency_us;
};
EXPORT nvml_return nvmlDeviceGetFBCStats(struct nvml_device *device, struct capture_stats *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetFBCStats, device, CAN(CODEC), ret);
    if (r == NVML_SUCCESS) *ret = (struct capture_stats){0};
    return r;
}

EXPORT nvml_return nvmlDeviceGetFBCSessions(struct nvml_device *device, uint32_t *count, void *out) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetFBCSessions, device, CAN(CODEC), count);
    if (r == NVML_SUCCESS) *count = 0;
    return r;
}
