/* The metric catalogue: metrics.def gives each metric an id for the compiler and a row for everyone else.
 * Exporter, store, API, views and docs walk `metrics[]`; none names a metric. */
#pragma once

#include <stdint.h>

enum metric_id {
#define METRIC(id, name, unit, kind, keep, scale, dcgm, help) METRIC_##id,
#include "model/metrics.def"
#undef METRIC
    METRIC_COUNT
};

enum metric_unit {
    UNIT_RATIO,
    UNIT_CELSIUS,
    UNIT_WATTS,
    UNIT_JOULES,
    UNIT_BYTES,
    UNIT_BYTES_PER_SECOND,
    UNIT_HERTZ,
    UNIT_SECONDS,
    UNIT_BOOL,
    UNIT_NUMBER
};
enum metric_kind { KIND_GAUGE, KIND_COUNTER };
enum metric_keep { KEEP_MEAN, KEEP_MIN, KEEP_MAX };

struct metric {
    const char *name, *dcgm, *help;
    double scale;
    enum metric_unit unit;
    enum metric_kind kind;
    enum metric_keep keep;
};

extern const struct metric metrics[METRIC_COUNT];

/* The id of a name, or -1. */
int metric_find(const char *name);

const char *metric_unit_name(enum metric_unit unit);
const char *metric_kind_name(enum metric_kind kind);

/* Differs when a row was added, moved or changed: two programs with equal hashes agree on every id. */
uint64_t metric_catalogue_hash(void);
