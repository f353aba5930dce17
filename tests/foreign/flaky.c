/* One call in seven, at no regular distance, fails for no reason, and the card is lost while the file FOREIGN_LOST exists. */
#include "foreign.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic unsigned calls;

static nvmlReturn_t today(void) {
    const char *lost = getenv("FOREIGN_LOST");
    if (lost && access(lost, F_OK) == 0) return GPU_IS_LOST;
    return (atomic_fetch_add(&calls, 1) * 2654435761u >> 16) % 7 == 6 ? UNKNOWN : SUCCESS;
}

HAS_DRIVER("575.57.08")
HAS_CARDS(1)
HAS_HANDLES(1)

#define TEXT_TODAY(function, text)                                                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *to, unsigned length) {                                     \
        nvmlReturn_t code = today();                                                                                   \
        if (code == SUCCESS) snprintf(to, length, "%s", text);                                                         \
        return code;                                                                                                   \
    }
#define UINT_TODAY(function, number)                                                                                   \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *to) {                                                  \
        nvmlReturn_t code = today();                                                                                   \
        *to = code == SUCCESS ? (number) : 0xdeadbeef;                                                                 \
        return code;                                                                                                   \
    }
TEXT_TODAY(nvmlDeviceGetUUID, "GPU-f1a40000-0000-0000-0000-000000000006")
TEXT_TODAY(nvmlDeviceGetName, "NVIDIA RTX 6000 Ada Generation")
TEXT_TODAY(nvmlDeviceGetSerial, "1321321032132")
TEXT_TODAY(nvmlDeviceGetVbiosVersion, "95.02.4A.00.02")
UINT_TODAY(nvmlDeviceGetPowerUsage, 80500)
UINT_TODAY(nvmlDeviceGetEnforcedPowerLimit, 300000)
UINT_TODAY(nvmlDeviceGetPowerManagementLimit, 290000)
UINT_TODAY(nvmlDeviceGetPowerManagementDefaultLimit, 300000)
UINT_TODAY(nvmlDeviceGetPerformanceState, 2)

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    nvmlReturn_t code = today();
    if (code == SUCCESS) *to = 66;
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    nvmlReturn_t code = today();
    if (code != SUCCESS) return code;
    *to = (process_24){7001, 7777, ~0u, ~0u};
    *count = 1;
    return SUCCESS;
}
