/* NVML inside gpu/: the functions that are used, each by its own dlsym, and the structs of this back end. A function
 * that the library does not have is NULL, and what needs it is a missing feature. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gpu/backend.h"
#include "gpu/nvml_abi.h"

typedef struct nvml_device *nvml_handle;

enum { NVML_LIST_COMPUTE, NVML_LIST_GRAPHICS, NVML_LIST_MPS, NVML_LISTS };

/* FUNCTION(member, symbol, arguments). Symbols carry their suffix: the plain names are older interfaces. */
#define NVML_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(init, "nvmlInit_v2", (void))                                                                              \
    FUNCTION(init_v1, "nvmlInit", (void))                                                                              \
    FUNCTION(shutdown, "nvmlShutdown", (void))                                                                         \
    FUNCTION(driver_version, "nvmlSystemGetDriverVersion", (char *, unsigned))                                         \
    FUNCTION(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                             \
    FUNCTION(count_v1, "nvmlDeviceGetCount", (unsigned *))                                                             \
    FUNCTION(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvml_handle *))                                     \
    FUNCTION(by_index_v1, "nvmlDeviceGetHandleByIndex", (unsigned, nvml_handle *))                                     \
    FUNCTION(uuid, "nvmlDeviceGetUUID", (nvml_handle, char *, unsigned))                                               \
    FUNCTION(name, "nvmlDeviceGetName", (nvml_handle, char *, unsigned))                                               \
    FUNCTION(serial, "nvmlDeviceGetSerial", (nvml_handle, char *, unsigned))                                           \
    FUNCTION(vbios, "nvmlDeviceGetVbiosVersion", (nvml_handle, char *, unsigned))                                      \
    FUNCTION(board_part, "nvmlDeviceGetBoardPartNumber", (nvml_handle, char *, unsigned))                              \
    FUNCTION(inforom, "nvmlDeviceGetInforomImageVersion", (nvml_handle, char *, unsigned))                             \
    FUNCTION(pci, "nvmlDeviceGetPciInfo_v3", (nvml_handle, struct nvml_pci_info *))                                    \
    FUNCTION(pci_v2, "nvmlDeviceGetPciInfo_v2", (nvml_handle, struct nvml_pci_info *))                                 \
    FUNCTION(pci_v1, "nvmlDeviceGetPciInfo", (nvml_handle, struct nvml_pci_info *))                                    \
    FUNCTION(minor, "nvmlDeviceGetMinorNumber", (nvml_handle, unsigned *))                                             \
    FUNCTION(architecture, "nvmlDeviceGetArchitecture", (nvml_handle, unsigned *))                                     \
    FUNCTION(cores, "nvmlDeviceGetNumGpuCores", (nvml_handle, unsigned *))                                             \
    FUNCTION(bus_width, "nvmlDeviceGetMemoryBusWidth", (nvml_handle, unsigned *))                                      \
    FUNCTION(pcie_gen_max, "nvmlDeviceGetMaxPcieLinkGeneration", (nvml_handle, unsigned *))                            \
    FUNCTION(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", (nvml_handle, unsigned *))                               \
    FUNCTION(pcie_gen, "nvmlDeviceGetCurrPcieLinkGeneration", (nvml_handle, unsigned *))                               \
    FUNCTION(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", (nvml_handle, unsigned *))                                  \
    FUNCTION(persistence, "nvmlDeviceGetPersistenceMode", (nvml_handle, unsigned *))                                   \
    FUNCTION(ecc_mode, "nvmlDeviceGetEccMode", (nvml_handle, unsigned *, unsigned *))                                  \
    FUNCTION(threshold, "nvmlDeviceGetTemperatureThreshold", (nvml_handle, unsigned, unsigned *))                      \
    FUNCTION(limit_range, "nvmlDeviceGetPowerManagementLimitConstraints", (nvml_handle, unsigned *, unsigned *))       \
    FUNCTION(limit_default, "nvmlDeviceGetPowerManagementDefaultLimit", (nvml_handle, unsigned *))                     \
    FUNCTION(limit, "nvmlDeviceGetPowerManagementLimit", (nvml_handle, unsigned *))                                    \
    FUNCTION(limit_enforced, "nvmlDeviceGetEnforcedPowerLimit", (nvml_handle, unsigned *))                             \
    FUNCTION(power, "nvmlDeviceGetPowerUsage", (nvml_handle, unsigned *))                                              \
    FUNCTION(energy, "nvmlDeviceGetTotalEnergyConsumption", (nvml_handle, unsigned long long *))                       \
    FUNCTION(temperature_v, "nvmlDeviceGetTemperatureV", (nvml_handle, struct nvml_temperature *))                     \
    FUNCTION(temperature, "nvmlDeviceGetTemperature", (nvml_handle, unsigned, unsigned *))                             \
    FUNCTION(margin, "nvmlDeviceGetMarginTemperature", (nvml_handle, struct nvml_margin_temperature *))                \
    FUNCTION(utilization, "nvmlDeviceGetUtilizationRates", (nvml_handle, struct nvml_utilization *))                   \
    FUNCTION(encoder, "nvmlDeviceGetEncoderUtilization", (nvml_handle, unsigned *, unsigned *))                        \
    FUNCTION(decoder, "nvmlDeviceGetDecoderUtilization", (nvml_handle, unsigned *, unsigned *))                        \
    FUNCTION(jpeg, "nvmlDeviceGetJpgUtilization", (nvml_handle, unsigned *, unsigned *))                               \
    FUNCTION(ofa, "nvmlDeviceGetOfaUtilization", (nvml_handle, unsigned *, unsigned *))                                \
    FUNCTION(memory_v2, "nvmlDeviceGetMemoryInfo_v2", (nvml_handle, struct nvml_memory_v2 *))                          \
    FUNCTION(memory, "nvmlDeviceGetMemoryInfo", (nvml_handle, struct nvml_memory *))                                   \
    FUNCTION(bar1, "nvmlDeviceGetBAR1MemoryInfo", (nvml_handle, struct nvml_bar1 *))                                   \
    FUNCTION(clock, "nvmlDeviceGetClockInfo", (nvml_handle, unsigned, unsigned *))                                     \
    FUNCTION(clock_max, "nvmlDeviceGetMaxClockInfo", (nvml_handle, unsigned, unsigned *))                              \
    FUNCTION(memory_clocks, "nvmlDeviceGetSupportedMemoryClocks", (nvml_handle, unsigned *, unsigned *))               \
    FUNCTION(graphics_clocks, "nvmlDeviceGetSupportedGraphicsClocks", (nvml_handle, unsigned, unsigned *, unsigned *)) \
    FUNCTION(pstate, "nvmlDeviceGetPerformanceState", (nvml_handle, int *))                                            \
    FUNCTION(reasons, "nvmlDeviceGetCurrentClocksEventReasons", (nvml_handle, unsigned long long *))                   \
    FUNCTION(reasons_old, "nvmlDeviceGetCurrentClocksThrottleReasons", (nvml_handle, unsigned long long *))            \
    FUNCTION(violation, "nvmlDeviceGetViolationStatus", (nvml_handle, unsigned, struct nvml_violation *))              \
    FUNCTION(fan_count, "nvmlDeviceGetNumFans", (nvml_handle, unsigned *))                                             \
    FUNCTION(fan_speed, "nvmlDeviceGetFanSpeed", (nvml_handle, unsigned *))                                            \
    FUNCTION(fan_speed_v2, "nvmlDeviceGetFanSpeed_v2", (nvml_handle, unsigned, unsigned *))                            \
    FUNCTION(fan_rpm, "nvmlDeviceGetFanSpeedRPM", (nvml_handle, struct nvml_fan_speed *))                              \
    FUNCTION(pcie_throughput, "nvmlDeviceGetPcieThroughput", (nvml_handle, unsigned, unsigned *))                      \
    FUNCTION(pcie_replays, "nvmlDeviceGetPcieReplayCounter", (nvml_handle, unsigned *))                                \
    FUNCTION(nvlink_state, "nvmlDeviceGetNvLinkState", (nvml_handle, unsigned, unsigned *))                            \
    FUNCTION(ecc_total, "nvmlDeviceGetTotalEccErrors", (nvml_handle, unsigned, unsigned, unsigned long long *))        \
    FUNCTION(remapped, "nvmlDeviceGetRemappedRows", (nvml_handle, unsigned *, unsigned *, unsigned *, unsigned *))     \
    FUNCTION(fields, "nvmlDeviceGetFieldValues", (nvml_handle, int, struct nvml_field_value *))                        \
    FUNCTION(compute, "nvmlDeviceGetComputeRunningProcesses_v3", (nvml_handle, unsigned *, void *))                    \
    FUNCTION(compute_v2, "nvmlDeviceGetComputeRunningProcesses_v2", (nvml_handle, unsigned *, void *))                 \
    FUNCTION(compute_v1, "nvmlDeviceGetComputeRunningProcesses", (nvml_handle, unsigned *, void *))                    \
    FUNCTION(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", (nvml_handle, unsigned *, void *))                  \
    FUNCTION(graphics_v2, "nvmlDeviceGetGraphicsRunningProcesses_v2", (nvml_handle, unsigned *, void *))               \
    FUNCTION(graphics_v1, "nvmlDeviceGetGraphicsRunningProcesses", (nvml_handle, unsigned *, void *))                  \
    FUNCTION(mps, "nvmlDeviceGetMPSComputeRunningProcesses_v3", (nvml_handle, unsigned *, void *))                     \
    FUNCTION(mps_v2, "nvmlDeviceGetMPSComputeRunningProcesses_v2", (nvml_handle, unsigned *, void *))                  \
    FUNCTION(mps_v1, "nvmlDeviceGetMPSComputeRunningProcesses", (nvml_handle, unsigned *, void *))                     \
    FUNCTION(detail_list, "nvmlDeviceGetRunningProcessDetailList", (nvml_handle, void *))                              \
    FUNCTION(conf_compute, "nvmlDeviceGetConfComputeMemSizeInfo", (nvml_handle, void *))                               \
    FUNCTION(process_share, "nvmlDeviceGetProcessUtilization",                                                         \
             (nvml_handle, struct nvml_process_utilization *, unsigned *, unsigned long long))                         \
    FUNCTION(mig_mode, "nvmlDeviceGetMigMode", (nvml_handle, unsigned *, unsigned *))                                  \
    FUNCTION(mig_max, "nvmlDeviceGetMaxMigDeviceCount", (nvml_handle, unsigned *))                                     \
    FUNCTION(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", (nvml_handle, unsigned, nvml_handle *))              \
    FUNCTION(mig_gi, "nvmlDeviceGetGpuInstanceId", (nvml_handle, unsigned *))                                          \
    FUNCTION(mig_ci, "nvmlDeviceGetComputeInstanceId", (nvml_handle, unsigned *))                                      \
    FUNCTION(event_types, "nvmlDeviceGetSupportedEventTypes", (nvml_handle, unsigned long long *))                     \
    FUNCTION(event_set, "nvmlEventSetCreate", (struct nvml_event_set **))                                              \
    FUNCTION(event_free, "nvmlEventSetFree", (struct nvml_event_set *))                                                \
    FUNCTION(event_register, "nvmlDeviceRegisterEvents", (nvml_handle, unsigned long long, struct nvml_event_set *))   \
    FUNCTION(event_wait, "nvmlEventSetWait_v2", (struct nvml_event_set *, struct nvml_event *, unsigned))              \
    FUNCTION(event_wait_v1, "nvmlEventSetWait", (struct nvml_event_set *, struct nvml_event *, unsigned))              \
    FUNCTION(gpm_alloc, "nvmlGpmSampleAlloc", (struct nvml_gpm_sample **))                                             \
    FUNCTION(gpm_free, "nvmlGpmSampleFree", (struct nvml_gpm_sample *))                                                \
    FUNCTION(gpm_get, "nvmlGpmSampleGet", (nvml_handle, struct nvml_gpm_sample *))                                     \
    FUNCTION(gpm_mig_get, "nvmlGpmMigSampleGet", (nvml_handle, unsigned, struct nvml_gpm_sample *))                    \
    FUNCTION(gpm_metrics, "nvmlGpmMetricsGet", (struct nvml_gpm_metrics *))                                            \
    FUNCTION(gpm_support, "nvmlGpmQueryDeviceSupport", (nvml_handle, struct nvml_gpm_support *))                       \
    FUNCTION(set_limit, "nvmlDeviceSetPowerManagementLimit", (nvml_handle, unsigned))                                  \
    FUNCTION(lock_clocks, "nvmlDeviceSetGpuLockedClocks", (nvml_handle, unsigned, unsigned))                           \
    FUNCTION(unlock_clocks, "nvmlDeviceResetGpuLockedClocks", (nvml_handle))                                           \
    FUNCTION(set_app_clocks, "nvmlDeviceSetApplicationsClocks", (nvml_handle, unsigned, unsigned))                     \
    FUNCTION(reset_app_clocks, "nvmlDeviceResetApplicationsClocks", (nvml_handle))                                     \
    FUNCTION(app_clock_default, "nvmlDeviceGetDefaultApplicationsClock", (nvml_handle, unsigned, unsigned *))          \
    FUNCTION(app_clock, "nvmlDeviceGetApplicationsClock", (nvml_handle, unsigned, unsigned *))

struct nvml {
    struct gpu_driver driver; /* first: this is what the interface hands around */
    void *library;
#define FUNCTION(member, symbol, arguments) nvml_return(*member) arguments;
    NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
    struct nvml_list_call {
        nvml_return (*get)(nvml_handle, unsigned *, void *);
        unsigned stride; /* bytes of one entry */
    } list[NVML_LISTS];  /* what is used of the process lists above */
};

#define NVML_FIELDS_MAX 40 /* rows of nvml_field.c's table: a GPU keeps one bit each */

/* Rows that are made of several calls remember which of them a GPU does not have: failing calls cost, too. */
enum nvml_part {
    PART_TEMPERATURE_V,
    PART_MEMORY_V2,
    PART_ENCODER,
    PART_DECODER,
    PART_JPEG,
    PART_OFA,
    PART_CLOCK,
    PART_ECC = PART_CLOCK + NVML_CLOCK_TYPES,
    PART_PCIE_GEN = PART_ECC + 4,
    PART_PCIE_WIDTH,
    PART_FAN_RPM,
    PART_LIST,
    PART_COUNT = PART_LIST + NVML_LISTS
};
_Static_assert(PART_COUNT <= 64, "one bit a part");

/* Bits that threads with different calls under way learn at once. */
struct nvml_known {
    _Atomic uint64_t had, lacks;
};

/* The entries of one process list, as the driver wrote them. */
struct nvml_list {
    char *entry;
    unsigned count, room, stride;
    unsigned skipped;
    int64_t cost_ns;
};

struct nvml_share {
    uint32_t pid;
    uint16_t sm, memory, encoder, decoder; /* as in struct ring_process */
    uint64_t at_us;
};

struct nvml_gpu {
    struct gpu gpu; /* first */
    const struct nvml *nv;
    nvml_handle handle;
    struct nvml_gpu *parent; /* a MIG instance's GPU */
    int open_error;          /* the GPU was lost while its inventory was read */
    bool is_integrated;      /* has no memory of its own */
    unsigned fans;
    struct nvml_known fields, parts;
    struct nvml_list list[NVML_LISTS];

    /* GPM: the sample before, kept so that one reading a round is enough */
    struct nvml_gpm_sample *gpm_before, *gpm_now;
    int64_t gpm_before_ns;
    _Atomic int gpm_pcie; /* enum nvml_gpm_pcie */
    bool pcie_is_asked;   /* by GetPcieThroughput, because GPM does not tell */

    /* Shares of processes: written by who reads them, used by who reads the list */
    pthread_mutex_t shares_lock;
    unsigned long long shares_seen_us;
    unsigned share_count;
    struct nvml_share share[RING_PROCESSES_MAX];
};

/* Whether GPM tells the PCIe traffic: not known while it has not answered. */
enum nvml_gpm_pcie { GPM_PCIE_UNKNOWN, GPM_PCIE_TOLD, GPM_PCIE_NOT_TOLD };

static inline struct nvml_gpu *nvml_of(struct gpu *g) { return (struct nvml_gpu *)(void *)g; }

/* A code of NVML's as the device interface says it, and in words. */
int nvml_errno(nvml_return code);
const char *nvml_words(nvml_return code);

/* A negative result for a function that the library does not have. */
#define NVML_CALL(function, ...) ((function) ? nvml_errno((function)(__VA_ARGS__)) : -ENOTSUP)

/* The same for a part of a row: what a GPU does not have is not asked for again. */
#define NVML_PART(g, part, function, ...)                                                                              \
    (nvml_lacks(&(g)->parts, (part)) ? -ENOTSUP : nvml_learn(&(g)->parts, (part), NVML_CALL(function, __VA_ARGS__)))
bool nvml_lacks(const struct nvml_known *k, unsigned bit);
/* Returns r. What has worked once is not missing, whatever it says later. */
int nvml_learn(struct nvml_known *k, unsigned bit, int r);

/* What several calls say together: that the GPU is gone outweighs all, a figure outweighs a failure, a failure that may
 * pass outweighs what the GPU does not have. */
int nvml_join(int a, int b);

void nvml_inventory_read(struct nvml_gpu *g, unsigned index);
int nvml_instances_open(struct nvml_gpu *g, struct error *e);
int nvml_is_recut(struct gpu *gpu);

/* The rows of nvml_read.c. */
unsigned nvml_calls(void);
const struct gpu_call *nvml_call(unsigned call);
int nvml_read(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p);
const char *nvml_why_not(const struct gpu *g, unsigned call);

/* Calls that live in files of their own. */
int nvml_processes_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p);
int nvml_shares_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p);
int nvml_gpm_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p);
void nvml_gpm_done(struct nvml_gpu *g);
void nvml_lists_done(struct nvml_gpu *g);

/* GPUs that share the machine's memory (nvml_integrated.c). */
bool nvml_is_integrated(const char *name);
int nvml_system_memory_read(struct sample *s);

/* Reads the field rows of one group (nvml_field.c). */
enum nvml_field_group { FIELDS_FAST, FIELDS_HELD, FIELDS_NVLINK, FIELDS_RETIRED, FIELDS_RECOVERY };
int nvml_fields_read(struct nvml_gpu *g, enum nvml_field_group group, struct sample *s);
/* One signed field, for the inventory: 0 or a negative errno. */
int nvml_field_int(const struct nvml_gpu *g, unsigned field, int64_t *ret);

int nvml_events_open(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret,
                     struct error *e);
void nvml_events_close(struct gpu_events *ev);
int nvml_events_wait(struct gpu_events *ev, int timeout_ms, struct gpu_xid *ret);

/* 77094 mW are 77.094 W: a quotient is rounded once, a product with 0.001 twice. */
static inline double nvml_steps(double v, double scale) {
    return scale < 1 ? v / __builtin_nearbyint(1 / scale) : v * scale;
}
