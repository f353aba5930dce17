/* From memory into the file: what is old becomes parts, one a subject, tier and window of two hours, with minutes and
 * hours rolled up at once; the flush rows that held it until now go in the same transaction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/history_own.h"

static const enum history_class part_class[3] = {CLASS_RAW_PART, CLASS_MINUTE_PART, CLASS_HOUR_PART};

int64_t block_next_key(struct history *h, enum history_class c, int64_t subject, int64_t window, struct error *e) {
    struct db_block last;
    int64_t first = class_key(c, subject, window, 0);
    int r = db_block_last(h->db, first, first + KEY_NUMBERS - 1, &last, e);
    if (r <= 0) return r < 0 ? r : first;
    if (key_number(last.id) == KEY_NUMBERS - 1)
        return fail(e, -ENOSPC, "%s: too many parts in one window of subject %lld", h->path, (long long)subject);
    return last.id + 1;
}

/* One subject's memory, as the store thread walks it without the lock. */
struct cut {
    const struct subject *subject;
    struct named_series **series; /* those with readings, the most first */
    size_t series_count;
    struct points p, minutes, hours;
};
static void cut_done(struct cut *c) {
    free(c->series);
    points_done(&c->p);
    points_done(&c->minutes);
    points_done(&c->hours);
}

static int by_readings(const void *a, const void *b) {
    const struct named_series *x = *(struct named_series *const *)a, *y = *(struct named_series *const *)b;
    if (x->old.n != y->old.n) return x->old.n > y->old.n ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void cut_begin(struct history *h, struct cut *c, size_t subject) {
    pthread_mutex_lock(&h->lock);
    struct subject *s = h->subjects[subject];
    c->subject = s;
    free(c->series);
    c->series = malloc((s->series_count + 1) * sizeof(void *));
    if (!c->series) abort();
    c->series_count = 0;
    for (size_t i = 0; i < s->series_count; i++)
        if (s->series[i]->old.n) c->series[c->series_count++] = s->series[i];
    pthread_mutex_unlock(&h->lock);
    qsort(c->series, c->series_count, sizeof(void *), by_readings);
}

/* The readings of a series that lie in a window, in c->p: times rising, values in v and in column 0 as they are kept. */
static size_t cut_window(struct cut *c, const struct named_series *s, int64_t window, enum series_kind *kind,
                         double *step) {
    const int64_t *rounds = c->subject->old.at_ms;
    struct points *p = &c->p;
    points_reserve(p, s->old.n);
    p->n = 0;
    for (uint32_t i = 0; i < s->old.n; i++) {
        int64_t at_ms = rounds[s->old.round[i]];
        if (class_window(CLASS_RAW_PART, at_ms) != window) continue;
        p->at_ms[p->n] = at_ms;
        memcpy(&p->column[0][p->n++], &s->old.v[i], sizeof(double));
    }
    points_sort(p);
    memcpy(p->v, p->column[0], p->n * sizeof *p->v);
    if (p->n) *kind = series_scale(p->v, p->n, s->scale, p->column[0], step);
    return p->n;
}

static void put_series(struct history *h, struct cut *c, const struct named_series *s, int64_t window) {
    enum series_kind kind;
    double step;
    struct points *p = &c->p;
    size_t n = cut_window(c, s, window, &kind, &step);
    if (n == 0) return;
    uint64_t id = (uint64_t)(s->id - HISTORY_SERIES_BASE);
    block_add(&h->writers[HISTORY_RAW], id, p->at_ms, n, kind, step, (const int64_t *const *)p->column);
    if (kind != SERIES_REAL)
        for (size_t i = 0; i < n; i++) p->v[i] = (double)p->column[0][i];
    size_t minutes = roll_values(p->at_ms, p->v, n, MS_PER_MINUTE, p->rolls);
    points_reserve(&c->hours, minutes);
    memcpy(c->hours.rolls, p->rolls, minutes * sizeof *p->rolls);
    rolls_put(&h->writers[HISTORY_MINUTE], id, &c->minutes, p->rolls, minutes, kind, step);
    for (size_t i = 0; i < minutes; i++) c->hours.rolls[i].at_ms = roll_floor(c->hours.rolls[i].at_ms, MS_PER_HOUR);
    size_t hours = roll_settle(c->hours.rolls, minutes);
    rolls_put(&h->writers[HISTORY_HOUR], id, &c->hours, c->hours.rolls, hours, kind, step);
}

static int put_window(struct history *h, struct cut *c, int64_t window, struct error *e) {
    for (int t = 0; t < 3; t++)
        block_begin(&h->writers[t], h->coder, t == HISTORY_RAW ? BLOCK_RAW_COLUMNS : BLOCK_ROLL_COLUMNS,
                    history_classes[part_class[t]].effort);
    for (size_t i = 0; i < c->series_count; i++) put_series(h, c, c->series[i], window);
    int r = 0;
    for (int t = 0; t < 3 && r >= 0 && h->writers[t].series_count; t++) {
        int64_t key = block_next_key(h, part_class[t], c->subject->id, window, e);
        if (key < 0) return (int)key;
        struct db_block b = {key, h->writers[t].from_ms, h->writers[t].until_ms};
        buf_clear(&h->row);
        block_end(&h->writers[t], &h->row);
        r = db_block_put(h->db, &b, &h->row, e);
    }
    return r;
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int put_subject(struct history *h, struct cut *c, struct error *e) {
    const struct rounds *rounds = &c->subject->old;
    int64_t *windows = malloc((rounds->n + 1) * sizeof *windows);
    if (!windows) abort();
    size_t n = 0;
    for (uint32_t i = 0; i < rounds->n; i++) {
        int64_t window = class_window(CLASS_RAW_PART, rounds->at_ms[i]);
        if (n == 0 || windows[n - 1] != window) windows[n++] = window;
    }
    qsort(windows, n, sizeof *windows, by_number);
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        if (i == 0 || windows[i] != windows[i - 1]) r = put_window(h, c, windows[i], e);
    free(windows);
    return r;
}

static int write_all(struct history *h, struct error *e) {
    AUTO(cut_done) struct cut c = {0};
    pthread_mutex_lock(&h->lock);
    size_t subjects = h->subject_count;
    pthread_mutex_unlock(&h->lock);
    int r = 0;
    for (size_t i = 0; i < subjects && r >= 0; i++) {
        cut_begin(h, &c, i);
        if (c.series_count) r = put_subject(h, &c, e);
    }
    return r < 0 ? r : db_flush_settle(h->db, h->old_flush_id, h->marker.s, h->marker.len, e);
}

int part_write(struct history *h, struct error *e) {
    if (!h->has_old) {
        pthread_mutex_lock(&h->lock);
        memory_cut(h);
        pthread_mutex_unlock(&h->lock);
        h->has_old = true;
        h->old_flush_id = h->flush_id; /* rows that come while this cannot be written hold what is newer */
    }
    int r = db_begin(h->db, e);
    if (r >= 0) r = write_all(h, e);
    pthread_mutex_lock(&h->gate);
    if (r >= 0) r = db_commit(h->db, e);
    if (r >= 0) {
        pthread_mutex_lock(&h->lock);
        memory_drop_old(h);
        h->stats.parts++;
        pthread_mutex_unlock(&h->lock);
        h->has_old = false;
        h->has_written = true;
    } else {
        db_rollback(h->db);
    }
    pthread_mutex_unlock(&h->gate);
    return r < 0 ? fail_in(e, r, "history is not compacted") : 0;
}
