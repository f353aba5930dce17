/* Calls that change a card. They go to the simulator over its socket, which knows the caller by its credentials
   and checks right, ability and range as the driver does; nothing is decided here but what NVML itself refuses. */
#include "sim/nvml_lib.h"

static nvml_return set(enum call call, struct nvml_device *d, enum wire_setting setting, int64_t a, int64_t b) {
    struct ask q;
    nvml_return r = ask_device(&q, call, d, 0, d);
    if (r != NVML_SUCCESS) return r;
    const struct wire_request request = {
        .verb = VERB_SET,
        .gpu = q.card->index,
        .set = {.setting = setting, .value = {a, b}},
    };
    return session_ask(&request);
}

#define SET0(call, setting)                                                                                            \
    EXPORT nvml_return call(struct nvml_device *device) { return set(CALL_##call, device, setting, 0, 0); }
#define SET1(call, setting)                                                                                            \
    EXPORT nvml_return call(struct nvml_device *device, uint32_t value) {                                              \
        return set(CALL_##call, device, setting, value, 0);                                                            \
    }
#define SET2(call, setting)                                                                                            \
    EXPORT nvml_return call(struct nvml_device *device, uint32_t a, uint32_t b) {                                      \
        return set(CALL_##call, device, setting, a, b);                                                                \
    }

SET1(nvmlDeviceSetPowerManagementLimit, SET_POWER_LIMIT)
SET2(nvmlDeviceSetGpuLockedClocks, SET_LOCKED_CLOCKS)
SET0(nvmlDeviceResetGpuLockedClocks, SET_LOCKED_CLOCKS_RESET)
SET2(nvmlDeviceSetMemoryLockedClocks, SET_MEM_LOCKED_CLOCKS)
SET0(nvmlDeviceResetMemoryLockedClocks, SET_MEM_LOCKED_CLOCKS_RESET)
SET2(nvmlDeviceSetApplicationsClocks, SET_APP_CLOCKS)
SET0(nvmlDeviceResetApplicationsClocks, SET_APP_CLOCKS_RESET)
SET2(nvmlDeviceSetFanSpeed_v2, SET_FAN)
SET1(nvmlDeviceSetDefaultFanSpeed_v2, SET_FAN_DEFAULT)
SET2(nvmlDeviceSetFanControlPolicy, SET_FAN_POLICY)
SET1(nvmlDeviceSetPersistenceMode, SET_PERSISTENCE)
SET1(nvmlDeviceSetComputeMode, SET_COMPUTE_MODE)
SET1(nvmlDeviceSetEccMode, SET_ECC)
SET1(nvmlDeviceClearEccErrorCounts, SET_ECC_CLEAR)

EXPORT nvml_return nvmlDeviceSetPowerManagementLimit_v2(struct nvml_device *device,
                                                        const struct nvml_power_value *value) {
    const struct shm_root *root;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!value) return NVML_ERROR_INVALID_ARGUMENT;
    if (value->version != NVML_POWER_VALUE_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (value->scope > NVML_POWER_SCOPE_GPU_BASE) return NVML_ERROR_INVALID_ARGUMENT;
    if (value->scope != NVML_POWER_SCOPE_GPU) return NVML_ERROR_NOT_SUPPORTED; /* no module, no separate memory limit */
    return set(CALL_nvmlDeviceSetPowerManagementLimit_v2, device, SET_POWER_LIMIT, value->milliwatts, 0);
}

EXPORT nvml_return nvmlDeviceSetTemperatureThreshold(struct nvml_device *device, uint32_t threshold,
                                                     const int32_t *celsius) {
    const struct shm_root *root;
    nvml_return r = session_check(&root);
    if (r != NVML_SUCCESS) return r;
    if (!celsius || threshold >= NVML_THRESHOLD_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    if (threshold != NVML_THRESHOLD_ACOUSTIC_CURR) return NVML_ERROR_NOT_SUPPORTED; /* the others are the board's own */
    return set(CALL_nvmlDeviceSetTemperatureThreshold, device, SET_ACOUSTIC, *celsius, 0);
}

/* Who may set application clocks: a matter of cards before Volta. Later ones have the other restriction only, on an
   automatic boost that no card has any more, and it is never on. */
enum { API_APP_CLOCKS, API_AUTO_BOOST };

static nvml_return check_restriction(const struct ask *q, uint32_t api) {
    if (api > API_AUTO_BOOST) return NVML_ERROR_INVALID_ARGUMENT;
    return api == API_APP_CLOCKS && q->card->architecture >= NVML_ARCH_VOLTA ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetAPIRestriction(struct nvml_device *device, uint32_t api, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetAPIRestriction, device, CAN(APP_CLOCKS), ret);
    if (r == NVML_SUCCESS) r = check_restriction(&q, api);
    if (r == NVML_SUCCESS) *ret = api == API_APP_CLOCKS ? q.s.app_clocks_restricted : NVML_DISABLED;
    return r;
}

EXPORT nvml_return nvmlDeviceSetAPIRestriction(struct nvml_device *device, uint32_t api, uint32_t is_restricted) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetAPIRestriction, device, CAN(APP_CLOCKS), device);
    if (r == NVML_SUCCESS) r = check_restriction(&q, api);
    if (r != NVML_SUCCESS) return r;
    return set(CALL_nvmlDeviceSetAPIRestriction, device, SET_API_RESTRICTION, api, is_restricted);
}
