#include "model/host_metrics.h"

#include <string.h>

const struct metric host_metrics[HOST_METRIC_COUNT] = {
#define METRIC(i, n, u, k, kp, s, d, h)                                                                                \
    [METRIC_##i] = {                                                                                                   \
        .name = (n), .dcgm = (d), .help = (h), .scale = (s), .unit = UNIT_##u, .kind = KIND_##k, .keep = KEEP_##kp},
#include "model/host_metrics.def"
#undef METRIC
};

int host_metric_find(const char *name) {
    for (int i = 0; i < HOST_METRIC_COUNT; i++)
        if (strcmp(host_metrics[i].name, name) == 0) return i;
    return -1;
}
