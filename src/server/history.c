#include "server/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/series_flush.h"
#include "server/history_own.h"

#define EVENTS_MAX 10000 /* not yet flushed: more come only when nothing can be stored */

const struct history_class_row history_classes[CLASS_COUNT] = {
    [CLASS_RAW_PART] = {HISTORY_RAW,    2 * MS_PER_HOUR, CLASS_RAW,          SERIES_QUICK},
    [CLASS_RAW] = {HISTORY_RAW,    2 * MS_PER_HOUR, -1,                 SERIES_SMALL},
    [CLASS_MINUTE_PART] = {HISTORY_MINUTE, 2 * MS_PER_HOUR, CLASS_MINUTE_HOURS, SERIES_QUICK},
    [CLASS_MINUTE_HOURS] = {HISTORY_MINUTE, 2 * MS_PER_HOUR, CLASS_MINUTE,       SERIES_QUICK},
    [CLASS_MINUTE] = {HISTORY_MINUTE, MS_PER_DAY,      -1,                 SERIES_SMALL},
    [CLASS_HOUR_PART] = {HISTORY_HOUR,   2 * MS_PER_HOUR, CLASS_HOUR_HOURS,   SERIES_QUICK},
    [CLASS_HOUR_HOURS] = {HISTORY_HOUR,   2 * MS_PER_HOUR, CLASS_HOUR_DAY,     SERIES_QUICK},
    [CLASS_HOUR_DAY] = {HISTORY_HOUR,   MS_PER_DAY,      CLASS_HOUR,         SERIES_QUICK},
    [CLASS_HOUR] = {HISTORY_HOUR,   32 * MS_PER_DAY, -1,                 SERIES_SMALL},
};
const int64_t history_tier_ms[3] = {0, MS_PER_MINUTE, MS_PER_HOUR};

const char *history_tier_name(enum history_tier t) {
    static const char *const names[] = {"raw", "minute", "hour"};
    return names[t];
}

void scratch_reserve(struct history *h, size_t n) {
    if (h->scratch.room >= n) return;
    free(h->scratch.at);
    free(h->scratch.v);
    h->scratch.room = n + n / 4;
    h->scratch.at = malloc(h->scratch.room * sizeof *h->scratch.at);
    h->scratch.v = malloc(h->scratch.room * sizeof *h->scratch.v);
    if (!h->scratch.at || !h->scratch.v) abort();
}

/* After a restart flush rows go back into memory, as readings that are flushed. */
struct recovery {
    struct history *h;
    struct subject *subject;
    uint32_t first; /* round */
};

static int recover_subject(void *ctx, uint64_t id, const int64_t *at_ms, size_t rounds, struct error *e) {
    struct recovery *r = ctx;
    r->subject = names_subject_by_id(r->h, (int64_t)id);
    if (!r->subject) return fail(e, -EBADMSG, "a flush row of nobody");
    struct rounds *now = &r->subject->now;
    r->first = now->n;
    if (now->room - now->n < rounds) {
        now->room = now->n + (uint32_t)rounds + 64;
        now->at_ms = realloc(now->at_ms, now->room * sizeof *now->at_ms);
        if (!now->at_ms) abort();
    }
    memcpy(now->at_ms + now->n, at_ms, rounds * sizeof *at_ms);
    now->n += (uint32_t)rounds;
    now->flushed = now->flushing = now->n;
    return 0;
}

static int recover_series(void *ctx, uint64_t id, const uint32_t *round, const int64_t *v, size_t n,
                          enum series_kind kind, struct error *e) {
    struct recovery *r = ctx;
    struct named_series *s =
        id < SERIES_COLUMN_MAX ? names_series_by_id(r->h, HISTORY_SERIES_BASE + (int64_t)id) : NULL;
    if (!s || s->subject != r->subject) return fail(e, -EBADMSG, "a flush row of an unknown series");
    struct run *now = &s->now;
    if (now->room - now->n < n) {
        now->room = now->n + now->n / 4 + (uint32_t)n + 32;
        now->v = realloc(now->v, now->room * sizeof *now->v);
        now->round = realloc(now->round, now->room * sizeof *now->round);
        if (!now->v || !now->round) abort();
    }
    for (size_t i = 0; i < n; i++) {
        now->v[now->n] = series_value(kind, s->scale, v[i]);
        if (!isfinite(now->v[now->n])) return fail(e, -EBADMSG, "a flush row with what is no number");
        now->round[now->n++] = r->first + round[i];
        r->h->samples++;
    }
    now->flushed = now->flushing = now->n;
    return 0;
}

/* A row that cannot be read costs its seconds, not the rest. */
static int recover(void *ctx, int64_t id, const void *marker, size_t marker_len, const uint8_t *data, size_t len,
                   struct error *e) {
    static const struct flush_visit visit = {recover_subject, recover_series};
    struct history *h = ctx;
    struct recovery r = {.h = h};
    struct error why;
    h->flush_id = id;
    buf_clear(&h->marker);
    buf_add(&h->marker, marker, marker_len);
    if (flush_walk(data, len, &visit, &r, &why) < 0) h->stats.damaged_rows++;
    return 0;
}

static int load(struct history *h, struct error *e) {
    int r = db_open(h->path, true, &h->db, e);
    if (r >= 0) r = names_load(h, e);
    if (r >= 0) r = db_marker(h->db, &h->marker, e);
    if (r >= 0) r = db_flushes(h->db, recover, h, e);
    return r;
}

int history_open(const char *path, const struct history_options *options, struct history **ret, struct error *e) {
    struct history *h = calloc(1, sizeof *h);
    if (!h) abort();
    if (strlen(path) >= sizeof h->path) {
        free(h);
        return fail(e, -ENAMETOOLONG, "%.60s...: too long a path", path);
    }
    memcpy(h->path, path, strlen(path) + 1);
    if (options) h->options = *options;
    if (h->options.keep_days <= 0) h->options.keep_days = 7;
    if (h->options.rollup_days <= 0) h->options.rollup_days = 366;
    if (h->options.part_ms <= 0) h->options.part_ms = 5 * MS_PER_MINUTE;
    if (h->options.part_samples == 0) h->options.part_samples = 512 * 1024;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->gate, NULL);
    h->coder = series_coder_new();
    int r = load(h, e);
    if (r < 0) {
        history_close(h);
        return r;
    }
    *ret = h;
    return 0;
}

void history_close(struct history *h) {
    if (!h) return;
    if (h->db && db_checkpoint(h->db, NULL) < 0) h->has_written = true; /* the next opening carries it over */
    db_close(h->db);
    names_free(h);
    series_coder_free(h->coder);
    for (int i = 0; i < 3; i++) block_writer_done(&h->writers[i]);
    buf_done(&h->marker);
    buf_done(&h->row);
    free(h->events);
    for (size_t i = 0; i < h->waiting_count; i++) waiting_done(&h->waiting[i]);
    free(h->waiting);
    free(h->scratch.at);
    free(h->scratch.v);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->gate);
    free(h);
}

void history_marker(const struct history *h, const void **ret, size_t *ret_len) {
    *ret = h->marker.s;
    *ret_len = h->marker.len;
}

static bool is_time(int64_t at_ms) { return at_ms >= 0 && at_ms < HISTORY_TIME_MAX_MS; }

int history_add(struct history *h, int64_t at_ms, const struct history_value *values, size_t n) {
    if (!is_time(at_ms)) return -ERANGE;
    int taken = 0;
    pthread_mutex_lock(&h->lock);
    bool is_full = h->samples + n > 4 * h->options.part_samples;
    for (size_t i = 0; i < n && !is_full; i++) {
        if (!isfinite(values[i].value) || values[i].series < 0 || (size_t)values[i].series >= h->series_count) continue;
        memory_add(h, h->series[values[i].series], at_ms, values[i].value);
        taken++;
    }
    h->stats.added += (uint64_t)taken;
    if (is_full) h->stats.dropped += n;
    pthread_mutex_unlock(&h->lock);
    return is_full ? -ENOSPC : taken;
}

/* The number after the last of its millisecond; those that were flushed are looked at by the file. */
static int64_t event_id(const struct history *h, int64_t at_ms) {
    int64_t first = at_ms << 16, last = first | 65535, id = first;
    if (h->last_event_id >= first && h->last_event_id < last) id = h->last_event_id + 1;
    for (size_t i = 0; i < h->event_count; i++)
        if (h->events[i].id >= id && h->events[i].id < last) id = h->events[i].id + 1;
    return id;
}

int64_t history_event_add(struct history *h, const struct history_event *event) {
    if (!is_time(event->at_ms)) return -ERANGE;
    int64_t r = 0;
    pthread_mutex_lock(&h->lock);
    if (event->subject[0] && !names_subject_make(h, event->subject, NULL)) {
        r = -EINVAL;
    } else if (h->event_count == EVENTS_MAX) {
        h->stats.dropped++;
        r = -ENOSPC;
    } else {
        if (h->event_count == h->event_room) {
            h->event_room = h->event_room ? 2 * h->event_room : 8;
            h->events = realloc(h->events, h->event_room * sizeof *h->events);
            if (!h->events) abort();
        }
        r = h->last_event_id = event_id(h, event->at_ms);
        h->events[h->event_count] = *event;
        h->events[h->event_count++].id = r;
    }
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Under lock. */
static void seal(struct history *h) {
    for (size_t i = 0; i < h->subject_count; i++) h->subjects[i]->now.flushing = h->subjects[i]->now.n;
    for (size_t i = 0; i < h->series_count; i++) h->series[i]->now.flushing = h->series[i]->now.n;
    h->events_sealed = h->event_count;
    h->waiting_sealed = h->waiting_count;
    h->is_sealed = true;
}

void history_seal(struct history *h) {
    pthread_mutex_lock(&h->lock);
    seal(h);
    pthread_mutex_unlock(&h->lock);
}

/* What is new of one subject, in the row. */
static int flush_one(struct history *h, struct flush_writer *w, struct subject *s) {
    uint32_t first = s->now.flushed, rounds = s->now.flushing - first;
    size_t series = 0;
    int count = 0;
    if (rounds == 0) return 0;
    for (size_t i = 0; i < s->series_count; i++) series += s->series[i]->now.flushing > s->series[i]->now.flushed;
    flush_subject(w, (uint64_t)s->id, s->now.at_ms + first, rounds, series);
    for (size_t i = 0; i < s->series_count; i++) {
        struct run *r = &s->series[i]->now;
        uint32_t n = r->flushing - r->flushed;
        double step;
        if (n == 0) continue;
        scratch_reserve(h, n);
        enum series_kind kind = SERIES_REAL;
        if (s->series[i]->scale > 0)
            kind = series_scale(r->v + r->flushed, n, s->series[i]->scale, h->scratch.v, &step);
        else
            memcpy(h->scratch.v, r->v + r->flushed, n * sizeof *r->v);
        flush_series(w, (uint64_t)(s->series[i]->id - HISTORY_SERIES_BASE), rounds, r->round + r->flushed, first,
                     h->scratch.v, n, kind);
        count += (int)n;
    }
    return count;
}

/* What a flush takes with it, so that no lock is held while the disk is written. */
struct fresh {
    size_t subject_count, series_count, event_count;
    struct history_event *events;
    struct waiting *waiting; /* its texts are those in memory, which stay until it is settled */
    size_t waiting_count;
};

static int collect(struct history *h, struct fresh *f) {
    int count = 0;
    struct flush_writer w;
    pthread_mutex_lock(&h->lock);
    if (!h->is_sealed) seal(h);
    h->is_sealed = false;
    buf_clear(&h->row);
    flush_begin(&w, &h->row);
    for (size_t i = 0; i < h->subject_count; i++) count += flush_one(h, &w, h->subjects[i]);
    flush_end(&w);
    f->subject_count = h->subject_count;
    f->series_count = h->series_count;
    f->event_count = h->events_sealed;
    f->events = malloc((f->event_count + 1) * sizeof *f->events);
    if (!f->events) abort();
    if (f->event_count) memcpy(f->events, h->events, f->event_count * sizeof *f->events);
    f->waiting_count = h->waiting_sealed;
    f->waiting = malloc((f->waiting_count + 1) * sizeof *f->waiting);
    if (!f->waiting) abort();
    if (f->waiting_count) memcpy(f->waiting, h->waiting, f->waiting_count * sizeof *f->waiting);
    pthread_mutex_unlock(&h->lock);
    return count;
}

/* The commit was good: from here on it is stored. */
static void flush_settle(struct history *h, const struct fresh *f) {
    for (size_t i = 0; i < f->subject_count; i++) h->subjects[i]->now.flushed = h->subjects[i]->now.flushing;
    for (size_t i = 0; i < f->series_count; i++) h->series[i]->now.flushed = h->series[i]->now.flushing;
    h->stored_subjects = f->subject_count;
    h->stored_series = f->series_count;
    h->event_count -= f->event_count;
    if (h->event_count) memmove(h->events, h->events + f->event_count, h->event_count * sizeof *h->events);
    for (size_t i = 0; i < f->waiting_count; i++) waiting_done(&h->waiting[i]);
    h->waiting_count -= f->waiting_count;
    if (h->waiting_count) memmove(h->waiting, h->waiting + f->waiting_count, h->waiting_count * sizeof *h->waiting);
    h->stats.flushes++;
}

static int store_names(struct history *h, const struct fresh *f, struct error *e) {
    int r = 0;
    for (size_t i = h->stored_subjects; i < f->subject_count && r >= 0; i++) {
        pthread_mutex_lock(&h->lock);
        const struct subject *s = h->subjects[i];
        pthread_mutex_unlock(&h->lock);
        r = db_name_put(h->db, s->id, 0, s->name, 0, e);
    }
    for (size_t i = h->stored_series; i < f->series_count && r >= 0; i++) {
        pthread_mutex_lock(&h->lock);
        const struct named_series *s = h->series[i];
        pthread_mutex_unlock(&h->lock);
        r = db_name_put(h->db, s->id, s->subject->id, s->name, s->scale, e);
    }
    return r;
}

static int store_events(struct history *h, const struct fresh *f, struct error *e) {
    int r = 0;
    for (size_t i = 0; i < f->event_count && r >= 0; i++) {
        int64_t subject = 0;
        if (f->events[i].subject[0]) {
            pthread_mutex_lock(&h->lock);
            subject = names_subject(h, f->events[i].subject)->id;
            pthread_mutex_unlock(&h->lock);
        }
        r = db_event_put(h->db, &f->events[i], subject, e);
    }
    return r;
}

static int flush_fresh(struct history *h, const struct fresh *f, const void *marker, size_t marker_len,
                       struct error *e) {
    int r = db_begin(h->db, e);
    if (r >= 0) r = store_names(h, f, e);
    if (r >= 0) r = store_events(h, f, e);
    if (r >= 0) r = waiting_store(h, f->waiting, f->waiting_count, e);
    if (r >= 0) r = db_flush_put(h->db, h->flush_id + 1, marker, marker_len, &h->row, e);
    pthread_mutex_lock(&h->gate); /* events leave memory when they are in the file */
    if (r >= 0) r = db_commit(h->db, e);
    if (r >= 0) {
        h->flush_id++;
        buf_clear(&h->marker);
        buf_add(&h->marker, marker, marker_len);
        h->has_written = true;
        pthread_mutex_lock(&h->lock);
        flush_settle(h, f);
        pthread_mutex_unlock(&h->lock);
    } else {
        db_rollback(h->db);
    }
    pthread_mutex_unlock(&h->gate);
    return r;
}

int history_flush(struct history *h, const void *marker, size_t marker_len, struct error *e) {
    struct fresh f = {0};
    int count = collect(h, &f), r = 0;
    bool is_same = marker_len == h->marker.len && (marker_len == 0 || memcmp(marker, h->marker.s, marker_len) == 0);
    bool has_names = f.subject_count > h->stored_subjects || f.series_count > h->stored_series;
    if (count || f.event_count || f.waiting_count || has_names || !is_same)
        r = flush_fresh(h, &f, marker, marker_len, e);
    free(f.events);
    free(f.waiting);
    return r < 0 ? r : count;
}

void history_stats(struct history *h, struct history_stats *ret) {
    pthread_mutex_lock(&h->lock);
    *ret = h->stats;
    ret->memory_samples = h->samples;
    ret->series = h->series_count;
    ret->subjects = h->subject_count;
    pthread_mutex_unlock(&h->lock);
}
