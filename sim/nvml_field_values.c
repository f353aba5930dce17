/* nvmlDeviceGetFieldValues: one row for each run of field numbers that is read alike.
 *
 * A field has its own result, type, time stamp and latency. The call as a whole fails only for bad arguments: a
 * field that is unknown or not supported says so in its own row, among others that succeed. */
#include <string.h>
#include <time.h>

#include "sim/nvml_lib.h"

enum scope { ANY_SCOPE, POWER_SCOPE, LINK_SCOPE, LINK_OR_SUM };

/* What a reader gets: the field's number less the first of its row, and the scope. */
struct field {
    const struct ask *q;
    uint32_t n, link;
};

struct field_row {
    uint32_t first, last;
    enum ability needs;
    enum nvml_value_type type;
    enum scope scope;
    int64_t (*read)(const struct field *f);
};

#define READ(name, expr)                                                                                               \
    static int64_t name(const struct field *f) {                                                                       \
        const struct shm_state *s = &f->q->s;                                                                          \
        const struct shm_card *c = f->q->card;                                                                         \
        (void)s, (void)c;                                                                                              \
        return (int64_t)(expr);                                                                                        \
    }

/* Corrected and uncorrected alternate, place by place: L1 L2 memory registers texture, then CBU uncorrected only. */
static int64_t ecc_at(const struct field *f, uint32_t counter) {
    static const uint8_t places[] = {NVML_MEMORY_L1, NVML_MEMORY_L2, NVML_MEMORY_DRAM, NVML_MEMORY_REGISTERS,
                                     NVML_MEMORY_TEXTURE};
    const struct shm_state *s = &f->q->s;
    if (f->n == 10) return (int64_t)s->ecc_uncorrected[counter][NVML_MEMORY_CBU];
    uint32_t place = places[f->n / 2];
    return (int64_t)(f->n % 2 ? s->ecc_uncorrected : s->ecc_corrected)[counter][place];
}

/* 138-141: data out, data in, raw out, raw in. Raw counts the protocol, too: a sixteenth on top. */
static int64_t link_kib(const struct field *f) {
    const uint64_t *links = f->n % 2 ? f->q->s.link_rx_kib : f->q->s.link_tx_kib;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->q->card->link_count; i++)
        if (f->link == UINT32_MAX || f->link == i) sum += links[i];
    return (int64_t)(f->n >= 2 ? sum + sum / 16 : sum);
}

static int64_t link_bytes(const struct field *f) { /* 201-204: packets and bytes out, packets and bytes in */
    const uint64_t kib = (f->n >= 2 ? f->q->s.link_rx_kib : f->q->s.link_tx_kib)[f->link];
    return (int64_t)(f->n % 2 ? kib * 1024 : kib * 8); /* packets of 128 bytes */
}

READ(read_ecc_mode, f->n ? s->ecc_pending : s->ecc_mode)
READ(read_ecc_total, ecc_total(s, f->n % 2, f->n / 2))
READ(read_ecc_volatile, ecc_at(f, NVML_ECC_VOLATILE))
READ(read_ecc_aggregate, ecc_at(f, NVML_ECC_AGGREGATE))
READ(read_retired, f->n == 0 ? s->retired_sbe : f->n == 1 ? s->retired_dbe : s->retired_pending)
READ(read_retired_pending, s->retired_pending)
READ(read_first_link_crc, f->n == 0 || f->n == 6 ? s->link_crc_errors : 0)
READ(read_first_link_replays, f->n == 0 || f->n == 6 ? s->link_replays : 0)
READ(read_first_link_recoveries, f->n == 0 || f->n == 6 ? s->link_recoveries : 0)
READ(read_zero, 0)
READ(read_policy, policy_time_ns(s, f->n < 6 ? f->n : f->n + 4)) /* 80, 81 are policies 10, 11 */
READ(read_memory_temp, s->mem_temp_c)
READ(read_energy, s->energy_mj)
READ(read_link_speed, c->link_speed_mbps)
READ(read_link_count, c->link_count)
READ(read_pcie_replays, s->pcie_replays)
READ(read_remapped, f->n == 0   ? s->remapped_corrected
                    : f->n == 1 ? s->remapped_uncorrected
                    : f->n == 2 ? s->remap_pending != 0
                                : s->remap_failed != 0)
READ(read_remote_link, f->link)
READ(read_link_errors, f->link != 0 ? 0
                       : f->n == 0  ? s->link_replays
                       : f->n == 1  ? s->link_recoveries
                                    : s->link_crc_errors)
READ(read_one, 1)
READ(read_link_version, link_version_code(c))
READ(read_power_now, f->n == 0 ? s->power_avg_mw : s->power_inst_mw)
READ(read_power_limits, f->n == 0   ? c->power_min_mw
                        : f->n == 1 ? c->power_max_mw
                        : f->n == 2 ? c->power_default_mw
                                    : s->enforced_mw)
READ(read_power_requested, s->limit_mw)
READ(read_tlimit, c->tlimit_c[f->n])
READ(read_pcie_bytes, f->n == 0 ? s->pcie_tx_bytes : s->pcie_rx_bytes)
READ(read_recovery, s->recovery_action)
READ(read_reason, reason_time_ns(s, NVML_REASON_SW_THERMAL << f->n)) /* software, hardware thermal, power brake */

static const struct field_row rows[] = {
    {1,   2,   ABILITY_ECC,           NVML_VALUE_UINT64, ANY_SCOPE,   read_ecc_mode             },
    {3,   6,   ABILITY_ECC,           NVML_VALUE_UINT64, ANY_SCOPE,   read_ecc_total            },
    {7,   17,  ABILITY_ECC,           NVML_VALUE_UINT64, ANY_SCOPE,   read_ecc_volatile         },
    {18,  28,  ABILITY_ECC,           NVML_VALUE_UINT64, ANY_SCOPE,   read_ecc_aggregate        },
    {29,  31,  ABILITY_RETIRED_PAGES, NVML_VALUE_UINT,   ANY_SCOPE,   read_retired              },
    {32,  38,  ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_first_link_crc       },
    {39,  45,  ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_zero                 },
    {46,  52,  ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_first_link_replays   },
    {53,  59,  ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_first_link_recoveries},
 /* 60-73, 120-131: bandwidth counters that went with Volta */
    {74,  81,  ABILITY_VIOLATION,     NVML_VALUE_UINT64, ANY_SCOPE,   read_policy               },
    {82,  82,  ABILITY_MEM_TEMP,      NVML_VALUE_UINT,   ANY_SCOPE,   read_memory_temp          },
    {83,  83,  ABILITY_ENERGY,        NVML_VALUE_UINT64, ANY_SCOPE,   read_energy               },
    {84,  90,  ABILITY_NVLINK,        NVML_VALUE_UINT,   ANY_SCOPE,   read_link_speed           },
    {91,  91,  ABILITY_NVLINK,        NVML_VALUE_UINT,   ANY_SCOPE,   read_link_count           },
    {92,  93,  ABILITY_RETIRED_PAGES, NVML_VALUE_UINT,   ANY_SCOPE,   read_retired_pending      },
    {94,  94,  ABILITY_PCIE_REPLAY,   NVML_VALUE_UINT,   ANY_SCOPE,   read_pcie_replays         },
    {95,  95,  ABILITY_PCIE_REPLAY,   NVML_VALUE_UINT,   ANY_SCOPE,   read_zero                 },
    {96,  119, ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_zero                 }, /* links 6-11 */
    {132, 137, ABILITY_NVLINK,        NVML_VALUE_UINT,   ANY_SCOPE,   read_link_speed           },
    {138, 141, ABILITY_NVLINK,        NVML_VALUE_UINT64, LINK_OR_SUM, link_kib                  },
    {142, 145, ABILITY_REMAP,         NVML_VALUE_UINT64, ANY_SCOPE,   read_remapped             },
    {146, 146, ABILITY_NVLINK,        NVML_VALUE_UINT,   LINK_SCOPE,  read_remote_link          },
    {147, 147, ABILITY_NVLINK,        NVML_VALUE_UINT,   ANY_SCOPE,   read_link_count           },
    {148, 160, ABILITY_NVLINK,        NVML_VALUE_UINT64, ANY_SCOPE,   read_zero                 },
    {161, 163, ABILITY_NVLINK,        NVML_VALUE_UINT64, LINK_SCOPE,  read_link_errors          },
    {164, 164, ABILITY_NVLINK,        NVML_VALUE_UINT,   LINK_SCOPE,  read_link_speed           },
    {165, 165, ABILITY_NVLINK,        NVML_VALUE_UINT,   LINK_SCOPE,  read_one                  },
    {166, 166, ABILITY_NVLINK,        NVML_VALUE_UINT,   LINK_SCOPE,  read_link_version         },
    {167, 167, ABILITY_GPM,           NVML_VALUE_UINT,   LINK_SCOPE,  read_zero                 },
    {169, 169, ABILITY_PCIE_BYTES,    NVML_VALUE_UINT,   ANY_SCOPE,   read_zero                 },
    {173, 183, ABILITY_PCIE_BYTES,    NVML_VALUE_UINT,   ANY_SCOPE,   read_zero                 },
    {184, 184, ABILITY_MIG,           NVML_VALUE_UINT,   ANY_SCOPE,   read_one                  },
    {185, 186, ABILITY_POWER_FIELDS,  NVML_VALUE_UINT,   POWER_SCOPE, read_power_now            },
    {187, 190, ABILITY_POWER_FIELDS,  NVML_VALUE_UINT,   POWER_SCOPE, read_power_limits         },
    {191, 191, ABILITY_ENERGY,        NVML_VALUE_UINT64, POWER_SCOPE, read_energy               },
    {192, 192, ABILITY_POWER_FIELDS,  NVML_VALUE_UINT,   POWER_SCOPE, read_power_requested      },
    {193, 196, ABILITY_MARGIN,        NVML_VALUE_INT,    ANY_SCOPE,   read_tlimit               },
    {197, 198, ABILITY_PCIE_BYTES,    NVML_VALUE_UINT,   ANY_SCOPE,   read_pcie_bytes           },
    {199, 199, ABILITY_MIG,           NVML_VALUE_UINT,   ANY_SCOPE,   read_one                  },
    {201, 204, ABILITY_NVLINK,        NVML_VALUE_UINT64, LINK_SCOPE,  link_bytes                },
    {226, 227, ABILITY_RECOVERY,      NVML_VALUE_UINT,   ANY_SCOPE,   read_zero                 },
    {228, 229, ABILITY_PCIE_BYTES,    NVML_VALUE_UINT,   ANY_SCOPE,   read_zero                 },
    {230, 230, ABILITY_RECOVERY,      NVML_VALUE_UINT,   ANY_SCOPE,   read_recovery             },
    {269, 271, ABILITY_REASON_TIMES,  NVML_VALUE_UINT64, ANY_SCOPE,   read_reason               },
    {301, 302, ABILITY_REMAP,         NVML_VALUE_UINT64, ANY_SCOPE,   read_zero                 },
};

static const struct field_row *row_of(uint32_t field) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (field >= rows[i].first && field <= rows[i].last) return &rows[i];
    return NULL;
}

/* There is no module around these cards. The third scope, the GPU without its memory, has no limit to ask for. */
static nvml_return check_power_scope(const struct field_row *row, uint32_t scope) {
    bool is_limit = row->first == NVML_FI_POWER_MIN_LIMIT || row->first == NVML_FI_POWER_REQUESTED_LIMIT;
    if (scope == NVML_FIELD_SCOPE_GPU) return NVML_SUCCESS;
    if (scope == NVML_FIELD_SCOPE_GPU_BASE && is_limit) return NVML_ERROR_INVALID_ARGUMENT;
    if (scope <= NVML_FIELD_SCOPE_GPU_BASE || row->first == NVML_FI_ENERGY) return NVML_ERROR_NOT_SUPPORTED;
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* Numbers that came after the driver that this library stands for. */
static bool is_too_new(uint32_t field) {
    return field == 274 || (field >= 289 && field <= 293) || (field >= 296 && field <= 300) || field >= NVML_FI_MAX;
}

static nvml_return check_scope(const struct ask *q, const struct field_row *row, uint32_t scope) {
    switch (row->scope) {
    case POWER_SCOPE: return check_power_scope(row, scope);
    case LINK_OR_SUM:
        if (scope == UINT32_MAX) return NVML_SUCCESS;
        return link_check(q, scope);
    case LINK_SCOPE: return link_check(q, scope);
    default: return NVML_SUCCESS;
    }
}

/* A per-link field of a link that the card has not. Runs: six links and their sum, then the six further ones. */
static bool is_beyond_links(const struct shm_card *c, uint32_t field) {
    uint32_t link = 0;
    if ((field >= 32 && field <= 59) && (field - 32) % 7 < 6) link = (field - 32) % 7;
    if (field >= 84 && field <= 89) link = field - 84;
    if (field >= 96 && field <= 119) link = 6 + (field - 96) % 6;
    if (field >= 132 && field <= 137) link = 6 + field - 132;
    if (field >= 148 && field <= 159) link = field - 148;
    return link >= c->link_count;
}

/* Counters need ECC on, and those of single places a card that tells places apart. */
static bool has_ecc_field(const struct ask *q, uint32_t field) {
    if (field <= NVML_FI_ECC_PENDING) return true;
    bool is_place = field >= NVML_FI_ECC_SBE_VOL_L1;
    return q->s.ecc_mode && (!is_place || q->card->architecture < NVML_ARCH_AMPERE);
}

static nvml_return read_field(const struct ask *q, struct nvml_field_value *v) {
    if (v->field == 0 || is_too_new(v->field)) return NVML_ERROR_INVALID_ARGUMENT;
    const struct field_row *row = row_of(v->field);
    if (!row || !ask_can(q, row->needs)) return NVML_ERROR_NOT_SUPPORTED;
    nvml_return r = check_scope(q, row, v->scope);
    if (r != NVML_SUCCESS) return r;
    if (row->needs == ABILITY_NVLINK && is_beyond_links(q->card, v->field)) return NVML_ERROR_NOT_SUPPORTED;
    if (row->needs == ABILITY_ECC && !has_ecc_field(q, v->field)) return NVML_ERROR_NOT_SUPPORTED;
    const struct field f = {.q = q, .n = v->field - row->first, .link = v->scope};
    int64_t value = row->read(&f);
    v->value_type = row->type;
    v->value.u64 = 0;
    switch (row->type) {
    case NVML_VALUE_UINT: v->value.u = (uint32_t)value; break;
    case NVML_VALUE_INT: v->value.i = (int32_t)value; break;
    default: v->value.u64 = (uint64_t)value;
    }
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetFieldValues(struct nvml_device *device, int32_t count,
                                            struct nvml_field_value *values) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetFieldValues, device, 0, values);
    if (r != NVML_SUCCESS) return r;
    if (count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
    for (int32_t i = 0; i < count; i++) {
        struct nvml_field_value *v = &values[i];
        v->latency_us = (int64_t)pay_field(q.root, v->field);
        if (v->latency_us > 0) SHM_GET(q.gpu, at_us, fan, &q.s);
        v->timestamp_us = (int64_t)clock_us();
        v->result = read_field(&q, v);
    }
    return NVML_SUCCESS;
}
