/* What does not change while a card is in the machine and the driver is loaded. Plain values of fixed size: it lies
 * in the ring as it is. Empty text and -1 mean that the driver would not say. */
#pragma once

#include <stdint.h>

#define GPU_MAX 64 /* physical GPUs of a machine */
#define MIG_MAX 8  /* instances of a GPU */
#define DEVICE_MAX (GPU_MAX * 2)
#define MEMORY_CLOCKS_MAX 8
#define GRAPHICS_CLOCKS_MAX 256

enum gpu_control { CONTROL_POWER = 1, CONTROL_LOCKED_CLOCKS = 2, CONTROL_APP_CLOCKS = 4 };

struct inventory {
    /* the key; PCI-<address> where the driver refuses to tell the UUID */
    char uuid[96], name[96], serial[32], vbios[32], board_part[80], inforom[32], driver[80], library[80];
    char pci[32]; /* 00000000:3b:00.0 */
    char architecture[16];
    int32_t index;          /* the driver's order today; not a key */
    int32_t minor;          /* /dev/nvidiaN */
    int32_t parent, gi, ci; /* a MIG instance: its GPU's device number in the ring and its ids; else -1 */
    int32_t mig_mode;       /* 1 on, 0 off, -1 no such thing */
    int32_t mig_count;
    int32_t cores, bus_width;
    int32_t pcie_gen_max, pcie_width_max;
    int32_t limit_min_mw, limit_max_mw, limit_default_mw;
    int32_t temp_shutdown_c, temp_slowdown_c, temp_memory_max_c, temp_gpu_max_c; /* -1: not said */
    int32_t margin_shutdown_c, margin_slowdown_c, margin_memory_c, margin_gpu_c; /* T.Limit; INT32_MIN: not said */
    int32_t clock_sm_max_mhz, clock_memory_max_mhz;
    int32_t nvlinks;
    int32_t ecc; /* 1 on, 0 off, -1 no such thing */
    int32_t persistence;
    uint32_t control; /* enum gpu_control bits: calls that exist; not a promise of permission */
    int32_t memory_clocks;
    struct {
        int32_t mhz, graphics_count;
        uint16_t graphics_mhz[GRAPHICS_CLOCKS_MAX];
    } clocks[MEMORY_CLOCKS_MAX];
};

/* A card of which nothing but its number is known. */
static inline void inventory_init(struct inventory *i, int32_t index) {
    *i = (struct inventory){.index = index,
                            .minor = -1,
                            .parent = -1,
                            .gi = -1,
                            .ci = -1,
                            .mig_mode = -1,
                            .cores = -1,
                            .bus_width = -1,
                            .pcie_gen_max = -1,
                            .pcie_width_max = -1,
                            .limit_min_mw = -1,
                            .limit_max_mw = -1,
                            .limit_default_mw = -1,
                            .temp_shutdown_c = -1,
                            .temp_slowdown_c = -1,
                            .temp_memory_max_c = -1,
                            .temp_gpu_max_c = -1,
                            .margin_shutdown_c = INT32_MIN,
                            .margin_slowdown_c = INT32_MIN,
                            .margin_memory_c = INT32_MIN,
                            .margin_gpu_c = INT32_MIN,
                            .clock_sm_max_mhz = -1,
                            .clock_memory_max_mhz = -1,
                            .nvlinks = -1,
                            .ecc = -1,
                            .persistence = -1};
}
