/* The price list. Calls of about the same path in the driver cost the same, so a call that was not measured itself stands
 * with the figure of its nearest kin (an identity that the library caches: 0.3 us; one answered by a call into the
 * kernel module: 6.5 us; one answered by the card's firmware: 150 us and more).
 */
#include "sim/costs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US(x) ((uint32_t)((x)*1000))
#define BUSY(x) US(x), US(x) /* all of it is the caller's own CPU time */

/* clang-format off */
static const struct cost costs[] = {
    {"nvmlInitWithFlags",                               US(11000), US(4000)},
    {"nvmlInit_v2",                                     US(11000), US(4000)},
    {"nvmlShutdown",                                    US(3000), US(1000)},

    {"nvmlDeviceGetTemperature",                        BUSY(6.5)},
    {"nvmlDeviceGetTemperatureV",                       BUSY(6.5)},
    {"nvmlDeviceGetMarginTemperature",                  BUSY(480)},
    {"nvmlDeviceGetThermalSettings",                    BUSY(6.5)},
    {"nvmlDeviceGetPowerUsage",                         BUSY(7.4)},
    {"nvmlDeviceGetUtilizationRates",                   BUSY(6.5)},
    {"nvmlDeviceGetEncoderUtilization",                 BUSY(6.5)},
    {"nvmlDeviceGetDecoderUtilization",                 BUSY(6.5)},
    {"nvmlDeviceGetJpgUtilization",                     BUSY(6.5)},
    {"nvmlDeviceGetOfaUtilization",                     BUSY(6.5)},
    {"nvmlDeviceGetMemoryInfo",                         BUSY(6.6)},
    {"nvmlDeviceGetMemoryInfo_v2",                      BUSY(6.6)},
    {"nvmlDeviceGetBAR1MemoryInfo",                     BUSY(200)},
    {"nvmlDeviceGetClockInfo",                          BUSY(1.2)},
    {"nvmlDeviceGetClock",                              BUSY(1.2)},
    {"nvmlDeviceGetMaxClockInfo",                       BUSY(0.4)},
    {"nvmlDeviceGetCurrentClocksEventReasons",          BUSY(0.9)},
    {"nvmlDeviceGetCurrentClocksThrottleReasons",       BUSY(0.9)},
    {"nvmlDeviceGetPerformanceState",                   BUSY(0.4)},
    {"nvmlDeviceGetEnforcedPowerLimit",                 BUSY(0.3)},
    {"nvmlDeviceGetPowerManagementLimit",               BUSY(450)},
    {"nvmlDeviceGetPowerManagementLimitConstraints",    BUSY(6.5)},
    {"nvmlDeviceGetPowerManagementDefaultLimit",        BUSY(6.5)},
    {"nvmlDeviceGetTotalEnergyConsumption",             BUSY(3900)},

    {"nvmlDeviceGetComputeRunningProcesses",            BUSY(7.4)},
    {"nvmlDeviceGetComputeRunningProcesses_v2",         BUSY(7.4)},
    {"nvmlDeviceGetComputeRunningProcesses_v3",         BUSY(7.4)},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3",      BUSY(7.4)},
    {"nvmlDeviceGetGraphicsRunningProcesses",           BUSY(6.9)},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2",        BUSY(6.9)},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3",        BUSY(6.9)},
    {"nvmlDeviceGetProcessUtilization",                 BUSY(2200)},
    {"nvmlDeviceGetProcessesUtilizationInfo",           BUSY(2200)},
    {"nvmlDeviceGetSamples",                            BUSY(2200)},

    {"nvmlDeviceGetTotalEccErrors",                     BUSY(20)},
    {"nvmlDeviceGetMemoryErrorCounter",                 BUSY(20)},
    {"nvmlDeviceGetRemappedRows",                       BUSY(20)},
    {"nvmlDeviceGetFanSpeed",                           BUSY(169)},
    {"nvmlDeviceGetFanSpeed_v2",                        BUSY(169)},
    {"nvmlDeviceGetFanSpeedRPM",                        BUSY(169)},
    {"nvmlDeviceGetTargetFanSpeed",                     BUSY(169)},
    {"nvmlDeviceGetPcieThroughput",                     US(20700), US(900)},
    {"nvmlDeviceGetPcieReplayCounter",                  BUSY(82)},
    {"nvmlDeviceGetCurrPcieLinkGeneration",             BUSY(15)},
    {"nvmlDeviceGetCurrPcieLinkWidth",                  BUSY(15)},
    {"nvmlDeviceGetNvLinkState",                        BUSY(6.5)},
    {"nvmlDeviceGetNvLinkErrorCounter",                 BUSY(20)},
    {"nvmlDeviceGetTemperatureThreshold",               BUSY(6.5)},
    {"nvmlDeviceGetViolationStatus",                    BUSY(20)},

    {"nvmlGpmSampleGet",                                BUSY(250)},
    {"nvmlGpmMigSampleGet",                             BUSY(250)},
    {"nvmlGpmMetricsGet",                               BUSY(1550)},

    {"nvmlDeviceSetPowerManagementLimit",               BUSY(450)},
    {"nvmlDeviceSetPowerManagementLimit_v2",            BUSY(450)},
    {"nvmlDeviceSetGpuLockedClocks",                    BUSY(450)},
    {"nvmlDeviceResetGpuLockedClocks",                  BUSY(450)},

    {"field 82",                                        BUSY(0.5)},
    {"field 83",                                        BUSY(3900)},
    {"field 191",                                       BUSY(3900)},
    {"field 185",                                       BUSY(0.5)},
    {"field 186",                                       BUSY(0.5)},
    {"field 192",                                       BUSY(450)},
    {"field 197",                                       BUSY(700)},
    {"field 198",                                       BUSY(700)},
    {"field 74",                                        BUSY(700)}, /* and the other times held back, which come with it */
};
/* clang-format on */

const struct cost *cost_of(const char *call) {
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        if (strcmp(costs[i].call, call) == 0) return &costs[i];
    return NULL;
}

const struct cost *cost_of_field(unsigned field) {
    char name[24];
    snprintf(name, sizeof name, "field %u", field);
    return cost_of(name);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Asking for the thread's CPU time is a system call and costs as much as the cheapest rows; up to here the wall clock,
 * which costs nothing to read, says the same. */
enum { SHORT_NS = 50000 };

void cost_pay(const struct cost *c) {
    if (!c) return;
    uint64_t until = now_ns(CLOCK_MONOTONIC) + c->wall_ns;
    if (c->wall_ns <= SHORT_NS) {
        while (now_ns(CLOCK_MONOTONIC) < until) {}
        return;
    }
    uint64_t burnt = now_ns(CLOCK_THREAD_CPUTIME_ID) + c->cpu_ns;
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < burnt) {}

    /* Shorter sleeps end late by their own length: the timer's slack is 50 us. */
    if (now_ns(CLOCK_MONOTONIC) + 100000 > until) return;
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
