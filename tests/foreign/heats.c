/* Two cards that work without a pause and are cooled too little, and a driver that keeps their limits when its clients die:
 * in the file $FOREIGN_STATE. The first has a power limit, the second only clocks that can be locked. Every call that sets
 * something is a line on standard error. */
#include "foreign.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POWER 0u

struct card_state {
    double temp_c, limit; /* watts, or MHz */
    struct timespec at;
};

static const struct {
    double most, least, degrees; /* of the whole limit, above the air */
} cards[] = {
    {700,  200, 75},
    {2000, 300, 75},
};

static struct card_state *kept;

static struct card_state *state(nvmlDevice_t device) {
    unsigned i = index_of(device);
    struct card_state *c = &kept[i];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double dt = (double)(now.tv_sec - c->at.tv_sec) + (double)(now.tv_nsec - c->at.tv_nsec) * 1e-9;
    double end = 25 + cards[i].degrees * c->limit / cards[i].most, way = dt / 0.7;
    c->temp_c += (end - c->temp_c) * (way > 1 ? 1 : way);
    c->at = now;
    return c;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    int fd = open(getenv("FOREIGN_STATE"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 4096) < 0) return UNKNOWN;
    kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    for (unsigned i = 0; i < 2; i++)
        if (kept[i].limit == 0) kept[i] = (struct card_state){.temp_c = 50, .limit = cards[i].most};
    return SUCCESS;
}
SAYS_CODE(nvmlShutdown, SUCCESS)
EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned length) {
    snprintf(to, length, "570.00");
    return SUCCESS;
}
HAS_CARDS(2)
HAS_HANDLES(2)
SAYS_TEXT(nvmlDeviceGetName, "NVIDIA Heats")
SAYS_UINT(nvmlDeviceGetArchitecture, 7)
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned length) {
    snprintf(to, length, "GPU-4ea75000-0000-0000-0000-00000000000%u", index_of(device));
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *to) {
    *to = (unsigned)state(device)->temp_c;
    return SUCCESS;
}

#define OF_POWER(function, milliwatts)                                                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *to) {                                                  \
        if (index_of(device) != POWER) return NOT_SUPPORTED;                                                           \
        *to = (unsigned)(milliwatts);                                                                                  \
        return SUCCESS;                                                                                                \
    }
OF_POWER(nvmlDeviceGetPowerUsage, state(device)->limit * 1000)
OF_POWER(nvmlDeviceGetPowerManagementLimit, state(device)->limit * 1000)
OF_POWER(nvmlDeviceGetEnforcedPowerLimit, state(device)->limit * 1000)
OF_POWER(nvmlDeviceGetPowerManagementDefaultLimit, 700000)

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *min, unsigned *max) {
    *min = 200000;
    *max = 700000;
    return index_of(device) == POWER ? SUCCESS : NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned mw) {
    fprintf(stderr, "set 0 %u\n", mw / 1000);
    if (index_of(device) != POWER || mw < 200000 || mw > 700000) return INVALID_ARGUMENT;
    state(device)->limit = mw / 1000.0;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *to) {
    *to = index_of(device) == POWER ? 1500 : (unsigned)state(device)->limit;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *to) {
    if (*count < 1) return INSUFFICIENT_SIZE;
    to[0] = 3000;
    *count = 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory, unsigned *count,
                                                         unsigned *to) {
    unsigned n = 0;
    for (unsigned mhz = 2000; mhz >= 300; mhz -= 50, n++)
        if (n < *count) to[n] = mhz;
    bool fits = n <= *count;
    *count = n;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned min, unsigned max) {
    fprintf(stderr, "set 1 %u\n", max);
    if (index_of(device) == POWER || min > max || max < 300 || max > 2000) return INVALID_ARGUMENT;
    state(device)->limit = max;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
    fprintf(stderr, "reset 1\n");
    state(device)->limit = 2000;
    return SUCCESS;
}
