/* What a simulated card is: the constant part of the shared memory (shm.h). Written before anyone can map it. */
#pragma once

#include <stdint.h>

enum {
    SHM_GPUS_MAX = 64,
    SHM_PROCS_MAX = 128,
    SHM_MEM_CLOCKS_MAX = 6,
    SHM_GR_CLOCKS_MAX = 240,
    SHM_FANS_MAX = 4,
    SHM_LINKS_MAX = 18,
    SHM_MIG_MAX = 7,
    SHM_SAMPLES_MAX = 120,
    SHM_ECC_PLACES = 8, /* NVML's memory locations: L1 L2 DRAM registers texture texture-shm CBU SRAM */
};

struct shm_clocks { /* the graphics clocks that go with one memory clock, highest first */
    uint32_t mem_mhz;
    uint32_t count;
    uint32_t gr_mhz[SHM_GR_CLOCKS_MAX];
};

struct shm_mig { /* one GPU instance with one compute instance */
    char uuid[48];
    char profile[24]; /* "1g.10gb" */
    uint32_t gi, ci;
    uint32_t profile_id; /* NVML_GPU_INSTANCE_PROFILE_* */
    uint32_t slices;     /* of compute */
    uint32_t mem_slices;
    uint32_t sm_count;
    uint32_t copy_engines, decoders;
    uint32_t encoders, jpegs, ofas;
    uint32_t place_start; /* first memory slice */
    uint64_t memory_bytes;
};

/* What a card is. Constant. */
struct shm_card {
    uint64_t abilities; /* CAN(...) */
    uint32_t index, minor_number;
    char model[24]; /* "h200", as gpusim's --model names it */
    char name[64];  /* as the driver prints it */
    char uuid[48];
    char serial[32];
    char vbios[32];
    char board_part[32];
    char inforom_image[16], inforom_oem[16], inforom_ecc[16], inforom_power[16];
    uint32_t brand;        /* nvmlBrandType_t */
    uint32_t architecture; /* nvmlDeviceArchitecture_t */
    uint32_t cc_major, cc_minor;
    uint32_t cores, sm_count;
    uint32_t bus_width_bits;
    uint32_t board_id;
    uint32_t module_id;
    uint32_t numa_node;
    uint32_t irq;
    uint32_t warps_per_sm;

    uint32_t pci_domain, pci_bus, pci_device;
    uint32_t pci_device_id, pci_subsystem_id; /* device << 16 | vendor, as NVML packs them */
    uint32_t pcie_gen_max, pcie_width_max;    /* of device and slot together */
    uint32_t pcie_gen_device;                 /* of the device alone */

    uint64_t memory_bytes, reserved_bytes, bar1_bytes;

    uint32_t power_min_mw, power_max_mw, power_default_mw;
    uint32_t power_usage_is_instant; /* GetPowerUsage: 1 on GA100 and older, else a one-second average */

    int32_t shutdown_c, slowdown_c, mem_max_c, gpu_max_c;       /* absolute thresholds */
    int32_t acoustic_min_c, acoustic_default_c, acoustic_max_c; /* 0 0 0: no target temperature */
    int32_t tlimit_c[4]; /* fields 193-196: shutdown, slowdown, mem max, gpu max */

    uint32_t gr_max_mhz, gr_min_mhz, mem_max_mhz, video_max_mhz;
    uint32_t app_gr_default_mhz, app_mem_default_mhz;
    uint32_t mem_clock_count;
    struct shm_clocks clocks[SHM_MEM_CLOCKS_MAX]; /* highest memory clock first */

    uint32_t fan_count, fan_min_pct, fan_max_pct, fan_max_rpm;
    uint32_t link_count, link_version, link_speed_mbps; /* NVLink */
    uint64_t event_types;                               /* nvmlEventType* bits that can be registered */
    uint64_t supported_reasons;                         /* clocks event reasons this card can show */
    uint32_t mig_count;                                 /* devices in mig[]; 0 with MIG mode off */
    uint32_t mig_mode;                                  /* current and pending */
    struct shm_mig mig[SHM_MIG_MAX];
};

_Static_assert(sizeof(struct shm_card) % 8 == 0, "words");
