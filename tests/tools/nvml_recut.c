/* A driver whose MIG layout changes while it is open, which the simulator's does not: the simulated library with two
 * calls before it. As long as the file that RECUT_FILE names is there, MIG is off. What is not defined here is found in
 * the library that this one needs. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NOT_FOUND 6

struct device;
int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **ret);

/* One use of that library, or the linker would leave it out. */
const char *nvmlErrorString(int code);
extern const char *(*const nvml_recut_needs)(int);
EXPORT const char *(*const nvml_recut_needs)(int) = nvmlErrorString;

static int is_off(void) {
    const char *path = getenv("RECUT_FILE");
    return path && access(path, F_OK) == 0;
}

EXPORT int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending) {
    int (*next)(struct device *, unsigned *, unsigned *);
    void *at = dlsym(RTLD_NEXT, "nvmlDeviceGetMigMode");
    memcpy(&next, &at, sizeof next);
    int r = next(device, current, pending);
    if (r == 0 && is_off()) *current = *pending = 0;
    return r;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **ret) {
    int (*next)(struct device *, unsigned, struct device **);
    void *at = dlsym(RTLD_NEXT, "nvmlDeviceGetMigDeviceHandleByIndex");
    memcpy(&next, &at, sizeof next);
    return is_off() ? NOT_FOUND : next(device, index, ret);
}
