/* Temperatures, the thresholds that they are measured against, and fans. */
#include "sim/nvml_lib.h"

EXPORT nvml_return nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetTemperature, device, CAN(TEMP), ret);
    if (r != NVML_SUCCESS) return r;
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = (uint32_t)q.s.temp_c;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetTemperatureV, device, CAN(TEMP), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_TEMPERATURE_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (ret->sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    ret->celsius = q.s.temp_c;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetMarginTemperature(struct nvml_device *device, struct nvml_margin_temperature *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMarginTemperature, device, CAN(MARGIN), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_MARGIN_TEMPERATURE_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    ret->celsius = q.s.margin_c;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t threshold, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetTemperatureThreshold, device, CAN(THRESHOLDS), ret);
    if (r != NVML_SUCCESS) return r;
    if (threshold >= NVML_THRESHOLD_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    const struct shm_card *c = q.card;
    bool has_target = c->acoustic_max_c != 0;
    const int32_t celsius[NVML_THRESHOLD_COUNT] = {
        /* 0: this card has no such threshold */
        [NVML_THRESHOLD_SHUTDOWN] = c->shutdown_c,
        [NVML_THRESHOLD_SLOWDOWN] = c->slowdown_c,
        [NVML_THRESHOLD_MEM_MAX] = c->mem_max_c,
        [NVML_THRESHOLD_GPU_MAX] = c->gpu_max_c,
        [NVML_THRESHOLD_ACOUSTIC_MIN] = has_target ? c->acoustic_min_c : 0,
        [NVML_THRESHOLD_ACOUSTIC_CURR] = has_target ? q.s.acoustic_c : 0,
        [NVML_THRESHOLD_ACOUSTIC_MAX] = has_target ? c->acoustic_max_c : 0,
    };
    if (celsius[threshold] == 0) return NVML_ERROR_NOT_SUPPORTED;
    *ret = (uint32_t)celsius[threshold];
    return NVML_SUCCESS;
}

/* One sensor, whichever way it is asked for; its upper end is the scale's, not the card's. */
enum { TARGET_GPU = 1, TARGET_ALL = 15, CONTROLLER_INTERNAL = 1, SENSORS_MAX = 3, SCALE_MAX_C = 127 };
struct thermal_settings {
    uint32_t count;
    struct {
        int32_t controller, min_c, max_c, now_c, target;
    } sensor[SENSORS_MAX];
};
NVML_LAYOUT(struct thermal_settings, 64);

EXPORT nvml_return nvmlDeviceGetThermalSettings(struct nvml_device *device, uint32_t index,
                                                struct thermal_settings *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetThermalSettings, device, CAN(TEMP), ret);
    if (r != NVML_SUCCESS) return r;
    if (index != 0 && index != TARGET_ALL) return NVML_ERROR_INVALID_ARGUMENT;
    *ret = (struct thermal_settings){.count = 1};
    ret->sensor[0].controller = CONTROLLER_INTERNAL;
    ret->sensor[0].max_c = SCALE_MAX_C;
    ret->sensor[0].now_c = q.s.temp_c;
    ret->sensor[0].target = TARGET_GPU;
    return NVML_SUCCESS;
}

/* Fans. A card without any says so, and takes the number of any fan for a bad argument; only the oldest call,
   which names none, is not supported there. */
static nvml_return ask_fan(struct ask *q, enum call call, struct nvml_device *d, uint32_t fan, const void *out) {
    nvml_return r = ask_device(q, call, d, 0, out);
    if (r != NVML_SUCCESS) return r;
    if (fan >= q->card->fan_count) return NVML_ERROR_INVALID_ARGUMENT;
    return ask_can(q, ABILITY_FAN) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

ANSWER(nvmlDeviceGetNumFans, 0, uint32_t, q.card->fan_count)
ANSWER(nvmlDeviceGetFanSpeed, CAN(FAN), uint32_t, q.s.fan[0].pct)

EXPORT nvml_return nvmlDeviceGetFanSpeed_v2(struct nvml_device *device, uint32_t fan, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_fan(&q, CALL_nvmlDeviceGetFanSpeed_v2, device, fan, ret);
    if (r == NVML_SUCCESS) *ret = q.s.fan[fan].pct;
    return r;
}

EXPORT nvml_return nvmlDeviceGetTargetFanSpeed(struct nvml_device *device, uint32_t fan, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_fan(&q, CALL_nvmlDeviceGetTargetFanSpeed, device, fan, ret);
    if (r == NVML_SUCCESS) *ret = q.s.fan[fan].target_pct;
    return r;
}

EXPORT nvml_return nvmlDeviceGetFanControlPolicy_v2(struct nvml_device *device, uint32_t fan, uint32_t *ret) {
    struct ask q;
    nvml_return r = ask_fan(&q, CALL_nvmlDeviceGetFanControlPolicy_v2, device, fan, ret);
    if (r == NVML_SUCCESS) *ret = q.s.fan[fan].manual ? NVML_FAN_POLICY_MANUAL : NVML_FAN_POLICY_AUTOMATIC;
    return r;
}

EXPORT nvml_return nvmlDeviceGetMinMaxFanSpeed(struct nvml_device *device, uint32_t *min, uint32_t *max) {
    struct ask q;
    nvml_return r = ask_fan(&q, CALL_nvmlDeviceGetMinMaxFanSpeed, device, 0, max ? min : NULL);
    if (r != NVML_SUCCESS) return r;
    *min = q.card->fan_min_pct;
    *max = q.card->fan_max_pct;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetFanSpeedRPM(struct nvml_device *device, struct nvml_fan_speed *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetFanSpeedRPM, device, 0, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_FAN_SPEED_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (ret->fan >= q.card->fan_count) return NVML_ERROR_INVALID_ARGUMENT;
    if (!ask_can(&q, ABILITY_FAN)) return NVML_ERROR_NOT_SUPPORTED;
    ret->rpm = q.s.fan[ret->fan].rpm;
    return NVML_SUCCESS;
}

enum { COOLER_VARIABLE = 2, COOLER_FOR_GPU = 2 };
struct cooler {
    uint32_t version, index, signal, target;
};
NVML_LAYOUT(struct cooler, 16);

EXPORT nvml_return nvmlDeviceGetCoolerInfo(struct nvml_device *device, struct cooler *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetCoolerInfo, device, CAN(FAN), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_VERSION(struct cooler, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (ret->index >= q.card->fan_count) return NVML_ERROR_INVALID_ARGUMENT;
    ret->signal = COOLER_VARIABLE;
    ret->target = COOLER_FOR_GPU;
    return NVML_SUCCESS;
}
