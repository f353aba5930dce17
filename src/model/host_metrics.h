/* The catalogue of what is watched of the machine itself: rows as in model/metrics.h, walked in the same way. */
#pragma once

#include <stdbool.h>

#include "model/metrics.h"
#include "model/sample.h"

enum host_metric_id {
#define METRIC(id, name, unit, kind, keep, scale, dcgm, help) METRIC_##id,
#include "model/host_metrics.def"
#undef METRIC
    HOST_METRIC_COUNT
};

extern const struct metric host_metrics[HOST_METRIC_COUNT];

/* The id of a name, or -1. */
int host_metric_find(const char *name);

/* One reading of the machine; absent is never zero. */
#define HOST_WORDS ((HOST_METRIC_COUNT + 63) / 64)

struct host_sample {
    int64_t boot_ns, real_ns;
    uint64_t has[HOST_WORDS];
    double value[HOST_METRIC_COUNT];
};

static inline bool host_has(const struct host_sample *s, int id) { return bits_test(s->has, id); }

static inline void host_put(struct host_sample *s, int id, double value) {
    if (!__builtin_isfinite(value)) return;
    s->value[id] = value;
    bits_set(s->has, id);
}
