#include "model/metrics.h"

#include <string.h>

const struct metric metrics[METRIC_COUNT] = {
#define METRIC(i, n, u, k, kp, s, d, h)                                                                                \
    [METRIC_##i] = {                                                                                                   \
        .name = (n), .dcgm = (d), .help = (h), .scale = (s), .unit = UNIT_##u, .kind = KIND_##k, .keep = KEEP_##kp},
#include "model/metrics.def"
#undef METRIC
};

int metric_find(const char *name) {
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i].name, name) == 0) return i;
    return -1;
}

const char *metric_unit_name(enum metric_unit unit) {
    static const char *const names[] = {"ratio", "celsius", "watts",   "joules", "bytes", "bytes_per_second",
                                        "hertz", "seconds", "boolean", "number"};
    return names[unit];
}

const char *metric_kind_name(enum metric_kind kind) { return kind == KIND_COUNTER ? "counter" : "gauge"; }

static uint64_t fnv(uint64_t h, const void *bytes, unsigned long n) {
    const unsigned char *p = bytes;
    while (n--) h = (h ^ *p++) * 0x100000001b3ull;
    return h;
}

uint64_t metric_catalogue_hash(void) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (int i = 0; i < METRIC_COUNT; i++) {
        h = fnv(h, metrics[i].name, strlen(metrics[i].name) + 1);
        h = fnv(h, &metrics[i].unit, sizeof metrics[i].unit);
        h = fnv(h, &metrics[i].kind, sizeof metrics[i].kind);
    }
    return h;
}
