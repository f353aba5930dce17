/* The kinds of work. Matrix products, copies and small kernels were measured on the H200 (utilisation, GPM, power,
 * PCIe); the others are put between them.
 */
#include "sim/load.h"

#include <string.h>

/* clang-format off */
const struct kind kinds[KIND_COUNT] = {
    [KIND_MATMUL] = {
        "matmul", "matrix products: tensor cores, power cap",
        .util = 0.98, .core = 1.0, .swing = 1.0, .mem_util = 0.22, .clock_bound = 1.0,
        .unit = {[UNIT_GRAPHICS] = 0.967, [UNIT_SM] = 0.929, [UNIT_OCCUPANCY] = 0.137, [UNIT_INTEGER] = 0.08,
                 [UNIT_TENSOR] = 0.902, [UNIT_HMMA] = 0.902, [UNIT_DRAM] = 0.158, [UNIT_FP32] = 0.012},
        .pcie_tx = 1.04e6, .pcie_rx = 2.76e6,
    },
    [KIND_COPY] = {
        "copy", "memory copies: hot memory, cool core",
        .util = 0.98, .core = 0.22, .swing = 0.08, .mem_util = 1.0, .clock_bound = 0.1,
        .unit = {[UNIT_GRAPHICS] = 0.985, [UNIT_SM] = 0.94, [UNIT_OCCUPANCY] = 0.61, [UNIT_INTEGER] = 0.06,
                 [UNIT_DRAM] = 0.9},
        .pcie_tx = 15.2e6, .pcie_rx = 33.8e6,
    },
    [KIND_SMALL] = {
        "small", "small kernels: busy by the clock, little done",
        .util = 0.98, .core = 0.13, .swing = 0.2, .mem_util = 0.05, .clock_bound = 0.5,
        .unit = {[UNIT_GRAPHICS] = 0.9, [UNIT_SM] = 0.11, [UNIT_OCCUPANCY] = 0.02, [UNIT_INTEGER] = 0.02,
                 [UNIT_DRAM] = 0.03, [UNIT_FP32] = 0.03},
        .pcie_tx = 6.5e6, .pcie_rx = 49e6,
    },
    [KIND_GRAPHICS] = {
        "graphics", "drawing",
        .util = 0.98, .core = 0.72, .swing = 0.6, .mem_util = 0.45, .clock_bound = 0.9, .graphics = 1,
        .unit = {[UNIT_GRAPHICS] = 0.97, [UNIT_SM] = 0.78, [UNIT_OCCUPANCY] = 0.38, [UNIT_INTEGER] = 0.22,
                 [UNIT_DRAM] = 0.35, [UNIT_FP32] = 0.52, [UNIT_FP16] = 0.08},
        .pcie_tx = 180e6, .pcie_rx = 420e6,
    },
    [KIND_INFER] = {
        "infer", "a language model that answers: bound by memory, some tensor work",
        .util = 0.98, .core = 0.42, .swing = 0.5, .mem_util = 0.62, .clock_bound = 0.35,
        .unit = {[UNIT_GRAPHICS] = 0.95, [UNIT_SM] = 0.71, [UNIT_OCCUPANCY] = 0.24, [UNIT_INTEGER] = 0.11,
                 [UNIT_TENSOR] = 0.27, [UNIT_HMMA] = 0.27, [UNIT_DRAM] = 0.63, [UNIT_FP32] = 0.06,
                 [UNIT_FP16] = 0.05},
        .pcie_tx = 38e6, .pcie_rx = 61e6, .nvlink_tx = 22e9, .nvlink_rx = 22e9,
    },
    [KIND_VIDEO] = {
        "video", "video decoding and encoding with some filtering",
        .util = 0.45, .core = 0.24, .swing = 0.3, .mem_util = 0.3, .clock_bound = 0.4,
        .unit = {[UNIT_GRAPHICS] = 0.45, [UNIT_SM] = 0.33, [UNIT_OCCUPANCY] = 0.2, [UNIT_INTEGER] = 0.12,
                 [UNIT_DRAM] = 0.24, [UNIT_FP32] = 0.14, [UNIT_NVDEC] = 0.82, [UNIT_NVENC] = 0.55,
                 [UNIT_NVJPG] = 0.12, [UNIT_NVOFA] = 0.05},
        .pcie_tx = 340e6, .pcie_rx = 290e6,
    },
    [KIND_HPC] = {
        "hpc", "number crunching: FP64 and FP32 units",
        .util = 0.98, .core = 0.78, .swing = 0.4, .mem_util = 0.4, .clock_bound = 0.8,
        .unit = {[UNIT_GRAPHICS] = 0.96, [UNIT_SM] = 0.86, [UNIT_OCCUPANCY] = 0.44, [UNIT_INTEGER] = 0.18,
                 [UNIT_DRAM] = 0.33, [UNIT_FP64] = 0.37, [UNIT_FP32] = 0.21},
        .pcie_tx = 12e6, .pcie_rx = 18e6, .nvlink_tx = 4e9, .nvlink_rx = 4e9,
    },
    [KIND_IDLE] = {"idle", "a context and its memory, nothing running"},
};
/* clang-format on */

int kind_by_name(const char *name) {
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0) return i;
    return -1;
}

void load_add(struct load *l, enum wire_kind k, double share) {
    const struct kind *kind = &kinds[k];
    l->busy += share * kind->util;
    l->core += share * kind->core;
    l->swing += share * kind->core * kind->swing;
    l->mem_util += share * kind->mem_util;
    for (int i = 0; i < UNIT_COUNT; i++) l->unit[i] += share * kind->unit[i];
    l->pcie_tx += share * kind->pcie_tx;
    l->pcie_rx += share * kind->pcie_rx;
    l->nvlink_tx += share * kind->nvlink_tx;
    l->nvlink_rx += share * kind->nvlink_rx;
}
