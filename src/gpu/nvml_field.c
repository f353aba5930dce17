/* Field values: many small facts by number, asked for in batches. Success of the call says little: each field has its
 * own result, and its value's type must be looked at before the value. What a GPU does not have is remembered. */
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

/* All bits set in the value's own width is how drivers say "no idea". */
static bool is_sentinel(const struct nvml_field_value *v) {
    switch (v->value_type) {
    case NVML_VALUE_UINT: return v->value.u == UINT32_MAX;
    case NVML_VALUE_ULONG: return v->value.ul == (unsigned long)-1;
    case NVML_VALUE_UINT64: return v->value.u64 == UINT64_MAX;
    case NVML_VALUE_USHORT: return v->value.us == UINT16_MAX;
    default: return false;
    }
}

/* None of the quantities in the table can be below zero: what is, is another "no idea". */
static bool value_of(const struct nvml_field_value *v, double *ret) {
    if (is_sentinel(v)) return false;
    switch (v->value_type) {
    case NVML_VALUE_DOUBLE: *ret = v->value.d; break;
    case NVML_VALUE_UINT: *ret = v->value.u; break;
    case NVML_VALUE_ULONG: *ret = (double)v->value.ul; break;
    case NVML_VALUE_UINT64: *ret = (double)v->value.u64; break;
    case NVML_VALUE_INT64: *ret = (double)v->value.i64; break;
    case NVML_VALUE_INT: *ret = v->value.i; break;
    case NVML_VALUE_USHORT: *ret = v->value.us; break;
    default: return false;
    }
    return *ret >= 0;
}

/* A figure that may be negative; some drivers put it into an unsigned slot. */
static bool signed_of(const struct nvml_field_value *v, int64_t *ret) {
    if (is_sentinel(v)) return false;
    switch (v->value_type) {
    case NVML_VALUE_DOUBLE:
        if (!(v->value.d > -1e9 && v->value.d < 1e9)) return false;
        *ret = (int64_t)v->value.d;
        return true;
    case NVML_VALUE_UINT: *ret = (int32_t)v->value.u; return true;
    case NVML_VALUE_ULONG: *ret = (int64_t)v->value.ul; break;
    case NVML_VALUE_UINT64: *ret = (int64_t)v->value.u64; break;
    case NVML_VALUE_INT64: *ret = v->value.i64; return true;
    case NVML_VALUE_INT: *ret = v->value.i; return true;
    case NVML_VALUE_USHORT: *ret = (int16_t)v->value.us; return true;
    default: return false;
    }
    if (*ret == UINT32_MAX) return false;
    if (*ret > INT32_MAX && *ret < UINT32_MAX) *ret = (int32_t)*ret; /* 32 bits of it in a slot of 64 */
    return true;
}

static int take(struct nvml_gpu *g, size_t row, const struct nvml_field_value *v, struct sample *s) {
    int r = nvml_learn(&g->fields, (unsigned)row, nvml_errno(v->result));
    double value;
    if (r < 0) return r;
    if (!value_of(v, &value)) return -EAGAIN;
    sample_put(s, rows[row].metric, nvml_steps(value, rows[row].scale));
    return 0;
}

static void ask_for(struct nvml_field_value *v, size_t row) {
    *v = (struct nvml_field_value){.field = rows[row].field, .scope = rows[row].scope};
    v->result = NVML_ERROR_NOT_SUPPORTED; /* some drivers leave it as it was for a field they do not know */
}

/* A driver that refuses the whole batch may do so because of one field that it does not know. */
static int read_singly(struct nvml_gpu *g, const size_t *row_of, int n, struct sample *s) {
    int result = -ENOTSUP;
    for (int i = 0; i < n; i++) {
        struct nvml_field_value v;
        ask_for(&v, row_of[i]);
        int r = nvml_errno(g->nv->fields(g->handle, 1, &v));
        r = r < 0 ? nvml_learn(&g->fields, (unsigned)row_of[i], r) : take(g, row_of[i], &v, s);
        result = nvml_join(result, r);
    }
    return result;
}

int nvml_fields_read(struct nvml_gpu *g, enum nvml_field_group group, struct sample *s) {
    struct nvml_field_value v[ARRAY_LEN(rows)];
    size_t row_of[ARRAY_LEN(rows)];
    int n = 0;
    if (!g->nv->fields) return -ENOTSUP;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].group != group || nvml_lacks(&g->fields, (unsigned)i)) continue;
        ask_for(&v[n], i);
        row_of[n++] = i;
    }
    if (n == 0) return -ENOTSUP;
    int r = nvml_errno(g->nv->fields(g->handle, n, v));
    if (r == -EINVAL && n > 1) return read_singly(g, row_of, n, s);
    if (r < 0) return r;
    int result = -ENOTSUP;
    for (int i = 0; i < n; i++) result = nvml_join(result, take(g, row_of[i], &v[i], s));
    return result;
}

int nvml_field_int(const struct nvml_gpu *g, unsigned field, int64_t *ret) {
    struct nvml_field_value v = {.field = field, .result = NVML_ERROR_NOT_SUPPORTED};
    int r = NVML_CALL(g->nv->fields, g->handle, 1, &v);
    if (r == 0) r = nvml_errno(v.result);
    if (r < 0) return r;
    return signed_of(&v, ret) ? 0 : -ENOTSUP;
}
