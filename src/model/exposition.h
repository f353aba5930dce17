/* The catalogue as Prometheus text. Walks metrics.def: a metric that is absent on a card has no line, a lost card has
 * none but gpu_up 0, and XIDs are counters by code. Pure: values in, text out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/inventory.h"
#include "model/metrics.h"
#include "model/ring.h"

/* One GPU or MIG instance as it is now. */
struct exposition_gpu {
    const struct inventory *is;
    const char *host;
    const double *value; /* METRIC_COUNT of them */
    const uint64_t *has; /* which of them are current: SAMPLE_WORDS words */
    const struct ring_xids *xids;
    bool is_up;
};

void exposition_gpus(struct buf *out, const struct exposition_gpu *gpus, size_t n);

/* The same under the names, labels and units that dcgm-exporter gives them. */
void exposition_dcgm(struct buf *out, const struct exposition_gpu *gpus, size_t n);

/* What the writers are made of, for other families: HELP and TYPE, then a line a sample. Labels are pairs, NULL ends. */
void exposition_family(struct buf *out, const char *name, const char *help, const char *type);
void exposition_label(struct buf *out, bool is_first, const char *name, const char *value);
void exposition_value(struct buf *out, double value);
