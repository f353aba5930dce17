/* What the files of history share, and nobody else sees.
 *
 * Two locks. `lock` guards names, memory and counters; it is held for copying and never across a database call. `gate` is
 * held while a transaction that moves readings from memory into blocks is committed and the memory given up, and while
 * a reader takes its snapshot and its copy of memory: so a query sees each reading once. Gate before lock. */
#pragma once

#include <pthread.h>

#include "base/buf.h"
#include "server/history.h"
#include "server/history_class.h"
#include "server/history_db.h"

/* Readings of a series in memory: value and number of the round. */
struct run {
    double *v;
    uint32_t *round;
    uint32_t n, room;
    uint32_t flushed;  /* so many are in flush rows */
    uint32_t flushing; /* so many will be when the next flush is committed: up to the seal */
};
struct rounds {
    int64_t *at_ms;
    uint32_t n, room, flushed, flushing;
};

struct named_series {
    int64_t id;
    double scale;
    struct subject *subject;
    struct run now, old; /* old: being written as blocks by the store thread, which alone changes it */
    char name[];
};
struct subject {
    int64_t id;
    struct rounds now, old;
    struct named_series **series;
    size_t series_count, series_room;
    char name[];
};

/* Documents and words about them that are not yet flushed, in the order they came. */
enum waiting_kind { WAITING_TASK, WAITING_CONTAINER, WAITING_LOST };
struct waiting {
    enum waiting_kind kind;
    struct history_task task;
    struct history_container container;
    char *text; /* what the pointers in both point to */
};

struct history {
    pthread_mutex_t lock, gate;
    struct history_options options;
    char path[400];

    /* guarded by lock */
    struct subject **subjects;
    struct named_series **series; /* by handle */
    size_t subject_count, subject_room, series_count, series_room;
    uint32_t *places; /* hash table of handles + 1: subjects in one, series in the other */
    uint32_t *subject_places;
    size_t places_room, subject_places_room;
    struct history_event *events; /* not yet flushed */
    size_t event_count, event_room, events_sealed;
    int64_t last_event_id;
    struct waiting *waiting;
    size_t waiting_count, waiting_room, waiting_sealed;
    bool is_sealed; /* the flush to come has its limits */
    size_t samples, old_samples;
    struct history_stats stats;

    /* the store thread's */
    struct history_db *db;
    struct series_coder *coder;
    struct buf marker, row;
    int64_t flush_id, old_flush_id;
    size_t stored_subjects, stored_series; /* so many of the first have their names in the file */
    bool has_old;
    int64_t part_since_ms, synced_ms, settled_ms, last_now_ms;
    size_t sweep; /* the next of subjects x classes to look at */
    bool has_written, has_freed, has_parts, is_giving_back;
    int64_t damaged[64];
    size_t damaged_count;
    struct block_writer writers[3]; /* by tier */
    struct {
        int64_t *at, *v;
        size_t room;
    } scratch;
};

/* history_names.c: under lock */
struct subject *names_subject(struct history *h, const char *name);                       /* NULL: none */
struct subject *names_subject_make(struct history *h, const char *name, struct error *e); /* NULL: failed */
int names_load(struct history *h, struct error *e) MUST_CHECK;
struct named_series *names_series_by_id(struct history *h, int64_t id);
struct subject *names_subject_by_id(struct history *h, int64_t id);
void names_free(struct history *h);

/* history_memory.c: under lock */
void memory_add(struct history *h, struct named_series *s, int64_t at_ms, double v);
void run_done(struct run *r);
void rounds_done(struct rounds *r);
/* Everything in flush rows becomes old; what is not yet stays. */
void memory_cut(struct history *h);
void memory_drop_old(struct history *h);

/* history_tasks.c */
#define TASK_ROW_BITS 20
#define TASK_TIME_MAX_MS (1ll << 43)
#define TASK_ROWS_MAX 1000000 /* the oldest go first */
int64_t task_row(const struct history_task *t);
int waiting_store(struct history *h, const struct waiting *w, size_t n, struct error *e) MUST_CHECK;
void waiting_done(struct waiting *w);

/* history_part.c: what is old in memory becomes parts, and its flush rows go. */
int part_write(struct history *h, struct error *e) MUST_CHECK;
/* history_merge.c: all rows of class c in the window of the class above that holds `key` become one. */
int merge_window(struct history *h, struct subject *s, enum history_class c, int64_t key, struct error *e) MUST_CHECK;

/* The number after the last of a window; -ENOSPC when there is no more. */
int64_t block_next_key(struct history *h, enum history_class c, int64_t subject, int64_t window, struct error *e);

/* Columns of points, a growing piece of memory that is used again and again. */
struct points {
    int64_t *at_ms, *column[BLOCK_ROLL_COLUMNS];
    double *v;
    struct roll *rolls;
    size_t n, room;
};
void points_reserve(struct points *p, size_t n); /* keeps the first n that are there */
void points_done(struct points *p);
/* Rising times: sorts readings (at_ms and column[0]) where they are not. Of equal times the later stays. */
void points_sort(struct points *p);

/* Adds rolls to a block: in steps where they are whole, else in the unit. step: of the figures now; 1 with REAL. */
void rolls_put(struct block_writer *w, uint64_t id, struct points *p, struct roll *rolls, size_t n,
               enum series_kind kind, double step);

/* Room for n numbers in both scratch columns. */
void scratch_reserve(struct history *h, size_t n);
