/* What a card can be asked, one bit each.
 *
 * A model's abilities are data (models.c), so that the NVML library answers NOT_SUPPORTED exactly where a real card of
 * that kind does. The same bits name the sensors that a fault can take away: a reading exists when its bit is set in
 * shm_card.abilities and clear in shm_state.blind (see shm_can() in shm.h).
 */
#pragma once

#include <stdint.h>

/* id, name for people, what stands behind it */
#define ABILITIES(X)                                                                                                   \
    X(TEMP, "temperature", "core temperature")                                                                         \
    X(MEM_TEMP, "memory-temperature", "memory temperature, field 82")                                                  \
    X(MARGIN, "margin", "margin temperature, T.Limit fields 193-196")                                                  \
    X(THRESHOLDS, "thresholds", "absolute temperature thresholds")                                                     \
    X(POWER, "power", "power draw")                                                                                    \
    X(POWER_FIELDS, "power-fields", "average and instant power, fields 185-192")                                       \
    X(POWER_LIMIT, "power-limit", "reading requested, enforced, default, lowest and highest limit")                    \
    X(POWER_SET, "power-set", "changing the power limit")                                                              \
    X(ENERGY, "energy", "energy counter, fields 83 and 191")                                                           \
    X(UTIL, "utilization", "GPU and memory utilisation")                                                               \
    X(CODEC, "codec", "encoder and decoder utilisation and sessions")                                                  \
    X(JPEG_OFA, "jpeg-ofa", "JPEG and OFA utilisation")                                                                \
    X(SAMPLES, "samples", "nvmlDeviceGetSamples")                                                                      \
    X(MEMORY, "memory", "memory total, free, used, reserved")                                                          \
    X(BAR1, "bar1", "BAR1 memory")                                                                                     \
    X(CLOCKS, "clocks", "current and highest clocks")                                                                  \
    X(SUPPORTED_CLOCKS, "supported-clocks", "lists of memory and graphics clocks")                                     \
    X(LOCKED_CLOCKS, "locked-clocks", "locking the graphics clock")                                                    \
    X(MEM_LOCKED_CLOCKS, "mem-locked-clocks", "locking the memory clock")                                              \
    X(APP_CLOCKS, "app-clocks", "reading and setting application clocks")                                              \
    X(REASONS, "reasons", "clocks event reasons and the supported mask")                                               \
    X(REASON_TIMES, "reason-times", "accumulated time of event reasons, fields 269-271")                               \
    X(VIOLATION, "violation", "nvmlDeviceGetViolationStatus, fields 74-80")                                            \
    X(PSTATE, "pstate", "performance state")                                                                           \
    X(FAN, "fan", "fan speed")                                                                                         \
    X(FAN_SET, "fan-set", "changing fan speed and policy")                                                             \
    X(PROCESSES, "processes", "lists of compute and graphics processes")                                               \
    X(PROCESS_UTIL, "process-util", "utilisation of each process")                                                     \
    X(ECC, "ecc", "ECC mode and counters")                                                                             \
    X(REMAP, "remap", "remapped rows, fields 142-145")                                                                 \
    X(RETIRED_PAGES, "retired-pages", "retired pages (before Ampere)")                                                 \
    X(PCIE, "pcie", "PCIe generation and width")                                                                       \
    X(PCIE_THROUGHPUT, "pcie-throughput", "PCIe throughput over a 20 ms window")                                       \
    X(PCIE_BYTES, "pcie-bytes", "PCIe byte counters, fields 197 and 198")                                              \
    X(PCIE_REPLAY, "pcie-replay", "PCIe replay counter, field 94")                                                     \
    X(NVLINK, "nvlink", "NVLink state, throughput, errors")                                                            \
    X(GPM, "gpm", "GPU performance monitoring (Hopper and later)")                                                     \
    X(MIG, "mig", "MIG mode and devices")                                                                              \
    X(EVENTS, "events", "event sets")                                                                                  \
    X(RECOVERY, "recovery", "recovery action, field 230")                                                              \
    X(PERSISTENCE, "persistence", "persistence mode")                                                                  \
    X(COMPUTE_MODE, "compute-mode", "compute mode")                                                                    \
    X(SERIAL, "serial", "board serial number")                                                                         \
    X(BOARD_PART, "board-part", "board part number")                                                                   \
    X(INFOROM, "inforom", "InfoROM versions")                                                                          \
    X(GSP, "gsp", "GSP firmware mode and version")

enum ability {
#define X(id, name, help) ABILITY_##id,
    ABILITIES(X)
#undef X
        ABILITY_COUNT
};

#define CAN(id) (UINT64_C(1) << ABILITY_##id)

_Static_assert(ABILITY_COUNT <= 64, "abilities are one 64-bit word");

/* The ability called `name`, or -1. */
int ability_by_name(const char *name);
const char *ability_name(enum ability a);
const char *ability_help(enum ability a);
