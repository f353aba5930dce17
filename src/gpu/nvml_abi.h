/* NVML as two programs here see it: the device layer, which opens the driver's library, and the simulated library,
   which is one. Written from the facts of the binary interface (sizes, offsets, numbers); NVIDIA's header is not
   copied or needed. Every layout is asserted below its declaration, because a wrong offset reads a neighbour's
   field and looks plausible. Names of constants are NVML's where a person would search for them; structs are in
   this project's style. Refuses to declare functions: both sides name them in tables. */
#ifndef GPU_NVML_ABI_H
#define GPU_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/nvml_codes.h"
#include "gpu/nvml_fields.h"

#define NVML_LAYOUT(type, size) _Static_assert(sizeof(type) == (size), #type)
#define NVML_OFFSET(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member)
/* The version word that a versioned struct carries first: its size with the version in the top byte. */
#define NVML_VERSION(type, ver) ((uint32_t)(sizeof(type) | ((uint32_t)(ver) << 24)))

/* Opaque handles. */
struct nvml_device;
struct nvml_unit;
struct nvml_event_set;
struct nvml_gpm_sample;
struct nvml_gpu_instance;
struct nvml_compute_instance;

struct nvml_pci_info {
    char bus_id_legacy[NVML_PCI_BUS_ID_LEGACY_SIZE];
    uint32_t domain, bus, device;
    uint32_t device_id; /* device in the high half, vendor in the low */
    uint32_t subsystem_id;
    char bus_id[NVML_PCI_BUS_ID_SIZE];
};
NVML_LAYOUT(struct nvml_pci_info, 68);
NVML_OFFSET(struct nvml_pci_info, domain, 16);
NVML_OFFSET(struct nvml_pci_info, device_id, 28);
NVML_OFFSET(struct nvml_pci_info, subsystem_id, 32);
NVML_OFFSET(struct nvml_pci_info, bus_id, 36);

struct nvml_utilization {
    uint32_t gpu, memory;
};
NVML_LAYOUT(struct nvml_utilization, 8);

struct nvml_memory {
    uint64_t total, free, used;
}; /* used counts what the driver reserves, too */
NVML_LAYOUT(struct nvml_memory, 24);

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
}; /* used without the reserve */
#define NVML_MEMORY_V2 NVML_VERSION(struct nvml_memory_v2, 2)
NVML_LAYOUT(struct nvml_memory_v2, 40);
NVML_OFFSET(struct nvml_memory_v2, total, 8);
_Static_assert(NVML_MEMORY_V2 == 0x02000028, "memory v2");

struct nvml_bar1 {
    uint64_t total, free, used;
};
NVML_LAYOUT(struct nvml_bar1, 24);

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t used_memory;
};
NVML_LAYOUT(struct nvml_process_v1, 16);
struct nvml_process_v2 {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance, compute_instance;
};
NVML_LAYOUT(struct nvml_process_v2, 24);
NVML_OFFSET(struct nvml_process_v2, gpu_instance, 16);
/* Process detail v1, and what 535.43 to 535.86 wrote under the _v3 names. */
struct nvml_process_detail {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance, compute_instance;
    uint64_t used_protected_memory;
};
NVML_LAYOUT(struct nvml_process_detail, 32);
NVML_OFFSET(struct nvml_process_detail, used_protected_memory, 24);

struct nvml_process_detail_list {
    uint32_t version, mode, count;
    struct nvml_process_detail *processes;
};
#define NVML_PROCESS_DETAIL_LIST_V1 NVML_VERSION(struct nvml_process_detail_list, 1)
NVML_LAYOUT(struct nvml_process_detail_list, 24);
NVML_OFFSET(struct nvml_process_detail_list, processes, 16);
_Static_assert(NVML_PROCESS_DETAIL_LIST_V1 == 0x01000018, "process detail list v1");

struct nvml_process_utilization {
    uint32_t pid;
    uint64_t timestamp_us;
    uint32_t sm, memory, encoder, decoder;
};
NVML_LAYOUT(struct nvml_process_utilization, 32);
NVML_OFFSET(struct nvml_process_utilization, timestamp_us, 8);
NVML_OFFSET(struct nvml_process_utilization, sm, 16);
/* The newer call's row: time comes first, the pid second. */
struct nvml_process_utilization_row {
    uint64_t timestamp_us;
    uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa;
};
NVML_LAYOUT(struct nvml_process_utilization_row, 40);
NVML_OFFSET(struct nvml_process_utilization_row, pid, 8);
NVML_OFFSET(struct nvml_process_utilization_row, ofa, 32);

struct nvml_processes_utilization {
    uint32_t version, count;
    uint64_t last_seen_us;
    struct nvml_process_utilization_row *rows;
};
#define NVML_PROCESSES_UTILIZATION_V1 NVML_VERSION(struct nvml_processes_utilization, 1)
NVML_LAYOUT(struct nvml_processes_utilization, 24);
NVML_OFFSET(struct nvml_processes_utilization, rows, 16);

enum nvml_value_type {
    NVML_VALUE_DOUBLE,
    NVML_VALUE_UINT,
    NVML_VALUE_ULONG,
    NVML_VALUE_UINT64,
    NVML_VALUE_INT64,
    NVML_VALUE_INT,
    NVML_VALUE_USHORT
};
union nvml_value {
    double d;
    int32_t i;
    uint32_t u;
    unsigned long ul;
    uint64_t u64;
    int64_t i64;
    uint16_t us;
};
NVML_LAYOUT(union nvml_value, 8);

struct nvml_field_value {
    uint32_t field, scope;
    int64_t timestamp_us, latency_us;
    uint32_t value_type; /* enum nvml_value_type, valid only when result is success */
    nvml_return result;
    union nvml_value value;
};
NVML_LAYOUT(struct nvml_field_value, 40);
NVML_OFFSET(struct nvml_field_value, timestamp_us, 8);
NVML_OFFSET(struct nvml_field_value, latency_us, 16);
NVML_OFFSET(struct nvml_field_value, value_type, 24);
NVML_OFFSET(struct nvml_field_value, result, 28);
NVML_OFFSET(struct nvml_field_value, value, 32);

struct nvml_sample {
    uint64_t timestamp_us;
    union nvml_value value;
};
NVML_LAYOUT(struct nvml_sample, 16);

struct nvml_event_v1 {
    struct nvml_device *device;
    uint64_t type, data;
}; /* unsuffixed wait */
NVML_LAYOUT(struct nvml_event_v1, 24);
struct nvml_event {
    struct nvml_device *device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};
NVML_LAYOUT(struct nvml_event, 32);
NVML_OFFSET(struct nvml_event, type, 8);
NVML_OFFSET(struct nvml_event, gpu_instance, 24);

struct nvml_power_value {
    uint32_t version;
    uint8_t scope;
    uint32_t milliwatts;
};
#define NVML_POWER_VALUE_V2 NVML_VERSION(struct nvml_power_value, 2)
NVML_LAYOUT(struct nvml_power_value, 12);
NVML_OFFSET(struct nvml_power_value, milliwatts, 8);
_Static_assert(NVML_POWER_VALUE_V2 == 0x0200000c, "power value v2");

struct nvml_temperature {
    uint32_t version, sensor;
    int32_t celsius;
};
#define NVML_TEMPERATURE_V1 NVML_VERSION(struct nvml_temperature, 1)
NVML_LAYOUT(struct nvml_temperature, 12);

struct nvml_margin_temperature {
    uint32_t version;
    int32_t celsius;
};
#define NVML_MARGIN_TEMPERATURE_V1 NVML_VERSION(struct nvml_margin_temperature, 1)
NVML_LAYOUT(struct nvml_margin_temperature, 8);

struct nvml_fan_speed {
    uint32_t version, fan, rpm;
};
#define NVML_FAN_SPEED_V1 NVML_VERSION(struct nvml_fan_speed, 1)
NVML_LAYOUT(struct nvml_fan_speed, 12);

struct nvml_clock_offset {
    uint32_t version, type, pstate;
    int32_t mhz, min_mhz, max_mhz;
};
#define NVML_CLOCK_OFFSET_V1 NVML_VERSION(struct nvml_clock_offset, 1)
NVML_LAYOUT(struct nvml_clock_offset, 24);

struct nvml_violation {
    uint64_t reference_us, violation_ns;
};
NVML_LAYOUT(struct nvml_violation, 16);

struct nvml_ecc_counts {
    uint64_t l1, l2, memory, registers;
};
NVML_LAYOUT(struct nvml_ecc_counts, 32);

struct nvml_sram_ecc {
    uint32_t version;
    uint64_t aggregate_parity, aggregate_secded, aggregate_corrected;
    uint64_t volatile_parity, volatile_secded, volatile_corrected;
    uint64_t bucket_l2, bucket_sm, bucket_pcie, bucket_mcu, bucket_other;
    uint32_t threshold_exceeded;
};
#define NVML_SRAM_ECC_V1 NVML_VERSION(struct nvml_sram_ecc, 1)
NVML_LAYOUT(struct nvml_sram_ecc, 104);

struct nvml_remapper_histogram {
    uint32_t max, high, partial, low, none;
};
NVML_LAYOUT(struct nvml_remapper_histogram, 20);

struct nvml_repair_status {
    uint32_t version, channel_pending, tpc_pending;
};
#define NVML_REPAIR_STATUS_V1 NVML_VERSION(struct nvml_repair_status, 1)
NVML_LAYOUT(struct nvml_repair_status, 12);

struct nvml_attributes { /* of a MIG device */
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t gpu_slices, compute_slices;
    uint64_t memory_mib;
};
NVML_LAYOUT(struct nvml_attributes, 40);

struct nvml_accounting {
    uint32_t gpu_percent, memory_percent;
    uint64_t max_memory_bytes, time_ms, start_us;
    uint32_t is_running, reserved[5];
};
NVML_LAYOUT(struct nvml_accounting, 56);

struct nvml_fabric_v1 {
    uint8_t cluster[NVML_FABRIC_UUID_SIZE];
    nvml_return status;
    uint32_t clique;
    uint8_t state;
};
NVML_LAYOUT(struct nvml_fabric_v1, 28);
struct nvml_fabric { /* version 3; version 2 ends before summary */
    uint32_t version;
    uint8_t cluster[NVML_FABRIC_UUID_SIZE];
    nvml_return status;
    uint32_t clique;
    uint8_t state;
    uint32_t health_mask;
    uint8_t summary;
};
#define NVML_FABRIC_V2 0x02000024u
#define NVML_FABRIC_V3 NVML_VERSION(struct nvml_fabric, 3)
NVML_LAYOUT(struct nvml_fabric, 40);
NVML_OFFSET(struct nvml_fabric, health_mask, 32);
NVML_OFFSET(struct nvml_fabric, summary, 36);

/* GPM. Both version words are plain numbers, and the array has grown (98, 210, 333) under an unchanged version:
   the driver goes by count, so a caller may end the struct after the metrics that it names. */
struct nvml_gpm_metric {
    uint32_t id;
    nvml_return result;
    double value;
    const char *short_name, *long_name, *unit; /* the library keeps them */
};
NVML_LAYOUT(struct nvml_gpm_metric, 40);
struct nvml_gpm_metrics {
    uint32_t version, count;
    struct nvml_gpm_sample *first, *second;
    struct nvml_gpm_metric metrics[NVML_GPM_METRIC_MAX];
};
NVML_LAYOUT(struct nvml_gpm_metrics, 13344);
NVML_OFFSET(struct nvml_gpm_metrics, metrics, 24);
struct nvml_gpm_support {
    uint32_t version, is_supported;
};
NVML_LAYOUT(struct nvml_gpm_support, 8);
enum { NVML_GPM_METRICS_V1 = 1, NVML_GPM_SUPPORT_V1 = 1 };

#endif
