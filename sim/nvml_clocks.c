/* Clocks: now, at most, which ones there are, why they are not higher; and performance states. */
#include <string.h>

#include "sim/nvml_lib.h"

static nvml_return clock_now(const struct ask *q, uint32_t type, uint32_t *ret) {
    const uint32_t mhz[NVML_CLOCK_TYPES] = {q->s.gr_mhz, q->s.sm_mhz, q->s.mem_mhz, q->s.video_mhz};
    if (type >= NVML_CLOCK_TYPES) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = mhz[type];
    return NVML_SUCCESS;
}

static nvml_return clock_max(const struct ask *q, uint32_t type, uint32_t *ret) {
    const struct shm_card *c = q->card;
    const uint32_t mhz[NVML_CLOCK_TYPES] = {c->gr_max_mhz, c->gr_max_mhz, c->mem_max_mhz, c->video_max_mhz};
    if (type >= NVML_CLOCK_TYPES) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = mhz[type];
    return NVML_SUCCESS;
}

/* Boost is of the graphics clock, which SM follows. */
static nvml_return clock_boost(const struct ask *q, uint32_t type, uint32_t *ret) {
    if (type == NVML_CLOCK_MEM || type == NVML_CLOCK_VIDEO) return NVML_ERROR_NOT_SUPPORTED;
    return clock_max(q, type, ret);
}

/* Application clocks exist for graphics (which SM follows) and memory. */
static nvml_return clock_app(const struct ask *q, uint32_t type, uint32_t graphics, uint32_t memory, uint32_t *ret) {
    if (type >= NVML_CLOCK_TYPES) return NVML_ERROR_INVALID_ARGUMENT;
    if (!ask_can(q, ABILITY_APP_CLOCKS) || type == NVML_CLOCK_VIDEO) return NVML_ERROR_NOT_SUPPORTED;
    *ret = type == NVML_CLOCK_MEM ? memory : graphics;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t type, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetClockInfo, device, CAN(CLOCKS), ret);
    if (r == NVML_SUCCESS && type >= NVML_CLOCK_TYPES) return NVML_ERROR_NOT_SUPPORTED; /* and not INVALID_ARGUMENT */
    return r == NVML_SUCCESS ? clock_now(&q, type, ret) : r;
}

EXPORT nvml_return nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t type, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMaxClockInfo, device, CAN(CLOCKS), ret);
    return r == NVML_SUCCESS ? clock_max(&q, type, ret) : r;
}

EXPORT nvml_return nvmlDeviceGetMaxCustomerBoostClock(struct nvml_device *device, uint32_t type, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMaxCustomerBoostClock, device, CAN(SUPPORTED_CLOCKS), ret);
    return r == NVML_SUCCESS ? clock_boost(&q, type, ret) : r;
}

EXPORT nvml_return nvmlDeviceGetApplicationsClock(struct nvml_device *device, uint32_t type, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetApplicationsClock, device, CAN(APP_CLOCKS), ret);
    return r == NVML_SUCCESS ? clock_app(&q, type, q.s.app_gr_mhz, q.s.app_mem_mhz, ret) : r;
}

EXPORT nvml_return nvmlDeviceGetDefaultApplicationsClock(struct nvml_device *device, uint32_t type, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetDefaultApplicationsClock, device, CAN(APP_CLOCKS), ret);
    return r == NVML_SUCCESS ? clock_app(&q, type, q.card->app_gr_default_mhz, q.card->app_mem_default_mhz, ret) : r;
}

EXPORT nvml_return nvmlDeviceGetClock(struct nvml_device *device, uint32_t type, uint32_t id, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetClock, device, CAN(CLOCKS), ret);
    if (r != NVML_SUCCESS) return r;
    switch (id) {
    case NVML_CLOCK_ID_CURRENT: return clock_now(&q, type, ret);
    case NVML_CLOCK_ID_APP_TARGET: return clock_app(&q, type, q.s.app_gr_mhz, q.s.app_mem_mhz, ret);
    case NVML_CLOCK_ID_APP_DEFAULT:
        return clock_app(&q, type, q.card->app_gr_default_mhz, q.card->app_mem_default_mhz, ret);
    case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
        return ask_can(&q, ABILITY_SUPPORTED_CLOCKS) ? clock_boost(&q, type, ret) : NVML_ERROR_NOT_SUPPORTED;
    default: return NVML_ERROR_INVALID_ARGUMENT;
    }
}

EXPORT nvml_return nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, uint32_t *count, uint32_t *mhz) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetSupportedMemoryClocks, device, CAN(SUPPORTED_CLOCKS), count);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = mhz ? *count : 0;
    *count = q.card->mem_clock_count;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++) mhz[i] = q.card->clocks[i].mem_mhz;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, uint32_t mem_mhz, uint32_t *count,
                                                        uint32_t *mhz) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetSupportedGraphicsClocks, device, CAN(SUPPORTED_CLOCKS), count);
    if (r != NVML_SUCCESS) return r;
    uint32_t room = mhz ? *count : 0;
    for (uint32_t i = 0; i < q.card->mem_clock_count; i++) {
        const struct shm_clocks *c = &q.card->clocks[i];
        if (c->mem_mhz != mem_mhz) continue;
        *count = c->count;
        if (room < c->count) return NVML_ERROR_INSUFFICIENT_SIZE;
        memcpy(mhz, c->gr_mhz, c->count * sizeof *mhz);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

ANSWER(nvmlDeviceGetCurrentClocksEventReasons, CAN(REASONS), uint64_t, q.s.reasons)
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, CAN(REASONS), uint64_t, q.s.reasons)
ANSWER(nvmlDeviceGetSupportedClocksEventReasons, CAN(REASONS), uint64_t, q.card->supported_reasons)
ANSWER(nvmlDeviceGetSupportedClocksThrottleReasons, CAN(REASONS), uint64_t, q.card->supported_reasons)
ANSWER(nvmlDeviceGetPerformanceState, CAN(PSTATE), uint32_t, q.s.pstate)
ANSWER(nvmlDeviceGetAdaptiveClockInfoStatus, CAN(CLOCKS), uint32_t, NVML_ENABLED)

/* One state for each memory clock, slowest first as the driver lists them; the fastest is P0. Clocks close together, as
   on data centre cards, are P0 and P2; P8 is where a card with idle memory clocks rests. */
static uint32_t pstates_of(const struct shm_card *c, uint32_t out[NVML_PSTATE_SLOTS]) {
    static const char *const by_count[SHM_MEM_CLOCKS_MAX + 1] = {"0", "0", "80", "850", "8520", "85320", "853210"};
    uint32_t n = c->mem_clock_count ? c->mem_clock_count : 1;
    bool has_idle_clock = n > 1 && c->clocks[n - 1].mem_mhz * 4 < c->mem_max_mhz;
    const char *states = n == 2 && !has_idle_clock ? "20" : by_count[n];
    for (uint32_t i = 0; i < n; i++) out[i] = (uint32_t)(states[i] - '0');
    return n;
}

EXPORT nvml_return nvmlDeviceGetSupportedPerformanceStates(struct nvml_device *device, uint32_t *states,
                                                           uint32_t size_bytes) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetSupportedPerformanceStates, device, CAN(PSTATE), states);
    if (r != NVML_SUCCESS) return r;
    uint32_t have[NVML_PSTATE_SLOTS];
    uint32_t n = pstates_of(q.card, have), room = size_bytes / sizeof *states;
    if (room == 0) return NVML_ERROR_INVALID_ARGUMENT;
    if (room < n) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < room; i++) states[i] = i < n ? have[i] : NVML_PSTATE_UNKNOWN;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMinMaxClockOfPState(struct nvml_device *device, uint32_t type, uint32_t pstate,
                                                    uint32_t *min, uint32_t *max) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMinMaxClockOfPState, device, CAN(PSTATE) | CAN(SUPPORTED_CLOCKS),
                               max ? min : NULL);
    if (r != NVML_SUCCESS) return r;
    uint32_t have[NVML_PSTATE_SLOTS];
    uint32_t n = pstates_of(q.card, have), i = 0;
    while (i < n && have[i] != pstate) i++;
    if (type >= NVML_CLOCK_TYPES) return NVML_ERROR_INVALID_ARGUMENT;
    if (i == n) return NVML_ERROR_UNKNOWN;
    const struct shm_clocks *c = &q.card->clocks[n - 1 - i]; /* fastest first */
    bool is_memory = type == NVML_CLOCK_MEM;
    *max = is_memory ? c->mem_mhz : type == NVML_CLOCK_VIDEO ? q.card->video_max_mhz : c->gr_mhz[0];
    *min = is_memory ? c->mem_mhz : c->gr_mhz[c->count - 1];
    return NVML_SUCCESS;
}

enum { DOMAIN_GPU, DOMAIN_MEMORY, DOMAIN_VIDEO, DOMAIN_BUS, DOMAINS_MAX = 8 };
struct dynamic_pstates {
    uint32_t flags;
    struct {
        uint32_t is_present, percent, up_at, down_at;
    } domain[DOMAINS_MAX];
};
NVML_LAYOUT(struct dynamic_pstates, 132);

EXPORT nvml_return nvmlDeviceGetDynamicPstatesInfo(struct nvml_device *device, struct dynamic_pstates *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetDynamicPstatesInfo, device, CAN(PSTATE) | CAN(UTIL), ret);
    if (r != NVML_SUCCESS) return r;
    *ret = (struct dynamic_pstates){0};
    const uint32_t video = q.s.util_dec > q.s.util_enc ? q.s.util_dec : q.s.util_enc;
    const uint32_t percent[] = {
        [DOMAIN_GPU] = q.s.util_gpu, [DOMAIN_MEMORY] = q.s.util_mem, [DOMAIN_VIDEO] = video, [DOMAIN_BUS] = 0};
    for (uint32_t i = 0; i <= DOMAIN_BUS; i++) {
        ret->domain[i].is_present = i != DOMAIN_VIDEO || ask_can(&q, ABILITY_CODEC);
        ret->domain[i].percent = percent[i];
    }
    return NVML_SUCCESS;
}

/* Offsets to the clock curve, all at rest. Cards for people who tune have room to move; others have none. */
enum { BRAND_GEFORCE = 5, GPC_OFFSET_MHZ = 1000, MEM_OFFSET_LOW_MHZ = -2000, MEM_OFFSET_HIGH_MHZ = 6000 };

static nvml_return ask_offset(struct ask *q, enum call call, struct nvml_device *d, const void *out) {
    return ask_device(q, call, d, CAN(CLOCKS) | CAN(LOCKED_CLOCKS), out);
}

static void offset_range(const struct ask *q, bool is_memory, int32_t *min, int32_t *max) {
    bool can_tune = q->card->brand == BRAND_GEFORCE;
    *min = !can_tune ? 0 : is_memory ? MEM_OFFSET_LOW_MHZ : -GPC_OFFSET_MHZ;
    *max = !can_tune ? 0 : is_memory ? MEM_OFFSET_HIGH_MHZ : GPC_OFFSET_MHZ;
}

EXPORT nvml_return nvmlDeviceGetGpcClkVfOffset(struct nvml_device *device, int32_t *ret) {
    struct ask q;
    nvml_return r = ask_offset(&q, CALL_nvmlDeviceGetGpcClkVfOffset, device, ret);
    if (r == NVML_SUCCESS) *ret = 0;
    return r;
}
EXPORT nvml_return nvmlDeviceGetMemClkVfOffset(struct nvml_device *device, int32_t *ret) {
    struct ask q;
    nvml_return r = ask_offset(&q, CALL_nvmlDeviceGetMemClkVfOffset, device, ret);
    if (r == NVML_SUCCESS) *ret = 0;
    return r;
}
EXPORT nvml_return nvmlDeviceGetGpcClkMinMaxVfOffset(struct nvml_device *device, int32_t *min, int32_t *max) {
    struct ask q;
    nvml_return r = ask_offset(&q, CALL_nvmlDeviceGetGpcClkMinMaxVfOffset, device, max ? min : NULL);
    if (r == NVML_SUCCESS) offset_range(&q, false, min, max);
    return r;
}
EXPORT nvml_return nvmlDeviceGetMemClkMinMaxVfOffset(struct nvml_device *device, int32_t *min, int32_t *max) {
    struct ask q;
    nvml_return r = ask_offset(&q, CALL_nvmlDeviceGetMemClkMinMaxVfOffset, device, max ? min : NULL);
    if (r == NVML_SUCCESS) offset_range(&q, true, min, max);
    return r;
}

EXPORT nvml_return nvmlDeviceGetClockOffsets(struct nvml_device *device, struct nvml_clock_offset *ret) {
    struct ask q;
    uint32_t have[NVML_PSTATE_SLOTS];
    nvml_return r = ask_offset(&q, CALL_nvmlDeviceGetClockOffsets, device, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_CLOCK_OFFSET_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    uint32_t n = pstates_of(q.card, have), i = 0;
    while (i < n && have[i] != ret->pstate) i++;
    if (i == n || (ret->type != NVML_CLOCK_GRAPHICS && ret->type != NVML_CLOCK_MEM)) return NVML_ERROR_INVALID_ARGUMENT;
    ret->mhz = 0;
    offset_range(&q, ret->type == NVML_CLOCK_MEM, &ret->min_mhz, &ret->max_mhz);
    return NVML_SUCCESS;
}
