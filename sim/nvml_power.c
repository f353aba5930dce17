/* Power, its limits, energy, and how long each policy held the clocks back. */
#include "sim/nvml_lib.h"

ANSWER(nvmlDeviceGetPowerUsage, CAN(POWER), uint32_t,
       q.card->power_usage_is_instant ? q.s.power_inst_mw : q.s.power_avg_mw)
ANSWER(nvmlDeviceGetPowerManagementLimit, CAN(POWER_LIMIT), uint32_t, q.s.limit_mw)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, CAN(POWER_LIMIT), uint32_t, q.card->power_default_mw)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, CAN(POWER_LIMIT), uint32_t, q.s.enforced_mw)
ANSWER(nvmlDeviceGetTotalEnergyConsumption, CAN(ENERGY), uint64_t, q.s.energy_mj)
ANSWER(nvmlDeviceGetPowerManagementMode, CAN(POWER), uint32_t,
       ask_can(&q, ABILITY_POWER_LIMIT) ? NVML_ENABLED : NVML_DISABLED)
ANSWER(nvmlDeviceGetPowerState, CAN(PSTATE), uint32_t, q.s.pstate)
ANSWER(nvmlDeviceGetPowerSource, 0, uint32_t, 0) /* mains */

EXPORT nvml_return nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, uint32_t *min,
                                                                uint32_t *max) {
    struct ask q;
    nvml_return r =
        ask_device(&q, CALL_nvmlDeviceGetPowerManagementLimitConstraints, device, CAN(POWER_LIMIT), max ? min : NULL);
    if (r != NVML_SUCCESS) return r;
    *min = q.card->power_min_mw;
    *max = q.card->power_max_mw;
    return NVML_SUCCESS;
}

uint64_t reason_time_ns(const struct shm_state *s, uint64_t reason) {
    uint64_t sum = 0;
    for (int bit = 0; bit < 16; bit++)
        if (reason >> bit & 1) sum += s->reason_ns[bit];
    return sum;
}

uint64_t policy_time_ns(const struct shm_state *s, uint32_t policy) {
    static const uint64_t slowed =
        NVML_REASON_SW_POWER_CAP | NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL | NVML_REASON_HW_POWER_BRAKE;
    switch (policy) {
    case NVML_POLICY_POWER: return reason_time_ns(s, NVML_REASON_SW_POWER_CAP);
    case NVML_POLICY_THERMAL: return reason_time_ns(s, NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL);
    case NVML_POLICY_SYNC_BOOST: return reason_time_ns(s, NVML_REASON_SYNC_BOOST);
    case NVML_POLICY_BOARD_LIMIT: return reason_time_ns(s, NVML_REASON_HW_POWER_BRAKE);
    case NVML_POLICY_LOW_UTILIZATION: return reason_time_ns(s, NVML_REASON_GPU_IDLE);
    case NVML_POLICY_APP_CLOCKS:
    case NVML_POLICY_BASE_CLOCKS: return reason_time_ns(s, slowed);
    default: return 0; /* reliability voltage: these cards never meet it */
    }
}

EXPORT nvml_return nvmlDeviceGetViolationStatus(struct nvml_device *device, uint32_t policy,
                                                struct nvml_violation *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetViolationStatus, device, CAN(VIOLATION), ret);
    if (r != NVML_SUCCESS) return r;
    bool is_known =
        policy <= NVML_POLICY_RELIABILITY || policy == NVML_POLICY_APP_CLOCKS || policy == NVML_POLICY_BASE_CLOCKS;
    if (!is_known) return NVML_ERROR_INVALID_ARGUMENT;
    ret->reference_us = q.s.at_us;
    ret->violation_ns = policy_time_ns(&q.s, policy);
    return NVML_SUCCESS;
}
