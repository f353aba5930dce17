/* History: every reading for days, one-minute and one-hour rollups for a year, and events, in a database of its own.
 *
 * A reading goes into memory (history_add), within seconds into a flush row (history_flush), some minutes later into
 * blocks, one a subject, with their rollups (history_work), and by and by into longer blocks that are a tenth of the
 * size. Queries look at all of it, so that nobody needs to know where a reading is just now.
 *
 * Threads: handle, add, event_add from one thread (the main loop: memory only, never a disk); flush and work from one
 * other (the store thread); each thread that queries has a reader of its own. stats from any.
 *
 * Durability: what history_flush has returned for survives kill -9 of any process at any moment. The file is in WAL mode
 * with synchronous=NORMAL: commits are not synced one by one, the WAL is synced once a minute by history_work, so a power
 * cut costs the last minute at most and never leaves a damaged file. (A sync with each flush would be half of all that
 * history costs, and keep disks awake.) The ring is the spool: what
 * was not yet flushed when the server dies is asked for again by the marker (history_marker).
 *
 * Times are milliseconds of the wall clock since 1970. They may jump or go back: readings are kept under the time that
 * they bring. Of several readings of a series with the same time the last counts, also in rollups as long as the others are
 * still in memory. What a node sends again after a crash is not counted twice: a flush holds what its marker says
 * (history_seal), and only what was flushed becomes blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/event.h"
#include "model/series_roll.h"

struct history;
struct history_reader;

struct history_options { /* 0: the default */
    int keep_days;       /* readings: 7 */
    int rollup_days;     /* minutes and hours, and events: 366 */
    int64_t part_ms;     /* how long readings stay in memory: 5 minutes */
    size_t part_samples; /* and how many at most before they are written as blocks: 512 Ki (12 bytes each) */
};

/* Opens or makes the file (0600). -EBUSY: another process has it open; -EPROTO: it is newer than this program;
 * -EBADMSG: it is no history, or damaged. */
int history_open(const char *path, const struct history_options *options, struct history **ret, struct error *e)
    MUST_CHECK;
/* Flush before: what was not is dropped. NULL is allowed. No reader may be left. */
void history_close(struct history *h);

/* The blob that was stored with the last flush, empty when there was none; valid until the next flush. */
void history_marker(const struct history *h, const void **ret, size_t *ret_len);

/* A series: what is measured of whom ("gpu:UUID", "host:NAME"), with the worth of one step (0: none). The same names give
 * the same handle. Below 0: -EINVAL for a name that is empty or over 200 bytes, -ENOSPC after a million, or 65,536 of one subject. */
int history_handle(struct history *h, const char *subject, const char *metric, double scale, struct error *e)
    MUST_CHECK;

struct history_value {
    int series;
    double value;
};
/* One round's readings. Those that are no number are left out: a gap is a gap. How many were taken; -ERANGE for a
 * time before 1970 or after 2280; -ENOSPC when nothing could be stored for so long that memory is used up: what comes
 * then is dropped and counted (history_stats). */
int history_add(struct history *h, int64_t at_ms, const struct history_value *values, size_t n);

struct history_event {
    int64_t id; /* rises with the time; of use as a cursor. Set by history */
    int64_t at_ms;
    int severity; /* enum event_severity */
    int code, pid;
    char subject[208]; /* "gpu:UUID", "host:NAME" or "" */
    char kind[24], text[168];
};
/* Its id; -EINVAL, -ERANGE, -ENOSPC as above. */
int64_t history_event_add(struct history *h, const struct history_event *event);

/* From the thread that adds: the next flush stores what came before this and no more, so that its marker can be made now
 * and is true. Whoever does not seal has all stored that is there when the flush begins. */
void history_seal(struct history *h);

/* Stores what came since the last flush and the marker in one transaction. On failure nothing is lost from memory, and
 * the next flush tries again. Returns how many readings were stored. */
int history_flush(struct history *h, const void *marker, size_t marker_len, struct error *e) MUST_CHECK;

/* One bounded piece of what else is to be done: blocks, merging, retention, syncing. Returns 1 when there is more, 0 when
 * all is done for now; call it after each flush until it says 0 or the next flush is due. A row that cannot be read is
 * left where it is, said once, and does not keep the rest from its work. */
int history_work(struct history *h, int64_t now_ms, struct error *e) MUST_CHECK;

struct history_stats {
    uint64_t added, dropped, flushes, parts, merges, deleted_rows, damaged_rows;
    size_t memory_samples, series, subjects;
};
void history_stats(struct history *h, struct history_stats *ret);

/* ---- queries ---- */
int history_reader_open(struct history *h, struct history_reader **ret, struct error *e) MUST_CHECK;
void history_reader_close(struct history_reader *r);

enum history_tier { HISTORY_RAW, HISTORY_MINUTE, HISTORY_HOUR };
const char *history_tier_name(enum history_tier t);

struct history_ask {
    const char *const *subjects;
    size_t subject_count;
    const char *metric;
    int64_t from_ms, to_ms; /* from <= time < to */
    int64_t step_ms;        /* 0: what width needs */
    size_t width;           /* points wanted; with a step it is not looked at */
    enum together together; /* for several subjects; sums add up least, mean and greatest each */
};

/* Times rise. Without a step the points are readings, and min and max are NULL; a NaN between two of them marks a gap
 * (three times as long as usual). With one, a point begins at its time and lasts for the step; NaN where nothing was
 * read. At most twice the width; steps are whole minutes or hours where they come from rollups. With several subjects a
 * reading counts until the next one is due, so that rounds that are not quite together do not make holes in a sum. */
struct history_answer {
    enum history_tier tier;
    int64_t step_ms; /* 0: readings */
    size_t n;
    int64_t *at_ms;
    double *min, *mean, *max;
    struct history_read {
        uint64_t rows[3]; /* database rows, by tier */
        uint64_t memory;  /* readings that were in memory */
    } read;
};
void history_answer_done(struct history_answer *a);

/* Unknown subjects and metrics have no points. -EINVAL for a range or step that makes no sense, or over 200,000 points. */
int history_query(struct history_reader *r, const struct history_ask *ask, struct history_answer *ret, struct error *e)
    MUST_CHECK;

struct history_events_ask {
    int64_t from_ms, to_ms;     /* to 0: all */
    int severity;               /* at least */
    const char *subject, *kind; /* NULL: any */
    int64_t before;             /* id: only older ones; 0: from the newest */
    size_t limit;               /* at most 1000 */
};
/* The newest first, in ret (room for limit). How many. */
int history_events(struct history_reader *r, const struct history_events_ask *ask, struct history_event *ret,
                   struct error *e) MUST_CHECK;
