/* Two cards that report errors. While the file FOREIGN_LOST exists the first is lost, and a set of events with a lost
 * card in it tells nothing but that. The file FOREIGN_XID, when it appears, becomes one XID 94 of the second. */
#include "foreign.h"

#include <unistd.h>

enum { TIMEOUT = 10 };

typedef struct event_set {
    unsigned cards;
} * nvmlEventSet_t;
typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
_Static_assert(sizeof(nvmlEventData_t) == 32, "event");

static int is_there(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

static int is_lost(unsigned index) { return index == 0 && is_there("FOREIGN_LOST"); }

HAS_DRIVER("565.57.01")
HAS_CARDS(2)
HAS_HANDLES(2)
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA L4")
SAYS_TEXT(nvmlDeviceGetUUID,
          index_of(device) ? "GPU-e7e40000-0000-0000-0000-00000000000b" : "GPU-e7e40000-0000-0000-0000-00000000000c")

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *to) {
    *to = 30000;
    return is_lost(index_of(device)) ? GPU_IS_LOST : SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *to) {
    *to = 0xf;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *to) {
    *to = calloc(1, sizeof **to);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    if (is_lost(index_of(device))) return GPU_IS_LOST;
    set->cards |= 1u << index_of(device);
    return types & ~0xfull ? INVALID_ARGUMENT : SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *to, unsigned timeout_ms) {
    for (unsigned waited_ms = 0; waited_ms < timeout_ms; waited_ms += 10) {
        if ((set->cards & 1) && is_lost(0)) return GPU_IS_LOST;
        if ((set->cards & 2) && is_there("FOREIGN_XID")) {
            unlink(getenv("FOREIGN_XID"));
            *to = (nvmlEventData_t){card(1), 0x8, 94, ~0u, ~0u};
            return SUCCESS;
        }
        usleep(10000);
    }
    return TIMEOUT;
}
