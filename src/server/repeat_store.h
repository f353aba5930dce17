/* Repeating jobs as rows of the state file: what was handed in, up to which time all is decided, and what became of its last
 * times. On the store thread (or before it starts), each call within one transaction. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/repeat.h"
#include "server/state_sql.h"

enum { REPEAT_SLOTS_KEPT = 200 }; /* of each, the newest */

struct repeat_row {
    int64_t id, made_ns, mark_s;
    uint32_t uid;
    const char *user, *account, *node, *zone; /* zone: what an empty one meant when it was handed in */
    uint8_t origin;                           /* enum queue_origin */
    bool is_paused;
    const void *record, *seal;
    size_t record_len, seal_len;
    const void *times; /* words that count instead of the record's; NULL: it was not changed since */
    size_t times_len;
    const char *ask; /* the key that it was handed in by; NULL: none */
};

int repeat_store_add(struct sql *db, const struct repeat_row *row, int64_t *ret_id, struct error *e) MUST_CHECK;
/* Of the one that was handed in by this key: 1; 0: there is none. */
int repeat_store_asked(struct sql *db, const char *ask, int64_t *ret_id, struct error *e) MUST_CHECK;
int repeat_store_remove(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
/* -ENOENT: there is none of that number. */
int repeat_store_pause(struct sql *db, int64_t id, bool is_paused, struct error *e) MUST_CHECK;

/* What it is made of from now on: zone, record, seal, times, account, origin. changed_s: no time before that is anybody's any more.
 * mark_s: as with repeat_store_slots, but it may be there already. */
int repeat_store_change(struct sql *db, const struct repeat_row *row, int64_t changed_s, struct error *e) MUST_CHECK;

/* Times that are decided, and the mark up to which all is: only forwards. -ESTALE: it is there already. -EEXIST: the one that is
 * to run ran before. job: of the one that runs, or 0. */
int repeat_store_slots(struct sql *db, int64_t id, const struct repeat_slot *slots, size_t count, int64_t mark_s,
                       int64_t job, struct error *e) MUST_CHECK;
/* Without a time of its own. */
int repeat_store_by_hand(struct sql *db, int64_t id, int64_t now_s, int64_t job, struct error *e) MUST_CHECK;
/* The clock was far ahead: what is noted of times to come goes, but for those that ran; the mark goes back to the last time that was
 * decided before, so that those since then are decided, too; not before it was last changed. */
int repeat_store_back(struct sql *db, int64_t id, int64_t now_s, int64_t *ret_mark_s, struct error *e) MUST_CHECK;
/* How the job of a time ended: it stays known when the job itself is forgotten. */
int repeat_store_end(struct sql *db, int64_t job, int state, struct error *e) MUST_CHECK;

struct repeat_reader {
    void *ctx;
    int (*repeat)(void *ctx, const struct repeat_row *row, struct error *e);
    void (*open)(void *ctx, int64_t repeat, int64_t job); /* a job of it that is not over, in order */
};
/* All of them. Ends of jobs that nobody noted are noted first. */
int repeat_store_read(struct sql *db, const struct repeat_reader *r, struct error *e) MUST_CHECK;

struct repeat_slot_row {
    int64_t repeat, at_s, job, count;
    enum repeat_fate fate;
    int state; /* enum job_state of its job where that is over; -1: it is not, or there is none */
};
/* The newest first. repeat 0: of all, each its newest. */
int repeat_store_list(struct sql *db, int64_t repeat, int most,
                      void (*each)(void *ctx, const struct repeat_slot_row *row), void *ctx, struct error *e)
    MUST_CHECK;
