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

enum { TARGET_GPU = 1, TARGET_MEMORY = 2, TARGET_ALL = 15, CONTROLLER_INTERNAL = 1, SENSORS_MAX = 3 };
struct thermal_settings {
    uint32_t count;
    struct {
        int32_t controller, min_c, max_c, now_c, target;
    } sensor[SENSORS_MAX];
};
NVML_LAYOUT(struct thermal_settings, 64);

static void add_sensor(struct thermal_settings *t, int32_t target, int32_t max_c, int32_t now_c) {
    t->sensor[t->count].controller = CONTROLLER_INTERNAL;
    t->sensor[t->count].min_c = 0;
    t->sensor[t->count].max_c = max_c;
    t->sensor[t->count].now_c = now_c;
    t->sensor[t->count++].target = target;
}

EXPORT nvml_return nvmlDeviceGetThermalSettings(struct nvml_device *device, uint32_t index,
                                                struct thermal_settings *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetThermalSettings, device, CAN(TEMP), ret);
    if (r != NVML_SUCCESS) return r;
    struct thermal_settings all = {0}, one = {0};
    add_sensor(&all, TARGET_GPU, q.card->shutdown_c, q.s.temp_c);
    if (ask_can(&q, ABILITY_MEM_TEMP)) add_sensor(&all, TARGET_MEMORY, q.card->mem_max_c, q.s.mem_temp_c);
    if (index == TARGET_ALL) {
        *ret = all;
        return NVML_SUCCESS;
    }
    if (index >= all.count) return NVML_ERROR_INVALID_ARGUMENT;
    one.count = 1;
    one.sensor[0] = all.sensor[index];
    *ret = one;
    return NVML_SUCCESS;
}

/* Fans: a card without any is not asked about the first. */
static nvml_return ask_fan(struct ask *q, enum call call, struct nvml_device *d, uint32_t fan, const void *out) {
    nvml_return r = ask_device(q, call, d, CAN(FAN), out);
    if (r == NVML_SUCCESS && fan >= q->card->fan_count) return NVML_ERROR_INVALID_ARGUMENT;
    return r;
}

ANSWER(nvmlDeviceGetNumFans, CAN(FAN), uint32_t, q.card->fan_count)
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
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetMinMaxFanSpeed, device, CAN(FAN), max ? min : NULL);
    if (r != NVML_SUCCESS) return r;
    *min = q.card->fan_min_pct;
    *max = q.card->fan_max_pct;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetFanSpeedRPM(struct nvml_device *device, struct nvml_fan_speed *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetFanSpeedRPM, device, CAN(FAN), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_FAN_SPEED_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (ret->fan >= q.card->fan_count) return NVML_ERROR_INVALID_ARGUMENT;
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
