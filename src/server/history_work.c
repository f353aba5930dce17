/* What is done beside flushing, a bounded piece at a time: parts out of memory, merging of windows that are over,
 * retention, free pages given back, and a sync at least once a minute. */
#include <errno.h>
#include <string.h>

#include "server/history_own.h"

#define SYNC_MS MS_PER_MINUTE
#define LATE_MS (5 * MS_PER_MINUTE) /* beyond the time that readings spend in memory: then a window counts as over */
#define CROWD 256                   /* parts that are merged although their window is not over: a clock far ahead */
#define DELETED_AT_ONCE 64
#define EVENTS_AT_ONCE 500
#define VACUUM_AT_ONCE 256
/* A clock that has just jumped may jump back: only when it has run on for so long is anything deleted by it. */
#define SETTLED_MS (10 * MS_PER_MINUTE)

static bool is_part_due(struct history *h, int64_t now_ms) {
    pthread_mutex_lock(&h->lock);
    size_t samples = h->samples;
    pthread_mutex_unlock(&h->lock);
    if (h->has_old) return true;
    if (samples == 0 || h->part_since_ms == 0 || now_ms < h->part_since_ms) h->part_since_ms = samples ? now_ms : 0;
    if (samples == 0) return false;
    return now_ms - h->part_since_ms >= h->options.part_ms || samples >= h->options.part_samples;
}

static int64_t keep_ms(const struct history *h, enum history_class c) {
    return MS_PER_DAY * (history_classes[c].tier == HISTORY_RAW ? h->options.keep_days : h->options.rollup_days);
}

/* Deletes the oldest rows of a class when their window has left the time that is kept. How many. */
static int forget(struct history *h, struct subject *s, enum history_class c, int64_t now_ms, struct error *e) {
    struct db_block rows[DELETED_AT_ONCE];
    int64_t first = class_key(c, s->id, 0, 0), before = now_ms - keep_ms(h, c);
    if (before <= 0) return 0;
    int64_t window = class_window(c, before); /* its rows are kept: it has not ended before */
    int n = db_blocks(h->db, first, class_key(c, s->id, window, 0) - 1, rows, ARRAY_LEN(rows), e);
    if (n <= 0) return n;
    int r = db_begin(h->db, e);
    for (int i = 0; i < n && r >= 0; i++) r = db_block_delete(h->db, rows[i].id, e);
    if (r >= 0) r = db_commit(h->db, e);
    if (r < 0) db_rollback(h->db);
    if (r < 0) return r;
    pthread_mutex_lock(&h->lock);
    h->stats.deleted_rows += (uint64_t)n;
    pthread_mutex_unlock(&h->lock);
    return n;
}

static bool is_damaged(const struct history *h, int64_t key) {
    for (size_t i = 0; i < h->damaged_count; i++)
        if (h->damaged[i] == key >> KEY_NUMBER_BITS) return true;
    return h->damaged_count == ARRAY_LEN(h->damaged);
}

/* What cannot be read is left alone from now on. */
static void note_damage(struct history *h, int64_t key) {
    if (h->damaged_count < ARRAY_LEN(h->damaged)) h->damaged[h->damaged_count++] = key >> KEY_NUMBER_BITS;
    pthread_mutex_lock(&h->lock);
    h->stats.damaged_rows++;
    pthread_mutex_unlock(&h->lock);
}

/* The first window of a class that is to be merged: 1 and its key. */
static int find_merge(struct history *h, struct subject *s, enum history_class c, int64_t now_ms, int64_t *ret,
                      struct error *e) {
    struct db_block row;
    int64_t first = class_key(c, s->id, 0, 0), last = class_key(c, s->id + 1, 0, 0) - 1;
    int64_t up_ms = history_classes[history_classes[c].up].window_ms;
    int r = 1;
    while (r > 0) {
        r = db_blocks(h->db, first, last, &row, 1, e);
        if (r <= 0) return r;
        int64_t began = roll_floor(key_window(row.id) * history_classes[c].window_ms, up_ms);
        if (began + up_ms + h->options.part_ms + LATE_MS > now_ms) break;
        *ret = row.id;
        if (!is_damaged(h, row.id)) return 1;
        first = (row.id | (KEY_NUMBERS - 1)) + 1;
    }
    r = db_block_last(h->db, first, last, &row, e);
    if (r <= 0 || key_number(row.id) < CROWD || is_damaged(h, row.id)) return r < 0 ? r : 0;
    *ret = row.id;
    return 1;
}

/* One subject and class: 1 when something was done. */
static int sweep_one(struct history *h, struct subject *s, enum history_class c, int64_t now_ms, struct error *e) {
    int64_t key;
    int r = now_ms - h->settled_ms >= SETTLED_MS ? forget(h, s, c, now_ms, e) : 0;
    if (r != 0 || history_classes[c].up < 0) return r < 0 ? r : r > 0;
    r = find_merge(h, s, c, now_ms, &key, e);
    if (r <= 0) return r;
    r = merge_window(h, s, c, key, e);
    if (r == -EBADMSG || r == -ENOENT) note_damage(h, key);
    if (r < 0) return r;
    pthread_mutex_lock(&h->lock);
    h->stats.merges++;
    pthread_mutex_unlock(&h->lock);
    return 1;
}

static int sweep(struct history *h, int64_t now_ms, struct error *e) {
    pthread_mutex_lock(&h->lock);
    size_t subjects = h->subject_count;
    pthread_mutex_unlock(&h->lock);
    for (; h->sweep < subjects * CLASS_COUNT; h->sweep++) {
        pthread_mutex_lock(&h->lock);
        struct subject *s = h->subjects[h->sweep / CLASS_COUNT];
        pthread_mutex_unlock(&h->lock);
        int r = sweep_one(h, s, (enum history_class)(h->sweep % CLASS_COUNT), now_ms, e);
        if (r != 0) return r;
    }
    if (h->sweep == SIZE_MAX || now_ms - h->settled_ms < SETTLED_MS) return 0;
    int64_t before = now_ms - MS_PER_DAY * h->options.rollup_days;
    int r = before > 0 ? db_event_delete(h->db, before << 16, EVENTS_AT_ONCE, e) : 0;
    if (r == 0 && before > 0) r = db_task_delete(h->db, before << TASK_ROW_BITS, TASK_ROWS_MAX, EVENTS_AT_ONCE, e);
    if (r == 0 && before > 0) r = db_container_delete(h->db, before, e);
    if (r == 0) h->sweep = SIZE_MAX;
    return r < 0 ? r : r > 0;
}

/* Free pages are used again by the next rows: flush rows and parts come and go all the time. Only when they are more than
 * a sixteenth of the file are they given back, and then all of them. */
static int give_back(struct history *h, struct error *e) {
    int64_t unused, all;
    int r = db_pages(h->db, &unused, &all, e);
    if (r < 0) return r;
    if (unused > 8 + all / 16) h->is_giving_back = true;
    if (unused == 0) h->is_giving_back = false;
    if (!h->is_giving_back) return 0;
    r = db_vacuum(h->db, VACUUM_AT_ONCE, e);
    return r < 0 ? r : 1;
}

int history_work(struct history *h, int64_t now_ms, struct error *e) {
    int64_t passed = now_ms - h->last_now_ms;
    if (passed < 0 || passed > MS_PER_HOUR) h->settled_ms = now_ms;
    h->last_now_ms = now_ms;
    if (is_part_due(h, now_ms)) {
        int r = part_write(h, e);
        if (r < 0) return r;
        h->part_since_ms = 0;
        h->sweep = 0;
        h->has_freed = h->has_parts = true;
        return 1;
    }
    int r = sweep(h, now_ms, e);
    if (r != 0) {
        h->has_written = h->has_freed = h->has_parts = true;
        return r;
    }
    if (h->has_freed) {
        r = give_back(h, e);
        if (r != 0) return r;
        h->has_freed = false;
    }
    if (h->has_written && (now_ms - h->synced_ms >= SYNC_MS || now_ms < h->synced_ms)) {
        /* Three syncs instead of one: worth it when there is something to carry over for good. */
        r = h->has_parts ? db_checkpoint(h->db, e) : db_sync(h->db, e);
        if (r < 0) return r;
        h->has_parts = false;
        h->synced_ms = now_ms;
        h->has_written = false;
    }
    return 0;
}
