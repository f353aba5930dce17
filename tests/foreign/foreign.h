/* NVML once more, for libraries that gpumgr's own declarations must not help: sizes and offsets are written here a
 * second time, from the interface's description, so that a mistake in one of the two is seen. Each library is one
 * source of this directory and knows nothing of the others. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25,
    UNKNOWN = 999
};

typedef int nvmlReturn_t;
typedef struct foreign_card *nvmlDevice_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t; /* _v3 */
typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;
typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
} process_16;
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} process_24;
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} process_32;
typedef union {
    double dVal;
    int siVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    unsigned short usVal;
} nvmlValue_t;
enum { T_DOUBLE, T_UINT, T_ULONG, T_ULLONG, T_SLLONG, T_INT, T_USHORT };
typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct {
    unsigned pid;
    unsigned long long timeStamp;
    unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct {
    unsigned version, sensorType;
    int temperature;
} nvmlTemperature_t;
typedef struct {
    unsigned version;
    int marginTemperature;
} nvmlMarginTemperature_t;

_Static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36, "PCI");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "memory v2");
_Static_assert(sizeof(process_16) == 16 && sizeof(process_24) == 24 && sizeof(process_32) == 32, "processes");
_Static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, value) == 32, "field values");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "process utilisation");

/* Functions that always say the same. */
#define SAYS_TEXT(function, text)                                                                                      \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *to, unsigned length) {                                     \
        if (strlen(text) >= length) return INSUFFICIENT_SIZE;                                                          \
        snprintf(to, length, "%s", text);                                                                              \
        return SUCCESS;                                                                                                \
    }
#define SAYS_UINT(function, number)                                                                                    \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *to) {                                                  \
        *to = (number);                                                                                                \
        return SUCCESS;                                                                                                \
    }
#define SAYS_CODE(function, code)                                                                                      \
    EXPORT nvmlReturn_t function(void) { return (code); }

#define HAS_DRIVER(version)                                                                                            \
    SAYS_CODE(nvmlInit_v2, SUCCESS)                                                                                    \
    SAYS_CODE(nvmlShutdown, SUCCESS)                                                                                   \
    EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned length) {                                        \
        snprintf(to, length, "%s", version);                                                                           \
        return SUCCESS;                                                                                                \
    }
#define HAS_CARDS(count)                                                                                               \
    EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *to) {                                                          \
        *to = (count);                                                                                                 \
        return SUCCESS;                                                                                                \
    }

/* A card is its number plus one: never NULL, never to be looked into. */
static inline nvmlDevice_t card(unsigned index) { return (nvmlDevice_t)(uintptr_t)(index + 1); }
static inline unsigned index_of(nvmlDevice_t device) { return (unsigned)(uintptr_t)device - 1; }

#define HAS_HANDLES(count)                                                                                             \
    EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *to) {                              \
        if (index >= (count)) return INVALID_ARGUMENT;                                                                 \
        *to = card(index);                                                                                             \
        return SUCCESS;                                                                                                \
    }

#define ANSWER(field, type, member, number)                                                                            \
    ((field)->valueType = (type), (field)->value.member = (number), (field)->nvmlReturn = SUCCESS)
