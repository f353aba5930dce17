/* True activity from the hardware's counters (GPM, Hopper and later): the difference of two samples, an average over
 * the time between them. The sample before is kept, so that a round costs one; the first round waits for its second. */
#include <string.h>

#include "base/clock.h"
#include "gpu/nvml.h"

#define GPM_GAP_MIN_NS (110 * NS_PER_MS) /* the driver wants samples at least 100 ms apart */
#define MIB 1048576.0

/* clang-format off */
static const struct {
    uint32_t id;
    int metric;
    double scale;
} rows[] = {
    {NVML_GPM_GRAPHICS_UTIL,     METRIC_ACTIVE_GRAPHICS,    0.01},
    {NVML_GPM_SM_UTIL,           METRIC_ACTIVE_SM,          0.01},
    {NVML_GPM_SM_OCCUPANCY,      METRIC_ACTIVE_OCCUPANCY,   0.01},
    {NVML_GPM_INTEGER_UTIL,      METRIC_ACTIVE_INTEGER,     0.01},
    {NVML_GPM_ANY_TENSOR_UTIL,   METRIC_ACTIVE_TENSOR,      0.01},
    {NVML_GPM_DFMA_TENSOR_UTIL,  METRIC_ACTIVE_TENSOR_DFMA, 0.01},
    {NVML_GPM_HMMA_TENSOR_UTIL,  METRIC_ACTIVE_TENSOR_HMMA, 0.01},
    {NVML_GPM_IMMA_TENSOR_UTIL,  METRIC_ACTIVE_TENSOR_IMMA, 0.01},
    {NVML_GPM_DRAM_BW_UTIL,      METRIC_ACTIVE_DRAM,        0.01},
    {NVML_GPM_FP64_UTIL,         METRIC_ACTIVE_FP64,        0.01},
    {NVML_GPM_FP32_UTIL,         METRIC_ACTIVE_FP32,        0.01},
    {NVML_GPM_FP16_UTIL,         METRIC_ACTIVE_FP16,        0.01},
    {NVML_GPM_PCIE_TX_PER_SEC,   METRIC_PCIE_TX,            MIB},
    {NVML_GPM_PCIE_RX_PER_SEC,   METRIC_PCIE_RX,            MIB},
    {NVML_GPM_NVLINK_TX_PER_SEC, METRIC_NVLINK_TX_RATE,     MIB},
    {NVML_GPM_NVLINK_RX_PER_SEC, METRIC_NVLINK_RX_RATE,     MIB},
};
/* clang-format on */

static int support(const struct nvml_gpu *g) {
    const struct nvml *nv = g->nv;
    const struct nvml_gpu *card = g->parent ? g->parent : g;
    struct nvml_gpm_support support = {.version = NVML_GPM_SUPPORT_V1};
    if (!nv->gpm_alloc || !nv->gpm_get || !nv->gpm_metrics) return -ENOTSUP;
    if (g->parent && !nv->gpm_mig_get) return -ENOTSUP;
    int r = NVML_CALL(nv->gpm_support, card->handle, &support);
    return r < 0 ? r : support.is_supported ? 0 : -ENOTSUP;
}

static int take(const struct nvml_gpu *g, struct nvml_gpm_sample *into) {
    if (g->parent) return NVML_CALL(g->nv->gpm_mig_get, g->parent->handle, (unsigned)g->gpu.inventory.gi, into);
    return NVML_CALL(g->nv->gpm_get, g->handle, into);
}

static int begin(struct nvml_gpu *g) {
    int r = support(g);
    if (r == 0 && !g->gpm_now) r = NVML_CALL(g->nv->gpm_alloc, &g->gpm_now);
    if (r == 0 && !g->gpm_before) r = NVML_CALL(g->nv->gpm_alloc, &g->gpm_before);
    if (r == 0) r = take(g, g->gpm_before);
    if (r == 0) g->gpm_before_ns = clock_boot_ns();
    return r;
}

static int compare(struct nvml_gpu *g, struct sample *s) {
    struct nvml_gpm_metrics m;
    m.version = NVML_GPM_METRICS_V1;
    m.count = ARRAY_LEN(rows);
    m.first = g->gpm_before;
    m.second = g->gpm_now;
    memset(m.metrics, 0, sizeof m.metrics[0] * ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        m.metrics[i].id = rows[i].id;
        m.metrics[i].result = NVML_ERROR_NOT_SUPPORTED; /* should it be passed over */
    }
    int r = nvml_errno(g->nv->gpm_metrics(&m));
    if (r < 0) return r;
    int pcie = GPM_PCIE_NOT_TOLD;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (m.metrics[i].result != NVML_SUCCESS) continue;
        if (rows[i].metric == METRIC_PCIE_TX) pcie = GPM_PCIE_TOLD;
        double v = m.metrics[i].value * rows[i].scale;
        if (rows[i].scale == 0.01 && v > 1 && v < 1.02) v = 1; /* rounding in the driver, not garbage */
        sample_put(s, rows[i].metric, v);
    }
    atomic_store_explicit(&g->gpm_pcie, pcie, memory_order_relaxed);
    return 0;
}

int nvml_gpm_read(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    if (!g->gpm_before_ns) {
        int r = begin(g);
        if (r < 0) return r;
    }
    clock_sleep_until(g->gpm_before_ns + GPM_GAP_MIN_NS);
    int r = take(g, g->gpm_now);
    if (r < 0) return r;
    int64_t now_ns = clock_boot_ns();
    r = compare(g, s);
    struct nvml_gpm_sample *swap = g->gpm_before;
    g->gpm_before = g->gpm_now;
    g->gpm_now = swap;
    g->gpm_before_ns = now_ns;
    return r;
}

void nvml_gpm_done(struct nvml_gpu *g) {
    if (g->gpm_before && g->nv->gpm_free) g->nv->gpm_free(g->gpm_before);
    if (g->gpm_now && g->nv->gpm_free) g->nv->gpm_free(g->gpm_now);
    g->gpm_before = g->gpm_now = NULL;
    g->gpm_before_ns = 0;
}
