/* Three GPUs: one may be seen, one may not, and of one neither UUID nor serial number is told. */
#include "foreign.h"

HAS_DRIVER("550.54.15")
HAS_CARDS(3)
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA L40S")
SAYS_UINT(nvmlDeviceGetPowerUsage, 33000)
SAYS_CODE(nvmlDeviceGetPowerManagementLimit, NO_PERMISSION)

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *to) {
    if (index == 1) return NO_PERMISSION;
    *to = card(index);
    return index < 3 ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned length) {
    if (index_of(device) == 2) return NO_PERMISSION;
    snprintf(to, length, "GPU-9e200000-0000-0000-0000-000000000005");
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *to, unsigned length) {
    if (index_of(device) == 2) return NO_PERMISSION;
    snprintf(to, length, "1320021000000");
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *to) {
    memset(to, 0, sizeof *to);
    snprintf(to->busId, sizeof to->busId, "00000000:%02X:00.0", 0x3b + index_of(device));
    return SUCCESS;
}
