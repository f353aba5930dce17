/* The table of readings: one row a call, with the metrics it yields. A new metric is a row in model/metrics.def and a
 * reader here (or a row in nvml_field.c or nvml_gpm.c). Units are converted here and nowhere else. */
#include <string.h>

#include "gpu/nvml.h"

#define MHZ 1e6
#define MW 1e-3
#define FAN_PERCENT_MAX 200 /* boards may ask for more than their nominal top */

/* A card at 1 °C below zero is rarer than a driver that means "no idea". */
static void put_celsius(struct sample *s, int metric, int celsius) {
    if (celsius != -1) sample_put(s, metric, celsius);
}

static int read_temperature(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    const struct nvml *nv = g->nv;
    struct nvml_temperature t = {.version = NVML_TEMPERATURE_V1, .sensor = NVML_TEMPERATURE_GPU};
    int r = NVML_PART(g, PART_TEMPERATURE_V, nv->temperature_v, g->handle, &t);
    if (r == 0) put_celsius(s, METRIC_TEMP_CORE, t.celsius);
    if (r != -ENOTSUP && r != -EINVAL) return r;
    unsigned c = 0;
    r = NVML_CALL(nv->temperature, g->handle, NVML_TEMPERATURE_GPU, &c);
    if (r == 0) put_celsius(s, METRIC_TEMP_CORE, (int)c);
    return r;
}

static int read_margin(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct nvml_margin_temperature t = {.version = NVML_MARGIN_TEMPERATURE_V1};
    int r = NVML_CALL(g->nv->margin, g->handle, &t);
    if (r == 0) sample_put(s, METRIC_TEMP_MARGIN, t.celsius);
    return r;
}

/* One unsigned figure with a scale: most of NVML; all bits set mean "no idea". By pointer: the call that fills it is an
 * argument, too, and arguments are evaluated in any order. */
static int put_one(int r, struct sample *s, int metric, const unsigned *v, double scale) {
    if (r == 0 && *v != UINT32_MAX) sample_put(s, metric, nvml_steps(*v, scale));
    return r;
}

static int read_power(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned v = 0;
    return put_one(NVML_CALL(g->nv->power, g->handle, &v), s, METRIC_POWER, &v, MW);
}

static int read_enforced(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned v = 0;
    return put_one(NVML_CALL(g->nv->limit_enforced, g->handle, &v), s, METRIC_POWER_LIMIT_ENFORCED, &v, MW);
}

static int read_limit(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned v = 0;
    return put_one(NVML_CALL(g->nv->limit, g->handle, &v), s, METRIC_POWER_LIMIT, &v, MW);
}

/* The card's own range does not change: no call is made. */
static int read_limit_range(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    const struct inventory *inv = &g->gpu.inventory;
    if (inv->limit_default_mw >= 0) sample_put(s, METRIC_POWER_LIMIT_DEFAULT, inv->limit_default_mw * MW);
    if (inv->limit_min_mw >= 0) sample_put(s, METRIC_POWER_LIMIT_MIN, inv->limit_min_mw * MW);
    if (inv->limit_max_mw >= 0) sample_put(s, METRIC_POWER_LIMIT_MAX, inv->limit_max_mw * MW);
    return inv->limit_default_mw >= 0 || inv->limit_min_mw >= 0 ? 0 : -ENOTSUP;
}

static int read_energy(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned long long mj = 0;
    int r = NVML_CALL(g->nv->energy, g->handle, &mj);
    if (r == 0 && mj != NVML_NOT_AVAILABLE) sample_put(s, METRIC_ENERGY, (double)mj / 1e3);
    return r;
}

static int read_utilization(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct nvml_utilization u = {0};
    int r = NVML_CALL(g->nv->utilization, g->handle, &u);
    if (r < 0) return r;
    sample_put(s, METRIC_UTIL_GPU, u.gpu / 100.0);
    sample_put(s, METRIC_UTIL_MEMORY, u.memory / 100.0);
    return 0;
}

static int read_engines(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    const struct nvml *nv = g->nv;
    const struct {
        nvml_return (*f)(nvml_handle, unsigned *, unsigned *);
        int metric;
    } engines[] = {
        {nv->encoder, METRIC_UTIL_ENCODER},
        {nv->decoder, METRIC_UTIL_DECODER},
        {nv->jpeg,    METRIC_UTIL_JPEG   },
        {nv->ofa,     METRIC_UTIL_OFA    }
    };
    int result = -ENOTSUP;
    for (unsigned i = 0; i < ARRAY_LEN(engines); i++) {
        unsigned v = 0, window_us = 0;
        int r = NVML_PART(g, PART_ENCODER + i, engines[i].f, g->handle, &v, &window_us);
        result = nvml_join(result, put_one(r, s, engines[i].metric, &v, 0.01));
    }
    return result;
}

/* A part that is larger than the whole is no figure. */
static void put_within(struct sample *s, int metric, uint64_t part, uint64_t total) {
    if (part <= total) sample_put(s, metric, (double)part);
}

static int read_own_memory(struct nvml_gpu *g, struct sample *s) {
    struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2};
    int r = NVML_PART(g, PART_MEMORY_V2, g->nv->memory_v2, g->handle, &m);
    if (r == -ENOTSUP || r == -EINVAL) {
        /* Where the newer call has worked, this one would count otherwise: the reserve is used memory to it. */
        struct nvml_memory old = {0};
        if (!nvml_lacks(&g->parts, PART_MEMORY_V2)) return r;
        r = NVML_CALL(g->nv->memory, g->handle, &old);
        m.total = old.total;
        m.used = old.used;
        m.free = old.free;
    } else if (r == 0 && m.total) {
        put_within(s, METRIC_MEMORY_RESERVED, m.reserved, m.total);
    }
    if (r < 0) return r;
    if (m.total == 0 || m.total == NVML_NOT_AVAILABLE) return -ENOTSUP;
    sample_put(s, METRIC_MEMORY_TOTAL, (double)m.total);
    put_within(s, METRIC_MEMORY_USED, m.used, m.total);
    put_within(s, METRIC_MEMORY_FREE, m.free, m.total);
    return 0;
}

static int read_memory(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    int r = read_own_memory(g, s);
    return r == -ENOTSUP && g->is_integrated ? nvml_system_memory_read(s) : r;
}

static int read_bar1(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    struct nvml_bar1 m = {0};
    int r = NVML_CALL(g->nv->bar1, g->handle, &m);
    if (r < 0) return r;
    sample_put(s, METRIC_BAR1_TOTAL, (double)m.total);
    put_within(s, METRIC_BAR1_USED, m.used, m.total);
    return 0;
}

static int read_clocks(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    static const int metric[] = {[NVML_CLOCK_GRAPHICS] = METRIC_CLOCK_GRAPHICS,
                                 [NVML_CLOCK_SM] = METRIC_CLOCK_SM,
                                 [NVML_CLOCK_MEM] = METRIC_CLOCK_MEMORY,
                                 [NVML_CLOCK_VIDEO] = METRIC_CLOCK_VIDEO};
    int result = -ENOTSUP;
    for (unsigned type = 0; type < NVML_CLOCK_TYPES; type++) {
        unsigned mhz = 0;
        int r = NVML_PART(g, PART_CLOCK + type, g->nv->clock, g->handle, type, &mhz);
        result = nvml_join(result, put_one(r, s, metric[type], &mhz, MHZ));
    }
    return result;
}

static int read_pstate(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    int v = 0;
    int r = NVML_CALL(g->nv->pstate, g->handle, &v);
    if (r == 0 && v >= 0 && v < NVML_PSTATE_SLOTS) sample_put(s, METRIC_PSTATE, v);
    return r;
}

static int read_reasons(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    static const struct {
        uint64_t bit;
        int metric;
    } rows[] = {
        {NVML_REASON_GPU_IDLE,       METRIC_REASON_IDLE       },
        {NVML_REASON_APP_CLOCKS,     METRIC_REASON_APP_CLOCKS },
        {NVML_REASON_SW_POWER_CAP,   METRIC_REASON_POWER_CAP  },
        {NVML_REASON_HW_SLOWDOWN,    METRIC_REASON_HW_SLOWDOWN},
        {NVML_REASON_SYNC_BOOST,     METRIC_REASON_SYNC_BOOST },
        {NVML_REASON_SW_THERMAL,     METRIC_REASON_SW_THERMAL },
        {NVML_REASON_HW_THERMAL,     METRIC_REASON_HW_THERMAL },
        {NVML_REASON_HW_POWER_BRAKE, METRIC_REASON_POWER_BRAKE},
        {NVML_REASON_DISPLAY_CLOCKS, METRIC_REASON_DISPLAY    }
    };
    unsigned long long bits = 0;
    int r = NVML_CALL(g->nv->reasons, g->handle, &bits);
    if (r < 0) return r;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) sample_put(s, rows[i].metric, bits & rows[i].bit ? 1 : 0);
    return 0;
}

static int fan_percent(const struct nvml_gpu *g, unsigned fan, unsigned *ret) {
    if (g->nv->fan_speed_v2) return nvml_errno(g->nv->fan_speed_v2(g->handle, fan, ret));
    return fan == 0 ? NVML_CALL(g->nv->fan_speed, g->handle, ret) : -ENOTSUP;
}

static int read_fans(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    if (!g->fans) return -ENOTSUP;
    unsigned highest = 0, lowest = UINT32_MAX, n = 0;
    int result = -ENOTSUP;
    for (unsigned fan = 0; fan < g->fans; fan++) {
        unsigned v = 0;
        int r = fan_percent(g, fan, &v);
        result = nvml_join(result, r);
        if (r < 0 || v > FAN_PERCENT_MAX) continue;
        n++;
        if (v > highest) highest = v;
        struct nvml_fan_speed rpm = {.version = NVML_FAN_SPEED_V1, .fan = fan};
        if (NVML_PART(g, PART_FAN_RPM, g->nv->fan_rpm, g->handle, &rpm) == 0 && rpm.rpm < lowest) lowest = rpm.rpm;
    }
    if (!n) return result;
    sample_put(s, METRIC_FANS, n);
    sample_put(s, METRIC_FAN_SPEED, (highest > 100 ? 100 : highest) / 100.0);
    if (lowest != UINT32_MAX) sample_put(s, METRIC_FAN_RPM, lowest);
    return 0;
}

static int read_pcie_link(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned gen = 0, width = 0;
    int a = NVML_PART(g, PART_PCIE_GEN, g->nv->pcie_gen, g->handle, &gen);
    int b = NVML_PART(g, PART_PCIE_WIDTH, g->nv->pcie_width, g->handle, &width);
    return nvml_join(put_one(a, s, METRIC_PCIE_GEN, &gen, 1), put_one(b, s, METRIC_PCIE_WIDTH, &width, 1));
}

static bool has_gpm(const struct nvml_gpu *g) {
    struct nvml_gpm_support gpm = {.version = NVML_GPM_SUPPORT_V1};
    return NVML_CALL(g->nv->gpm_support, g->handle, &gpm) == 0 && gpm.is_supported;
}

/* Blocks 20 ms a direction. Where GPM tells the traffic, or has yet to say whether it does, this is not made. */
static int read_pcie_throughput(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    static const int metric[] = {[NVML_PCIE_TX_BYTES] = METRIC_PCIE_TX, [NVML_PCIE_RX_BYTES] = METRIC_PCIE_RX};
    int by_gpm = atomic_load_explicit(&g->gpm_pcie, memory_order_relaxed);
    if (!g->pcie_is_asked && (by_gpm == GPM_PCIE_TOLD || (by_gpm == GPM_PCIE_UNKNOWN && has_gpm(g)))) return -ENOTSUP;
    g->pcie_is_asked = true;
    int result = -ENOTSUP;
    for (unsigned way = 0; way < ARRAY_LEN(metric); way++) {
        unsigned v = 0;
        int r = NVML_CALL(g->nv->pcie_throughput, g->handle, way, &v);
        result = nvml_join(result, put_one(r, s, metric[way], &v, 1e3));
        if (r < 0) break;
    }
    return result;
}

static int read_pcie_replays(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned v = 0;
    return put_one(NVML_CALL(g->nv->pcie_replays, g->handle, &v), s, METRIC_PCIE_REPLAYS, &v, 1);
}

static int read_nvlink_state(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned up = 0;
    if (g->gpu.inventory.nvlinks <= 0) return -ENOTSUP;
    for (unsigned link = 0; link < (unsigned)g->gpu.inventory.nvlinks; link++) {
        unsigned state = 0;
        int r = NVML_CALL(g->nv->nvlink_state, g->handle, link, &state);
        if (r < 0) return r;
        up += state == 1;
    }
    sample_put(s, METRIC_NVLINK_ACTIVE, up);
    return 0;
}

static int read_nvlink(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    return g->gpu.inventory.nvlinks > 0 ? nvml_fields_read(g, FIELDS_NVLINK, s) : -ENOTSUP;
}

static int read_ecc(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    static const struct {
        unsigned error, counter;
        int metric;
    } rows[] = {
        {NVML_ECC_CORRECTED,   NVML_ECC_VOLATILE,  METRIC_ECC_CORRECTED       },
        {NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE,  METRIC_ECC_UNCORRECTED     },
        {NVML_ECC_CORRECTED,   NVML_ECC_AGGREGATE, METRIC_ECC_CORRECTED_LIFE  },
        {NVML_ECC_UNCORRECTED, NVML_ECC_AGGREGATE, METRIC_ECC_UNCORRECTED_LIFE}
    };
    int result = -ENOTSUP;
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned long long n = 0;
        int r = NVML_PART(g, PART_ECC + i, g->nv->ecc_total, g->handle, rows[i].error, rows[i].counter, &n);
        if (r == 0 && n != NVML_NOT_AVAILABLE) sample_put(s, rows[i].metric, (double)n);
        result = nvml_join(result, r);
    }
    return result;
}

static int read_rows(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
    int r = NVML_CALL(g->nv->remapped, g->handle, &correctable, &uncorrectable, &pending, &failed);
    if (r < 0) return r;
    put_one(r, s, METRIC_ROWS_CORRECTABLE, &correctable, 1);
    put_one(r, s, METRIC_ROWS_UNCORRECTABLE, &uncorrectable, 1);
    sample_put(s, METRIC_ROWS_PENDING, pending != 0);
    sample_put(s, METRIC_ROWS_FAILED, failed != 0);
    return 0;
}

static int read_fast_fields(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    return nvml_fields_read(g, FIELDS_FAST, s);
}
static int read_held(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    return nvml_fields_read(g, FIELDS_HELD, s);
}
static int read_retired(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    return nvml_fields_read(g, FIELDS_RETIRED, s);
}
static int read_recovery(struct nvml_gpu *g, struct sample *s, struct ring_processes *p) {
    return nvml_fields_read(g, FIELDS_RECOVERY, s);
}

#define YIELDS(...)                                                                                                    \
    (const int[]) { __VA_ARGS__, -1 }
#define FN(member) offsetof(struct nvml, member)
#define NEEDS(...)                                                                                                     \
    (const size_t[]) { __VA_ARGS__, 0 }

/* clang-format off */
static const struct {
    struct gpu_call call;
    int (*read)(struct nvml_gpu *g, struct sample *s, struct ring_processes *p);
    const size_t *needs; /* functions of struct nvml, one of which must be there; ended by 0 */
    const char *why;     /* a GPU that the driver has them for does not have it; NULL: the usual words */
} rows[] = {
    {{"Temperature", YIELDS(METRIC_TEMP_CORE), 1, 0}, read_temperature, NEEDS(FN(temperature_v), FN(temperature))},
    {{"PowerUsage", YIELDS(METRIC_POWER), 1, 0}, read_power, NEEDS(FN(power))},
    {{"FieldValues: memory temperature, instant power", YIELDS(METRIC_TEMP_MEMORY, METRIC_POWER_INSTANT), 1, 0}, read_fast_fields, NEEDS(FN(fields))},
    {{"UtilizationRates", YIELDS(METRIC_UTIL_GPU, METRIC_UTIL_MEMORY), 1, 0}, read_utilization, NEEDS(FN(utilization))},
    {{"MemoryInfo", YIELDS(METRIC_MEMORY_TOTAL, METRIC_MEMORY_USED, METRIC_MEMORY_FREE, METRIC_MEMORY_RESERVED), 1, 0, .for_instances = true}, read_memory, NEEDS(FN(memory_v2), FN(memory))},
    {{"ClockInfo", YIELDS(METRIC_CLOCK_GRAPHICS, METRIC_CLOCK_SM, METRIC_CLOCK_MEMORY, METRIC_CLOCK_VIDEO), 1, 0}, read_clocks, NEEDS(FN(clock))},
    {{"ClocksEventReasons", YIELDS(METRIC_REASON_IDLE, METRIC_REASON_APP_CLOCKS, METRIC_REASON_POWER_CAP, METRIC_REASON_HW_SLOWDOWN, METRIC_REASON_SYNC_BOOST, METRIC_REASON_SW_THERMAL, METRIC_REASON_HW_THERMAL, METRIC_REASON_POWER_BRAKE, METRIC_REASON_DISPLAY), 1, 0}, read_reasons, NEEDS(FN(reasons))},
    {{"PerformanceState", YIELDS(METRIC_PSTATE), 1, 0}, read_pstate, NEEDS(FN(pstate))},
    {{"EnforcedPowerLimit", YIELDS(METRIC_POWER_LIMIT_ENFORCED), 1, 0}, read_enforced, NEEDS(FN(limit_enforced))},
    {{"RunningProcesses", YIELDS(METRIC_PROCESSES), 1, 0, .lists_processes = true, .for_instances = true}, nvml_processes_read, NEEDS(FN(list[NVML_LIST_COMPUTE].get), FN(list[NVML_LIST_GRAPHICS].get))},
    {{"MarginTemperature", YIELDS(METRIC_TEMP_MARGIN), 1, 1000}, read_margin, NEEDS(FN(margin))},
    {{"FanSpeed", YIELDS(METRIC_FANS, METRIC_FAN_SPEED, METRIC_FAN_RPM), 1, 1000}, read_fans, NEEDS(FN(fan_speed_v2), FN(fan_speed)), "this GPU has no fan that the driver can read"},
    {{"EncoderUtilization and its like", YIELDS(METRIC_UTIL_ENCODER, METRIC_UTIL_DECODER, METRIC_UTIL_JPEG, METRIC_UTIL_OFA), 0.5, 1000}, read_engines, NEEDS(FN(encoder), FN(decoder), FN(jpeg), FN(ofa))},
    {{"CurrPcieLink", YIELDS(METRIC_PCIE_GEN, METRIC_PCIE_WIDTH), 0.2, 10000}, read_pcie_link, NEEDS(FN(pcie_gen), FN(pcie_width))},
    {{"BAR1MemoryInfo", YIELDS(METRIC_BAR1_TOTAL, METRIC_BAR1_USED), 0.2, 10000}, read_bar1, NEEDS(FN(bar1))},
    {{"PowerManagementLimit", YIELDS(METRIC_POWER_LIMIT), 0.2, 1000}, read_limit, NEEDS(FN(limit))},
    {{"PowerManagementLimitConstraints", YIELDS(METRIC_POWER_LIMIT_DEFAULT, METRIC_POWER_LIMIT_MIN, METRIC_POWER_LIMIT_MAX), 0.2, 60000}, read_limit_range, NEEDS(FN(limit_range), FN(limit_default))},
    {{"TotalEccErrors", YIELDS(METRIC_ECC_CORRECTED, METRIC_ECC_UNCORRECTED, METRIC_ECC_CORRECTED_LIFE, METRIC_ECC_UNCORRECTED_LIFE), 0.5, 10000}, read_ecc, NEEDS(FN(ecc_total)), "this GPU has no ECC memory, or it is turned off"},
    {{"RemappedRows", YIELDS(METRIC_ROWS_CORRECTABLE, METRIC_ROWS_UNCORRECTABLE, METRIC_ROWS_PENDING, METRIC_ROWS_FAILED), 0.2, 10000}, read_rows, NEEDS(FN(remapped))},
    {{"FieldValues: retired pages", YIELDS(METRIC_PAGES_RETIRED_SBE, METRIC_PAGES_RETIRED_DBE, METRIC_PAGES_PENDING), 0.2, 60000}, read_retired, NEEDS(FN(fields))},
    {{"FieldValues: recovery action", YIELDS(METRIC_RECOVERY_ACTION), 0.5, 10000}, read_recovery, NEEDS(FN(fields))},
    {{"FieldValues: time held back", YIELDS(METRIC_HELD_POWER, METRIC_HELD_THERMAL, METRIC_HELD_SYNC_BOOST, METRIC_HELD_BOARD_LIMIT, METRIC_HELD_LOW_UTIL, METRIC_HELD_RELIABILITY, METRIC_HELD_SW_THERMAL, METRIC_HELD_HW_THERMAL, METRIC_HELD_POWER_BRAKE), 0.5, 1000}, read_held, NEEDS(FN(fields))},
    {{"PcieReplayCounter", YIELDS(METRIC_PCIE_REPLAYS), 0.2, 10000}, read_pcie_replays, NEEDS(FN(pcie_replays))},
    {{"NvLinkState", YIELDS(METRIC_NVLINK_ACTIVE), 0.2, 10000}, read_nvlink_state, NEEDS(FN(nvlink_state)), "this GPU has no NVLink"},
    {{"FieldValues: NVLink", YIELDS(METRIC_NVLINK_TX, METRIC_NVLINK_RX, METRIC_NVLINK_CRC, METRIC_NVLINK_REPLAYS, METRIC_NVLINK_RECOVERIES), 0.5, 1000}, read_nvlink, NEEDS(FN(fields)), "this GPU has no NVLink counters"},
    {{"TotalEnergyConsumption", YIELDS(METRIC_ENERGY), 0.5, 10000}, read_energy, NEEDS(FN(energy))},
    {{"GpmMetrics", YIELDS(METRIC_ACTIVE_GRAPHICS, METRIC_ACTIVE_SM, METRIC_ACTIVE_OCCUPANCY, METRIC_ACTIVE_TENSOR, METRIC_ACTIVE_TENSOR_DFMA, METRIC_ACTIVE_TENSOR_HMMA, METRIC_ACTIVE_TENSOR_IMMA, METRIC_ACTIVE_FP64, METRIC_ACTIVE_FP32, METRIC_ACTIVE_FP16, METRIC_ACTIVE_INTEGER, METRIC_ACTIVE_DRAM, METRIC_PCIE_TX, METRIC_PCIE_RX, METRIC_NVLINK_TX_RATE, METRIC_NVLINK_RX_RATE), 2, 10000, .for_instances = true}, nvml_gpm_read, NEEDS(FN(gpm_metrics)), "needs Hopper or later"},
    {{"PcieThroughput", YIELDS(METRIC_PCIE_TX, METRIC_PCIE_RX), 0.5, 1000}, read_pcie_throughput, NEEDS(FN(pcie_throughput))},
    {{"ProcessUtilization", YIELDS(-1), 0.5, 1000, .only_shared = true}, nvml_shares_read, NEEDS(FN(process_share))},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(rows) <= GPU_CALLS_MAX, "each GPU remembers the cost of every row");

unsigned nvml_calls(void) { return ARRAY_LEN(rows); }
const struct gpu_call *nvml_call(unsigned call) { return &rows[call].call; }

int nvml_read(struct gpu *gpu, unsigned call, struct sample *s, struct ring_processes *p) {
    struct nvml_gpu *g = nvml_of(gpu);
    if (g->parent && !rows[call].call.for_instances) return -ENOTSUP;
    return rows[call].read(g, s, p);
}

static bool has_any(const struct nvml *nv, const size_t *needs) {
    for (; *needs; needs++) {
        void *f;
        memcpy(&f, (const char *)nv + *needs, sizeof f);
        if (f) return true;
    }
    return false;
}

const char *nvml_why_not(const struct gpu *gpu, unsigned call) {
    const struct nvml_gpu *g = (const struct nvml_gpu *)(const void *)gpu;
    if (!has_any(g->nv, rows[call].needs)) return "this driver has no such call";
    if (g->parent && !rows[call].call.for_instances) return "the driver does not tell it of a MIG instance";
    if (rows[call].read == read_pcie_throughput && !g->pcie_is_asked) return "GPM tells it at a lower price";
    return rows[call].why ? rows[call].why : "this GPU does not have it";
}
