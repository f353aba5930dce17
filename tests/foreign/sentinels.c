/* A current driver on a bad day: every way of saying "no idea" that is known, beside figures that are true. */
#include "foreign.h"

#define ALL_BITS 0xffffffffu
#define NO_MEMORY (~0ull)

HAS_DRIVER("590.10")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-5e471e15-0000-0000-0000-000000000003")
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA Bad Day 90")
SAYS_UINT(nvmlDeviceGetPowerUsage, ALL_BITS)
SAYS_UINT(nvmlDeviceGetPowerManagementLimit, ALL_BITS)
SAYS_UINT(nvmlDeviceGetEnforcedPowerLimit, 350000)
SAYS_UINT(nvmlDeviceGetPowerManagementDefaultLimit, ALL_BITS)
SAYS_UINT(nvmlDeviceGetPerformanceState, 32)
SAYS_UINT(nvmlDeviceGetCurrPcieLinkGeneration, ALL_BITS)
SAYS_UINT(nvmlDeviceGetCurrPcieLinkWidth, 8)
SAYS_UINT(nvmlDeviceGetMaxPcieLinkGeneration, ALL_BITS)
SAYS_UINT(nvmlDeviceGetPcieReplayCounter, ALL_BITS)
SAYS_UINT(nvmlDeviceGetNumFans, 2)
SAYS_CODE(nvmlDeviceGetConfComputeMemSizeInfo, NOT_SUPPORTED)
SAYS_CODE(nvmlDeviceGetRunningProcessDetailList, NOT_SUPPORTED)

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned *min, unsigned *max) {
    *min = ALL_BITS;
    *max = 0;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *t) {
    return t->version == 0x0100000c ? NOT_SUPPORTED : VERSION_MISMATCH;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    *to = ALL_BITS;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *t) {
    t->marginTemperature = 4096;
    return t->version == 0x01000008 ? SUCCESS : VERSION_MISMATCH;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *to) {
    *to = (nvmlUtilization_t){.gpu = 4711, .memory = 55};
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *to, unsigned *window_us) {
    *to = 101;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *to, unsigned *window_us) {
    *to = 100;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
    if (m->version != 0x02000028) return VERSION_MISMATCH;
    m->total = 24ull << 30;
    m->reserved = 400ull << 20;
    m->free = ~0ull;
    m->used = (24ull << 30) + 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *to) {
    *to = type == 1 ? ALL_BITS : 1500 + type;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned fan, unsigned *to) {
    *to = fan == 0 ? ALL_BITS : 45;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *to) {
    *to = ~0ull;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned error, unsigned counter,
                                                unsigned long long *to) {
    if (error == 0) return NOT_SUPPORTED; /* of the corrected ones it tells nothing */
    *to = counter == 0 ? 7 : ~0ull;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *cor, unsigned *unc, unsigned *pending,
                                              unsigned *failed) {
    *cor = 3;
    *unc = ALL_BITS;
    *pending = 1;
    *failed = 0;
    return SUCCESS;
}

/* Unknown fields are left as they came. */
static void field(nvmlFieldValue_t *f) {
    switch (f->fieldId) {
    case 82: ANSWER(f, T_INT, siVal, -1); break;               /* memory temperature */
    case 186: ANSWER(f, T_DOUBLE, dVal, 123456.0); break;      /* instant power, mW */
    case 74: ANSWER(f, T_ULLONG, ullVal, ~0ull); break;        /* held by power, ns */
    case 75: ANSWER(f, T_SLLONG, sllVal, 2500000000ll); break; /* held by heat, ns */
    case 76: ANSWER(f, T_INT, siVal, -5); break;               /* held by sync boost, ns */
    case 77: f->nvmlReturn = NOT_SUPPORTED; break;             /* board limit */
    case 78: ANSWER(f, T_ULONG, ulVal, 1000000000ul); break;   /* low utilisation, ns */
    case 79: ANSWER(f, 99, ullVal, 1000000000ull); break;      /* a type that nobody knows */
    case 29: ANSWER(f, T_USHORT, usVal, 0xffff); break;        /* pages retired */
    case 30: ANSWER(f, T_USHORT, usVal, 4); break;
    case 31: ANSWER(f, T_UINT, uiVal, ALL_BITS); break;
    case 193: ANSWER(f, T_UINT, uiVal, (unsigned)-8); break; /* T.Limit: signed, in whatever slot */
    case 194: ANSWER(f, T_ULLONG, ullVal, (unsigned long long)-2ll); break;
    case 195: ANSWER(f, T_ULLONG, ullVal, 0xfffffffdull); break;
    case 196: ANSWER(f, T_DOUBLE, dVal, 1e300); break;
    default: break;
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int n, nvmlFieldValue_t *f) {
    for (int i = 0; i < n; i++) field(&f[i]);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    static const process_24 all[] = {
        {0,    1000,      ~0u, ~0u},
        {6001, NO_MEMORY, ~0u, ~0u},
        {6002, 2000,      ~0u, ~0u}
    };
    memcpy(to, all, sizeof all);
    *count = 3;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    static const process_24 all[] = {
        {6002, NO_MEMORY,             ~0u, ~0u},
        {6001, 3000,                  ~0u, ~0u},
        {6003, 0xffffffffffull << 20, ~0u, ~0u}
    };
    memcpy(to, all, sizeof all);
    *count = 3;
    return SUCCESS;
}
