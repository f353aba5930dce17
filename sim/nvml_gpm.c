/* GPU performance monitoring: a sample is a copy of busy-time counters, a metric the difference of two over time. */
#include <stdlib.h>
#include <string.h>

#include "sim/nvml_lib.h"

enum { SAMPLE_MARK = 0x47504d31 };
enum { GPM_KNOWN = 210 }; /* numbers from here on came after the driver that this library stands for */

struct nvml_gpm_sample {
    uint32_t mark;
    uint32_t gpu, mig;
    uint32_t link_count;
    struct shm_gpm counters;
};

/* Percent of time that a unit was busy. */
static const struct {
    uint32_t id, unit;
    const char *short_name, *long_name;
} busy[] = {
    {NVML_GPM_GRAPHICS_UTIL,    UNIT_GRAPHICS,  "gract",   "Graphics engine active" },
    {NVML_GPM_SM_UTIL,          UNIT_SM,        "smutil",  "SM active"              },
    {NVML_GPM_SM_OCCUPANCY,     UNIT_OCCUPANCY, "smocc",   "SM occupancy"           },
    {NVML_GPM_INTEGER_UTIL,     UNIT_INTEGER,   "intutil", "Integer pipe active"    },
    {NVML_GPM_ANY_TENSOR_UTIL,  UNIT_TENSOR,    "mmaact",  "Any tensor pipe active" },
    {NVML_GPM_DFMA_TENSOR_UTIL, UNIT_DFMA,      "dfmat",   "DFMA tensor pipe active"},
    {NVML_GPM_HMMA_TENSOR_UTIL, UNIT_HMMA,      "hmmat",   "HMMA tensor pipe active"},
    {NVML_GPM_DMMA_TENSOR_UTIL, UNIT_DFMA,      NULL,      "DMMA tensor pipe active"},
    {NVML_GPM_IMMA_TENSOR_UTIL, UNIT_IMMA,      "immat",   "IMMA tensor pipe active"},
    {NVML_GPM_DRAM_BW_UTIL,     UNIT_DRAM,      "dram",    "DRAM bandwidth used"    },
    {NVML_GPM_FP64_UTIL,        UNIT_FP64,      "fp64",    "FP64 pipe active"       },
    {NVML_GPM_FP32_UTIL,        UNIT_FP32,      "fp32",    "FP32 pipe active"       },
    {NVML_GPM_FP16_UTIL,        UNIT_FP16,      "fp16",    "FP16 pipe active"       },
    {NVML_GPM_NVDEC_0_UTIL,     UNIT_NVDEC,     "nvdec0",  "Decoder 0 active"       },
    {NVML_GPM_NVJPG_0_UTIL,     UNIT_NVJPG,     "nvjpg0",  "JPEG decoder 0 active"  },
    {NVML_GPM_NVOFA_0_UTIL,     UNIT_NVOFA,     "nvofa0",  "Optical flow 0 active"  },
    {NVML_GPM_NVENC_0_UTIL,     UNIT_NVENC,     "nvenc0",  "Encoder 0 active"       },
};

/* MiB a second. */
static const struct {
    uint32_t id;
    size_t at;
    const char *short_name, *long_name;
} traffic[] = {
    {NVML_GPM_PCIE_TX_PER_SEC,   offsetof(struct shm_gpm, pcie_tx_bytes),   "pcitx", "PCIe traffic out"  },
    {NVML_GPM_PCIE_RX_PER_SEC,   offsetof(struct shm_gpm, pcie_rx_bytes),   "pcirx", "PCIe traffic in"   },
    {NVML_GPM_NVLINK_RX_PER_SEC, offsetof(struct shm_gpm, nvlink_rx_bytes), "nvlrx", "NVLink traffic in" },
    {NVML_GPM_NVLINK_TX_PER_SEC, offsetof(struct shm_gpm, nvlink_tx_bytes), "nvltx", "NVLink traffic out"},
};

static void name_it(struct nvml_gpm_metric *m, const char *short_name, const char *long_name, const char *unit) {
    m->short_name = short_name;
    m->long_name = long_name;
    m->unit = unit;
}

static double rate_mib(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b, size_t at,
                       uint64_t elapsed_ns) {
    uint64_t before, after;
    memcpy(&before, (const char *)&a->counters + at, sizeof before);
    memcpy(&after, (const char *)&b->counters + at, sizeof after);
    return (double)(after - before) / 1048576.0 * 1e9 / (double)elapsed_ns;
}

/* NVLink of one link: the traffic is spread evenly, and the numbers alternate in and out from link 0 on. */
#define LINK_NAMES(n) "nvl" #n "rx", "nvl" #n "tx"
static const char *const link_names[] = {
    LINK_NAMES(0),  LINK_NAMES(1),  LINK_NAMES(2),  LINK_NAMES(3),  LINK_NAMES(4),  LINK_NAMES(5),
    LINK_NAMES(6),  LINK_NAMES(7),  LINK_NAMES(8),  LINK_NAMES(9),  LINK_NAMES(10), LINK_NAMES(11),
    LINK_NAMES(12), LINK_NAMES(13), LINK_NAMES(14), LINK_NAMES(15), LINK_NAMES(16), LINK_NAMES(17),
};

static bool link_rate(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b, uint64_t elapsed_ns,
                      struct nvml_gpm_metric *m) {
    if (m->id < NVML_GPM_NVLINK_L0_RX_PER_SEC || m->id > NVML_GPM_NVLINK_L17_TX_PER_SEC) return false;
    uint32_t n = m->id - NVML_GPM_NVLINK_L0_RX_PER_SEC;
    size_t at = n % 2 ? offsetof(struct shm_gpm, nvlink_tx_bytes) : offsetof(struct shm_gpm, nvlink_rx_bytes);
    m->value = n / 2 < a->link_count ? rate_mib(a, b, at, elapsed_ns) / a->link_count : 0;
    name_it(m, link_names[n], n % 2 ? "NVLink traffic out" : "NVLink traffic in", "MiB/s");
    return true;
}

static nvml_return metric(const struct nvml_gpm_sample *a, const struct nvml_gpm_sample *b, struct nvml_gpm_metric *m) {
    uint64_t elapsed_ns = b->counters.elapsed_ns - a->counters.elapsed_ns;
    m->value = 0;
    if (m->id == 0) return NVML_ERROR_INVALID_ARGUMENT;
    if (m->id >= GPM_KNOWN) return NVML_ERROR_NOT_SUPPORTED;
    if (elapsed_ns == 0 || b->counters.elapsed_ns < a->counters.elapsed_ns) return NVML_ERROR_NO_DATA;
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
        if (busy[i].id != m->id) continue;
        uint32_t u = busy[i].unit;
        m->value = 100.0 * (double)(b->counters.busy_ns[u] - a->counters.busy_ns[u]) / (double)elapsed_ns;
        name_it(m, busy[i].short_name, busy[i].long_name, "%");
        return NVML_SUCCESS;
    }
    bool is_bus = m->id == NVML_GPM_PCIE_TX_PER_SEC || m->id == NVML_GPM_PCIE_RX_PER_SEC;
    if (a->mig != NVML_NO_INSTANCE && !is_bus) return NVML_ERROR_NOT_SUPPORTED; /* links are not divided */
    for (size_t i = 0; i < sizeof traffic / sizeof *traffic; i++) {
        if (traffic[i].id != m->id) continue;
        m->value = rate_mib(a, b, traffic[i].at, elapsed_ns);
        name_it(m, traffic[i].short_name, traffic[i].long_name, "MiB/s");
        return NVML_SUCCESS;
    }
    if (!link_rate(a, b, elapsed_ns, m)) name_it(m, NULL, NULL, "%");
    return NVML_SUCCESS; /* units that the card has not, and numbers between: for them all the driver says zero */
}

EXPORT nvml_return nvmlGpmSampleAlloc(struct nvml_gpm_sample **ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlGpmSampleAlloc, ret, &root);
    if (r != NVML_SUCCESS) return r;
    struct nvml_gpm_sample *s = calloc(1, sizeof *s);
    if (!s) return NVML_ERROR_MEMORY;
    s->mark = SAMPLE_MARK;
    *ret = s;
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlGpmSampleFree(struct nvml_gpm_sample *s) {
    if (!s || s->mark != SAMPLE_MARK) return NVML_ERROR_INVALID_ARGUMENT;
    s->mark = 0;
    free(s);
    return NVML_SUCCESS;
}

static void fill(const struct ask *q, uint32_t mig, struct nvml_gpm_sample *s) {
    struct shm_state now;
    SHM_GET(q->gpu, gpm, mig_gpm, &now);
    s->counters = mig == NVML_NO_INSTANCE ? now.gpm : now.mig_gpm[mig];
    s->gpu = q->card->index;
    s->mig = mig;
    s->link_count = q->card->link_count;
}

EXPORT nvml_return nvmlGpmSampleGet(struct nvml_device *device, struct nvml_gpm_sample *s) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlGpmSampleGet, device, CAN(GPM), s);
    if (r != NVML_SUCCESS) return r;
    if (s->mark != SAMPLE_MARK) return NVML_ERROR_INVALID_ARGUMENT;
    fill(&q, q.mig, s);
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlGpmMigSampleGet(struct nvml_device *device, uint32_t gpu_instance, struct nvml_gpm_sample *s) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlGpmMigSampleGet, device, CAN(GPM), s);
    if (r != NVML_SUCCESS) return r;
    if (s->mark != SAMPLE_MARK) return NVML_ERROR_INVALID_ARGUMENT;
    if (!q.card->mig_mode) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < q.card->mig_count; i++) {
        if (q.card->mig[i].gi != gpu_instance) continue;
        fill(&q, i, s);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics *ret) {
    const struct shm_root *root;
    nvml_return r = ask_library(CALL_nvmlGpmMetricsGet, ret, &root);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_GPM_METRICS_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct nvml_gpm_sample *a = ret->first, *b = ret->second;
    if (!a || !b || a->mark != SAMPLE_MARK || b->mark != SAMPLE_MARK) return NVML_ERROR_INVALID_ARGUMENT;
    if (a == b || a->gpu != b->gpu || a->mig != b->mig) return NVML_ERROR_INVALID_ARGUMENT;
    if (ret->count == 0 || ret->count > NVML_GPM_METRIC_MAX) return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < ret->count; i++) ret->metrics[i].result = metric(a, b, &ret->metrics[i]);
    return NVML_SUCCESS;
}

/* Asking whether GPM is there works on every card: the answer is in the struct, not in the result. */
EXPORT nvml_return nvmlGpmQueryDeviceSupport(struct nvml_device *device, struct nvml_gpm_support *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlGpmQueryDeviceSupport, device, 0, ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_GPM_SUPPORT_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    ret->is_supported = ask_can(&q, ABILITY_GPM);
    return NVML_SUCCESS;
}

ANSWER(nvmlGpmQueryIfStreamingEnabled, CAN(GPM), uint32_t, NVML_DISABLED)
