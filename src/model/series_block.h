/* A block: all series of one subject over a window of time, as one blob. Times are stored once for all series that were
 * read together: a series names its timeline, and one that missed a round now and then a subset of another's. A
 * directory in front tells where each column lies, so that a reader fetches what it needs and no more.
 *
 *   u8 format, u8 columns a series, u32 length of the directory, directory, columns
 *   directory: timelines {count, parent, length}, series {id, timeline, kind, step, lengths}, as varints
 *
 * Raw blocks have one column a series, the values. Rollup blocks have four: see series_roll.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/series.h"

enum { BLOCK_HEAD_BYTES = 6, BLOCK_RAW_COLUMNS = 1, BLOCK_ROLL_COLUMNS = 4, BLOCK_COLUMNS_MAX = 4 };
#define BLOCK_SERIES_MAX 65536u

/* Making one. Zero is valid. */
struct block_writer {
    struct series_coder *coder;
    enum series_effort effort;
    unsigned columns;
    struct block_times {
        int64_t *at_ms;
        size_t n;
        uint64_t hash;
        bool is_own;
    } * times;
    size_t times_count, times_room, series_count;
    uint64_t last_id;
    struct buf times_list, series_list, times_bytes, series_bytes;
    int64_t from_ms, until_ms; /* of what was added */
};

void block_begin(struct block_writer *w, struct series_coder *coder, unsigned columns, enum series_effort effort);
void block_writer_done(struct block_writer *w);

/* Adds a series: n rising times (equal ones are allowed) and its columns of n numbers each. Those with the most times
 * should come first. */
void block_add(struct block_writer *w, uint64_t id, const int64_t *at_ms, size_t n, enum series_kind kind, double step,
               const int64_t *const *columns);
void block_end(struct block_writer *w, struct buf *ret);

/* Reading one: first the directory, then single columns by where they lie. */
struct block_entry {
    uint64_t id;
    uint32_t times; /* which timeline */
    enum series_kind kind;
    double step; /* of SERIES_STEP */
    size_t offset[BLOCK_COLUMNS_MAX], len[BLOCK_COLUMNS_MAX];
};
struct block_timeline {
    size_t n, offset, len;
    uint32_t parent; /* 0: its own times, else one more than the timeline it picks from */
};
struct block {
    unsigned columns;
    struct block_timeline *times;
    struct block_entry *series;
    size_t times_count, series_count;
};

/* The first BLOCK_HEAD_BYTES of a blob: how long head and directory are together. */
int block_head(const uint8_t *bytes, size_t n, size_t blob_len, size_t *ret_len, struct error *e) MUST_CHECK;

/* Head and directory, n bytes of a blob of blob_len. */
int block_open(const uint8_t *bytes, size_t n, size_t blob_len, struct block *ret, struct error *e) MUST_CHECK;
void block_done(struct block *b);

const struct block_entry *block_find(const struct block *b, uint64_t id);

/* A source of a blob's bytes: memory, or a file that is read in pieces. The bytes are valid until the next call. */
struct block_source {
    int (*read)(void *ctx, size_t offset, size_t len, const uint8_t **ret, struct error *e);
    void *ctx;
};

/* The times of timeline t, in ret (room for its n). */
int block_times(const struct block *b, const struct block_source *from, struct series_coder *c, uint32_t t,
                int64_t *ret, struct error *e) MUST_CHECK;
int block_column(const struct block *b, const struct block_source *from, struct series_coder *c,
                 const struct block_entry *s, unsigned column, int64_t *ret, struct error *e) MUST_CHECK;
