/* Hopper with MIG: counters with the driver's rules enforced (whoever breaks one is aborted), instances with holes
 * between them and UUIDs as older drivers wrote them. */
#include "foreign.h"

#include <stdbool.h>
#include <time.h>

enum { MIG_FIRST = 100, PLACES = 7 };

typedef struct {
    unsigned metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName, *longName, *unit;
    } metricInfo;
} nvmlGpmMetric_t;
typedef struct sample {
    unsigned magic, instance;
    bool is_taken;
    struct timespec at;
} * nvmlGpmSample_t;
typedef struct {
    unsigned version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[];
} nvmlGpmMetricsGet_t;
typedef struct {
    unsigned version, isSupportedDevice;
} nvmlGpmSupport_t;
_Static_assert(sizeof(nvmlGpmMetric_t) == 40 && offsetof(nvmlGpmMetricsGet_t, metrics) == 24, "GPM");

static void rule(bool is_kept, const char *words) {
    if (is_kept) return;
    fprintf(stderr, "broken: %s\n", words);
    abort();
}

static bool is_mig(nvmlDevice_t device) { return index_of(device) >= MIG_FIRST; }

HAS_DRIVER("470.256.02")
HAS_CARDS(1)
HAS_HANDLES(1)
SAYS_TEXT(nvmlDeviceGetName, is_mig(device) ? "NVIDIA H100 80GB HBM3 MIG 3g.40gb" : "NVIDIA H100 80GB HBM3")
SAYS_UINT(nvmlDeviceGetArchitecture, 9)
SAYS_UINT(nvmlDeviceGetMaxMigDeviceCount, PLACES)

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *to, unsigned length) {
    const char *uuid = "GPU-b0990000-1111-2222-3333-444444444444";
    if (is_mig(device))
        snprintf(to, length, "MIG-%s/%u/0", uuid, index_of(device) - MIG_FIRST);
    else
        snprintf(to, length, "%s", uuid);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *to) {
    rule(!is_mig(device), "an instance has no power of its own");
    *to = 123000;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *to) {
    rule(!is_mig(device), "an instance has no utilisation");
    return NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *next) {
    *now = *next = 1;
    return is_mig(device) ? INVALID_ARGUMENT : SUCCESS;
}

/* Places 1 and 4 hold instances; their GPU instance ids are 2 and 5. */
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned place, nvmlDevice_t *to) {
    rule(!is_mig(device) && place < PLACES, "places 0 to 6 of the card");
    if (place != 1 && place != 4) return NOT_FOUND;
    *to = card(MIG_FIRST + place + 1);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *to) {
    *to = index_of(device) - MIG_FIRST;
    return is_mig(device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *to) {
    *to = 0;
    return is_mig(device) ? SUCCESS : NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
    if (m->version != 0x02000028) return VERSION_MISMATCH;
    unsigned long long gib = 1ull << 30;
    m->total = is_mig(device) ? 40 * gib : 80 * gib;
    m->used = is_mig(device) ? index_of(device) * gib / 100 : 3 * gib;
    m->reserved = 0;
    m->free = m->total - m->used;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, process_24 *to) {
    unsigned gi = index_of(device) - MIG_FIRST;
    if (is_mig(device) && *count >= 1) to[0] = (process_24){8000 + gi, 88, gi, 0};
    *count = is_mig(device);
    return SUCCESS;
}

/* ---- GPM ---- */

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *to) {
    rule(to->version == 1, "the version of GPM's support is 1");
    to->isSupportedDevice = 1;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *to) {
    *to = calloc(1, sizeof **to);
    (*to)->magic = 0x6b4d;
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t s) {
    rule(s && s->magic == 0x6b4d, "a sample is freed once");
    s->magic = 0;
    free(s);
    return SUCCESS;
}

static nvmlReturn_t take(nvmlGpmSample_t s, unsigned instance) {
    rule(s && s->magic == 0x6b4d, "a sample that was allocated");
    s->is_taken = true;
    s->instance = instance;
    clock_gettime(CLOCK_MONOTONIC, &s->at);
    return SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t s) {
    rule(!is_mig(device), "the card's samples are taken of the card");
    return take(s, 0);
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned instance, nvmlGpmSample_t s) {
    rule(!is_mig(device), "an instance's samples are asked of its card");
    return instance == 2 || instance == 5 ? take(s, instance) : INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m) {
    rule(m->version == 1, "the version of GPM's metrics is 1");
    rule(m->numMetrics > 0 && m->numMetrics <= 333, "as many metrics as there can be");
    rule(m->sample1 && m->sample2 && m->sample1 != m->sample2, "two samples");
    rule(m->sample1->is_taken && m->sample2->is_taken && m->sample1->instance == m->sample2->instance, "of one thing");
    long long apart_ms = (m->sample2->at.tv_sec - m->sample1->at.tv_sec) * 1000ll +
                         (m->sample2->at.tv_nsec - m->sample1->at.tv_nsec) / 1000000;
    rule(apart_ms >= 100, "samples are 100 ms apart");
    for (unsigned i = 0; i < m->numMetrics; i++) {
        nvmlGpmMetric_t *one = &m->metrics[i];
        one->nvmlReturn = one->metricId == 12 ? NOT_SUPPORTED : SUCCESS;
        one->value = one->metricId == 2    ? 40.5 + m->sample1->instance
                     : one->metricId == 5  ? 100.4 /* rounding */
                     : one->metricId == 10 ? 140.0 /* nonsense */
                     : one->metricId == 20 ? 3     /* MiB a second */
                     : one->metricId == 12 ? 77
                                           : 0.0 / 0.0;
    }
    return SUCCESS;
}

/* GPM tells the traffic at a lower price. */
EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned way, unsigned *to) {
    rule(false, "this call takes 20 ms and is not needed here");
    return UNKNOWN;
}
