/* Ada: absolute thresholds are gone, the distances to the limit are there. Fields from 269 on make the whole batch
 * fail, as a driver may that has not heard of them. The graphics list is dear. */
#include "foreign.h"

#include <unistd.h>

HAS_DRIVER("550.90.07")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetUUID, "GPU-ada00000-0000-0000-0000-000000000009")
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA GeForce RTX 4090")
SAYS_CODE(nvmlDeviceGetTemperatureThreshold, NOT_SUPPORTED)

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    *to = 52;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int n, nvmlFieldValue_t *f) {
    for (int i = 0; i < n; i++)
        if (f[i].fieldId >= 269) return INVALID_ARGUMENT;
    for (int i = 0; i < n; i++) {
        nvmlFieldValue_t *one = &f[i];
        one->nvmlReturn = NOT_SUPPORTED;
        if (one->fieldId == 74) ANSWER(one, T_ULLONG, ullVal, 5000000000ull);
        if (one->fieldId == 193) ANSWER(one, T_INT, siVal, -7);
        if (one->fieldId == 194) ANSWER(one, T_UINT, uiVal, (unsigned)-2);
        if (one->fieldId == 196) ANSWER(one, T_INT, siVal, 0);
    }
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    *count = 0;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    usleep(4500);
    to[0] = (process_24){9001, 64ull << 20, ~0u, ~0u};
    *count = 1;
    return SUCCESS;
}
