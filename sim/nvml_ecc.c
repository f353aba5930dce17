/* Memory errors: ECC mode and counters, retired pages of older cards, remapped rows of newer ones. */
#include "sim/nvml_lib.h"

uint64_t ecc_total(const struct shm_state *s, uint32_t kind, uint32_t counter) {
    const uint64_t *places = kind == NVML_ECC_CORRECTED ? s->ecc_corrected[counter] : s->ecc_uncorrected[counter];
    uint64_t sum = 0;
    for (int i = 0; i < SHM_ECC_PLACES; i++) sum += places[i];
    return sum;
}

/* Counters count only while ECC is on. */
static nvml_return check_counter(const struct ask *q, uint32_t kind, uint32_t counter) {
    if (kind > NVML_ECC_UNCORRECTED || counter > NVML_ECC_AGGREGATE) return NVML_ERROR_INVALID_ARGUMENT;
    return q->s.ecc_mode ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvml_return ask_ecc(struct ask *q, enum call call, struct nvml_device *d, uint32_t kind, uint32_t counter,
                           const void *out) {
    nvml_return r = ask_device(q, call, d, CAN(ECC), out);
    return r == NVML_SUCCESS ? check_counter(q, kind, counter) : r;
}

EXPORT nvml_return nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetEccMode, device, CAN(ECC), pending ? current : NULL);
    if (r != NVML_SUCCESS) return r;
    *current = q.s.ecc_mode;
    *pending = q.s.ecc_pending;
    return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetDefaultEccMode, CAN(ECC), uint32_t, NVML_ENABLED)

EXPORT nvml_return nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t kind, uint32_t counter,
                                               uint64_t *ret) {
    struct ask q;
    nvml_return r = ask_ecc(&q, CALL_nvmlDeviceGetTotalEccErrors, device, kind, counter, ret);
    if (r == NVML_SUCCESS) *ret = ecc_total(&q.s, kind, counter);
    return r;
}

EXPORT nvml_return nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t kind, uint32_t counter,
                                                  struct nvml_ecc_counts *ret) {
    struct ask q;
    nvml_return r = ask_ecc(&q, CALL_nvmlDeviceGetDetailedEccErrors, device, kind, counter, ret);
    if (r != NVML_SUCCESS) return r;
    const uint64_t *p = kind == NVML_ECC_CORRECTED ? q.s.ecc_corrected[counter] : q.s.ecc_uncorrected[counter];
    *ret = (struct nvml_ecc_counts){
        p[NVML_MEMORY_L1],
        p[NVML_MEMORY_L2],
        p[NVML_MEMORY_DRAM],
        p[NVML_MEMORY_REGISTERS],
    };
    return NVML_SUCCESS;
}

/* From Ampere on there are two places: DRAM, and SRAM for all that was told apart before. */
static bool has_place(const struct shm_card *c, uint32_t location) {
    if (c->architecture >= NVML_ARCH_AMPERE) return location == NVML_MEMORY_DRAM || location == NVML_MEMORY_SRAM;
    return location != NVML_MEMORY_SRAM && location != NVML_MEMORY_CBU;
}

/* With MIG on, volatile errors are told of instances and not of the card, and of instances nothing but uncorrected ones
   outside the DRAM. The simulator does not know where on the die one struck: the first instance has them all. */
static nvml_return check_divided(const struct ask *q, uint32_t kind, uint32_t counter, uint32_t location) {
    if (!q->card->mig_mode) return NVML_SUCCESS;
    if (q->mig == NVML_NO_INSTANCE) return counter == NVML_ECC_VOLATILE ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    bool is_told = kind == NVML_ECC_UNCORRECTED && counter == NVML_ECC_VOLATILE && location != NVML_MEMORY_DRAM;
    return is_told ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvml_return nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t kind, uint32_t counter,
                                                   uint32_t location, uint64_t *ret) {
    struct ask q;
    nvml_return r = ask_any_device(&q, CALL_nvmlDeviceGetMemoryErrorCounter, device, CAN(ECC), ret);
    if (r == NVML_SUCCESS) r = check_counter(&q, kind, counter);
    if (r != NVML_SUCCESS) return r;
    if (location >= NVML_MEMORY_LOCATIONS) return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_place(q.card, location)) return NVML_ERROR_NOT_SUPPORTED;
    r = check_divided(&q, kind, counter, location);
    if (r != NVML_SUCCESS) return r;
    bool has_none = q.mig != NVML_NO_INSTANCE && q.mig > 0;
    const uint64_t *places = kind == NVML_ECC_CORRECTED ? q.s.ecc_corrected[counter] : q.s.ecc_uncorrected[counter];
    *ret = has_none ? 0 : places[location];
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetSramEccErrorStatus(struct nvml_device *device, struct nvml_sram_ecc *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetSramEccErrorStatus, device, CAN(ECC), ret);
    if (r != NVML_SUCCESS) return r;
    if (ret->version != NVML_SRAM_ECC_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (q.card->architecture < NVML_ARCH_AMPERE || !q.s.ecc_mode) return NVML_ERROR_NOT_SUPPORTED;
    const uint64_t *now = q.s.ecc_uncorrected[NVML_ECC_VOLATILE], *ever = q.s.ecc_uncorrected[NVML_ECC_AGGREGATE];
    *ret = (struct nvml_sram_ecc){
        .version = ret->version,
        .aggregate_parity = ever[NVML_MEMORY_L1],
        .aggregate_secded = ever[NVML_MEMORY_L2] + ever[NVML_MEMORY_SRAM],
        .aggregate_corrected = q.s.ecc_corrected[NVML_ECC_AGGREGATE][NVML_MEMORY_SRAM],
        .volatile_parity = now[NVML_MEMORY_L1],
        .volatile_secded = now[NVML_MEMORY_L2] + now[NVML_MEMORY_SRAM],
        .volatile_corrected = q.s.ecc_corrected[NVML_ECC_VOLATILE][NVML_MEMORY_SRAM],
        .bucket_l2 = ever[NVML_MEMORY_L2],
        .bucket_sm = ever[NVML_MEMORY_L1],
        .bucket_other = ever[NVML_MEMORY_SRAM],
    };
    return NVML_SUCCESS;
}

/* Retired pages. Their addresses are made up, but stay the same for a page once retired. */
static nvml_return retired(enum call call, struct nvml_device *d, uint32_t cause, uint32_t *count, uint64_t *addresses,
                           uint64_t *times_s) {
    struct ask q;
    nvml_return r = ask_device(&q, call, d, CAN(RETIRED_PAGES), count);
    if (r != NVML_SUCCESS) return r;
    if (cause > NVML_RETIREMENT_DOUBLE_BIT) return NVML_ERROR_INVALID_ARGUMENT;
    uint32_t room = addresses ? *count : 0;
    *count = cause == NVML_RETIREMENT_SINGLE_BIT ? q.s.retired_sbe : q.s.retired_dbe;
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < *count; i++) {
        addresses[i] = UINT64_C(0x10000) * (2 * i + cause + 1 + q.card->board_id % 4096);
        if (times_s) times_s[i] = 0;
    }
    return NVML_SUCCESS;
}

EXPORT nvml_return nvmlDeviceGetRetiredPages(struct nvml_device *device, uint32_t cause, uint32_t *count,
                                             uint64_t *addresses) {
    return retired(CALL_nvmlDeviceGetRetiredPages, device, cause, count, addresses, NULL);
}
EXPORT nvml_return nvmlDeviceGetRetiredPages_v2(struct nvml_device *device, uint32_t cause, uint32_t *count,
                                                uint64_t *addresses, uint64_t *times_s) {
    return retired(CALL_nvmlDeviceGetRetiredPages_v2, device, cause, count, addresses, times_s);
}

ANSWER(nvmlDeviceGetRetiredPagesPendingStatus, CAN(RETIRED_PAGES), uint32_t, q.s.retired_pending != 0)

EXPORT nvml_return nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *corrected, uint32_t *uncorrected,
                                             uint32_t *is_pending, uint32_t *has_failed) {
    struct ask q;
    const void *out = corrected && uncorrected && is_pending ? has_failed : NULL;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetRemappedRows, device, CAN(REMAP), out);
    if (r != NVML_SUCCESS) return r;
    *corrected = q.s.remapped_corrected;
    *uncorrected = q.s.remapped_uncorrected;
    *is_pending = q.s.remap_pending != 0;
    *has_failed = q.s.remap_failed != 0;
    return NVML_SUCCESS;
}

struct remapped_rows_v2 {
    uint32_t corrected, corrected_inactive, uncorrected, uncorrected_inactive, is_pending, has_failed;
};
NVML_LAYOUT(struct remapped_rows_v2, 24);

EXPORT nvml_return nvmlDeviceGetRemappedRows_v2(struct nvml_device *device, struct remapped_rows_v2 *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetRemappedRows_v2, device, CAN(REMAP), ret);
    if (r != NVML_SUCCESS) return r;
    *ret = (struct remapped_rows_v2){
        .corrected = q.s.remapped_corrected,
        .uncorrected = q.s.remapped_uncorrected,
        .is_pending = q.s.remap_pending != 0,
        .has_failed = q.s.remap_failed != 0,
    };
    return NVML_SUCCESS;
}

/* Every bank has spare rows; a remapped row takes one bank from all spares left to most left. Banks are those of whole
   memory stacks, also where the bus leaves some of the last one out. */
enum { STACK_BITS = 1024 };

EXPORT nvml_return nvmlDeviceGetRowRemapperHistogram(struct nvml_device *device, struct nvml_remapper_histogram *ret) {
    struct ask q;
    nvml_return r = ask_device(&q, CALL_nvmlDeviceGetRowRemapperHistogram, device, CAN(REMAP), ret);
    if (r != NVML_SUCCESS) return r;
    uint32_t stacks = (q.card->bus_width_bits + STACK_BITS - 1) / STACK_BITS * STACK_BITS;
    uint32_t banks = stacks / (q.card->architecture >= NVML_ARCH_HOPPER ? 2 : 8);
    uint32_t remapped = q.s.remapped_corrected + q.s.remapped_uncorrected;
    uint32_t none = q.s.remap_failed != 0;
    if (remapped > banks - none) remapped = banks - none;
    *ret = (struct nvml_remapper_histogram){.max = banks - remapped - none, .high = remapped, .none = none};
    return NVML_SUCCESS;
}
