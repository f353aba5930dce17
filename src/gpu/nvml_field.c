/* Field values: many small facts by number, asked for in batches. Success of the call says little: each field has its
 * own result, and its value's type must be looked at before the value. What a GPU does not have is remembered. */
#include <errno.h>
#include <string.h>

#include "gpu/nvml.h"

#define EVERY_LINK UINT32_MAX

/* clang-format off */
static const struct field_row {
    enum nvml_field_group group;
    uint32_t field, scope;
    int metric;
    double scale;
} rows[] = {
    {FIELDS_FAST,     NVML_FI_MEMORY_TEMP,                 0, METRIC_TEMP_MEMORY,       1},
    {FIELDS_FAST,     NVML_FI_POWER_INSTANT,               NVML_FIELD_SCOPE_GPU, METRIC_POWER_INSTANT, 1e-3},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_POWER,           0, METRIC_HELD_POWER,        1e-9},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_THERMAL,         0, METRIC_HELD_THERMAL,      1e-9},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_SYNC_BOOST,      0, METRIC_HELD_SYNC_BOOST,   1e-9},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_BOARD_LIMIT,     0, METRIC_HELD_BOARD_LIMIT,  1e-9},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_LOW_UTILIZATION, 0, METRIC_HELD_LOW_UTIL,     1e-9},
    {FIELDS_HELD,     NVML_FI_PERF_POLICY_RELIABILITY,     0, METRIC_HELD_RELIABILITY,  1e-9},
    {FIELDS_HELD,     NVML_FI_REASON_SW_THERMAL,           0, METRIC_HELD_SW_THERMAL,   1e-9},
    {FIELDS_HELD,     NVML_FI_REASON_HW_THERMAL,           0, METRIC_HELD_HW_THERMAL,   1e-9},
    {FIELDS_HELD,     NVML_FI_REASON_HW_POWER_BRAKE,       0, METRIC_HELD_POWER_BRAKE,  1e-9},
    {FIELDS_NVLINK,   NVML_FI_NVLINK_THROUGHPUT_DATA_TX,   EVERY_LINK, METRIC_NVLINK_TX, 1024},
    {FIELDS_NVLINK,   NVML_FI_NVLINK_THROUGHPUT_DATA_RX,   EVERY_LINK, METRIC_NVLINK_RX, 1024},
    {FIELDS_NVLINK,   NVML_FI_NVLINK_CRC_FLIT_TOTAL,       0, METRIC_NVLINK_CRC,        1},
    {FIELDS_NVLINK,   NVML_FI_NVLINK_REPLAY_TOTAL,         0, METRIC_NVLINK_REPLAYS,    1},
    {FIELDS_NVLINK,   NVML_FI_NVLINK_RECOVERY_TOTAL,       0, METRIC_NVLINK_RECOVERIES, 1},
    {FIELDS_RETIRED,  NVML_FI_RETIRED_SBE,                 0, METRIC_PAGES_RETIRED_SBE, 1},
    {FIELDS_RETIRED,  NVML_FI_RETIRED_DBE,                 0, METRIC_PAGES_RETIRED_DBE, 1},
    {FIELDS_RETIRED,  NVML_FI_RETIRED_PENDING,             0, METRIC_PAGES_PENDING,     1},
    {FIELDS_RECOVERY, NVML_FI_RECOVERY_ACTION,             0, METRIC_RECOVERY_ACTION,   1},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(rows) <= NVML_FIELDS_MAX && NVML_FIELDS_MAX <= 64, "one support bit a row");

static bool value_of(const struct nvml_field_value *v, double *ret) {
    switch (v->value_type) {
    case NVML_VALUE_DOUBLE: *ret = v->value.d; return true;
    case NVML_VALUE_UINT: *ret = v->value.u; return true;
    case NVML_VALUE_ULONG: *ret = (double)v->value.ul; return true;
    case NVML_VALUE_UINT64: *ret = (double)v->value.u64; return true;
    case NVML_VALUE_INT64: *ret = (double)v->value.i64; return true;
    case NVML_VALUE_INT: *ret = v->value.i; return true;
    case NVML_VALUE_USHORT: *ret = v->value.us; return true;
    default: return false;
    }
}

/* All bits set in the value's own width is how drivers say "no idea". */
static bool is_sentinel(const struct nvml_field_value *v) {
    return (v->value_type == NVML_VALUE_UINT && v->value.u == UINT32_MAX) ||
           (v->value_type == NVML_VALUE_UINT64 && v->value.u64 == UINT64_MAX) ||
           (v->value_type == NVML_VALUE_ULONG && v->value.ul == (unsigned long)-1);
}

static void take(struct nvml_gpu *g, size_t row, const struct nvml_field_value *v, struct sample *s, int *result) {
    int r = nvml_errno(v->result);
    double value;
    if (r == 0 && !is_sentinel(v) && value_of(v, &value)) {
        sample_put(s, rows[row].metric, value * rows[row].scale);
        *result = 0;
    } else if (r == -ENOTSUP || r == -EINVAL) {
        g->fields_missing |= BIT(row);
    } else if (r == -ENODEV || r == -ENXIO) {
        *result = r;
    } else if (*result == -ENOTSUP) {
        *result = -EAGAIN;
    }
}

int nvml_fields_read(struct nvml_gpu *g, enum nvml_field_group group, struct sample *s) {
    struct nvml_field_value v[ARRAY_LEN(rows)];
    size_t row_of[ARRAY_LEN(rows)];
    int n = 0;
    if (!g->nv->fields) return -ENOTSUP;
    memset(v, 0, sizeof v);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].group != group || g->fields_missing & BIT(i)) continue;
        v[n].field = rows[i].field;
        v[n].scope = rows[i].scope;
        v[n].result = NVML_ERROR_NOT_SUPPORTED; /* some drivers leave it as it was for a field they do not know */
        row_of[n++] = i;
    }
    if (n == 0) return -ENOTSUP;
    int r = nvml_errno(g->nv->fields(g->handle, n, v));
    if (r < 0) return r == -EINVAL ? -ENOTSUP : r;
    int result = -ENOTSUP;
    for (int i = 0; i < n; i++) take(g, row_of[i], &v[i], s, &result);
    return result;
}

bool nvml_field_int(const struct nvml_gpu *g, unsigned field, int64_t *ret) {
    struct nvml_field_value v = {.field = field, .result = NVML_ERROR_NOT_SUPPORTED};
    double value;
    if (!g->nv->fields || g->nv->fields(g->handle, 1, &v) != NVML_SUCCESS || v.result != NVML_SUCCESS) return false;
    if (is_sentinel(&v) || !value_of(&v, &value)) return false;
    /* some drivers put a signed figure into an unsigned slot */
    *ret = v.value_type == NVML_VALUE_UINT ? (int64_t)(int32_t)v.value.u : (int64_t)value;
    return true;
}
