/* A flush row: what was read since the row before, of all subjects, as one blob. It is written every few seconds and
 * read only after a restart, so it is quick to make and no smaller than it costs nothing.
 *
 *   u8 format; subjects {id, rounds, times, series {id, readings, which rounds, values}}, ends with subject 0
 *
 * Times are written once a round; a series that was read in every round needs no list of rounds, and one that stood still
 * is one number. The ids of a subject's series rise and are written as differences. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/series.h"

#define FLUSH_ROUNDS_MAX (1u << 22)

/* Writing: begin, then for each subject its rounds, then its series, then the end. */
struct flush_writer {
    struct buf *out;
    uint64_t last_id;
};
void flush_begin(struct flush_writer *w, struct buf *out);
void flush_subject(struct flush_writer *w, uint64_t id, const int64_t *at_ms, size_t rounds, size_t series);
/* Readings v of rounds number round[i] - first. kind: WHOLE or REAL. id: above that of the series before. */
void flush_series(struct flush_writer *w, uint64_t id, size_t rounds, const uint32_t *round, uint32_t first,
                  const int64_t *v, size_t n, enum series_kind kind);
void flush_end(struct flush_writer *w);

/* Reading: calls for each subject and each of its series, in order; a negative result ends the walk. Nothing but what
 * was given to the writer can come out: rounds are rising and there. */
struct flush_visit {
    int (*subject)(void *ctx, uint64_t id, const int64_t *at_ms, size_t rounds, struct error *e);
    int (*series)(void *ctx, uint64_t id, const uint32_t *round, const int64_t *v, size_t n, enum series_kind kind,
                  struct error *e);
};
int flush_walk(const uint8_t *bytes, size_t len, const struct flush_visit *visit, void *ctx, struct error *e)
    MUST_CHECK;
