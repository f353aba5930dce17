#include "server/repeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "server/repeat_own.h"

#define TICK_MS 500

/* ---- one ---- */

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

void repeat_free(struct repeat *r) {
    if (!r) return;
    free(r->user);
    free(r->account);
    free(r->node);
    free(r->open);
    buf_done(&r->record);
    buf_done(&r->seal);
    buf_done(&r->times);
    zone_done(&r->zone);
    free(r);
}

struct repeat *repeat_new(const struct repeat_row *row, struct zone *zone, struct error *e) {
    struct repeat *r = calloc(1, sizeof *r);
    if (!r) abort();
    *r = (struct repeat){.id = row->id,
                         .made_ns = row->made_ns,
                         .mark_s = row->mark_s,
                         .uid = row->uid,
                         .origin = row->origin,
                         .is_paused = row->is_paused,
                         .user = copy(row->user),
                         .account = copy(row->account),
                         .node = copy(row->node),
                         .zone = *zone};
    *zone = (struct zone){0};
    snprintf(r->zone_name, sizeof r->zone_name, "%s", row->zone);
    buf_add(&r->record, row->record, row->record_len);
    buf_add(&r->seal, row->seal, row->seal_len);
    if (row->times) buf_add(&r->times, row->times, row->times_len);
    int result = job_decode(r->record.s, r->record.len, &r->job, e);
    if (row->times) r->job.repeat = job_words_of(&r->times);
    if (result >= 0) result = repeat_spec_read(&r->job.repeat, &r->spec, e);
    if (result >= 0) result = repeat_spec_check(&r->spec, &r->recur, e);
    if (result < 0) {
        repeat_free(r);
        return NULL;
    }
    r->next_s = recur_next(&r->recur, &r->zone, r->mark_s);
    return r;
}

void repeat_open_add(struct repeat *r, int64_t job) {
    if (r->open_count == r->open_cap) {
        r->open_cap = r->open_cap ? 2 * r->open_cap : 4;
        r->open = realloc(r->open, r->open_cap * sizeof *r->open);
        if (!r->open) abort();
    }
    r->open[r->open_count++] = job;
}

static void open_drop(struct repeat *r, int64_t job) {
    size_t kept = 0;
    for (size_t i = 0; i < r->open_count; i++)
        if (r->open[i] != job) r->open[kept++] = r->open[i];
    r->open_count = kept;
}

void repeat_mark(struct repeat *r, int64_t mark_s) {
    r->mark_s = mark_s;
    r->next_s = recur_next(&r->recur, &r->zone, mark_s);
}

/* ---- all ---- */

struct repeat *repeat_find(const struct repeats *all, int64_t id) {
    for (size_t i = 0; i < all->count; i++)
        if (all->of[i]->id == id) return all->of[i];
    return NULL;
}

bool repeat_is_there(const struct repeats *all, int64_t id) { return repeat_find(all, id) != NULL; }

void repeat_put(struct repeats *all, struct repeat *r) {
    all->of = realloc(all->of, (all->count + 1) * sizeof(void *));
    if (!all->of) abort();
    all->of[all->count++] = r;
}

void repeat_replace(struct repeats *all, struct repeat *fresh) {
    for (size_t i = 0; i < all->count; i++) {
        struct repeat *old = all->of[i];
        if (old->id != fresh->id) continue;
        fresh->is_paused = old->is_paused;
        fresh->open = old->open;
        fresh->open_count = old->open_count;
        fresh->open_cap = old->open_cap;
        old->open = NULL;
        repeat_free(old);
        all->of[i] = fresh;
        return;
    }
    repeat_free(fresh);
}

void repeat_drop(struct repeats *all, int64_t id) {
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->of[i]->id == id)
            repeat_free(all->of[i]);
        else
            all->of[kept++] = all->of[i];
    }
    all->count = kept;
}

void repeat_tell(struct repeats *all, const struct repeat *r, enum event_severity severity, const char *kind,
                 const char *text) {
    struct event ev = {.boot_ns = clock_boot_ns(),
                       .real_ns = clock_real_ns(),
                       .severity = (int32_t)severity,
                       .device = -1,
                       .code = (int32_t)(r->id & INT32_MAX)};
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "repeat %lld (%.60s, %.30s): %.60s", (long long)r->id, r->job.name, r->user,
             text);
    if (all->on_event && !all->is_stopping) all->on_event(all->event_ctx, r->node, &ev);
}

/* ---- a decision on its way to the file ---- */

struct deciding {
    struct repeats *all;
    int64_t id;
    struct repeat_step step;
    bool is_back; /* the clock was far ahead: only the mark, which goes back */
    int64_t now_s;
};

static int decide_work(struct sql *db, void *ctx, struct error *e) {
    struct deciding *d = ctx;
    CRASH_POINT();
    int r = d->is_back ? repeat_store_back(db, d->id, d->now_s, &d->step.mark_s, e)
                       : repeat_store_slots(db, d->id, d->step.slot, d->step.count, d->step.mark_s, 0, e);
    CRASH_POINT();
    return r < 0 ? r : 0;
}

static int spawn_work(struct sql *db, void *ctx, int64_t job, struct error *e) {
    const struct deciding *d = ctx;
    return repeat_store_slots(db, d->id, d->step.slot, d->step.count, d->step.mark_s, job, e);
}

/* One sentence for all that went by, not one for each. */
static void tell_lost(struct repeats *all, const struct repeat *r, const struct repeat_step *s) {
    char text[100], first[ZONE_TEXT];
    int64_t missed = 0, at_s = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->slot[i].fate != REPEAT_MISSED) continue;
        missed += s->slot[i].count;
        at_s = s->slot[i].at_s;
    }
    if (!missed) return;
    zone_text(&r->zone, at_s, first);
    if (missed == 1)
        snprintf(text, sizeof text, "%s was missed", first);
    else
        snprintf(text, sizeof text, "%lld times were missed, the last %s", (long long)missed, first);
    repeat_tell(all, r, EVENT_WARNING, "repeat_missed", text);
}

static void decided(struct deciding *d, int result, int64_t job, const struct error *e) {
    struct repeats *all = d->all;
    struct repeat *r = repeat_find(all, d->id); /* NULL: it was removed meanwhile */
    CRASH_POINT();
    if (r) r->is_busy = false;
    if (r && result < 0)
        log_line(LOG_ERROR, "repeat_store", -1, "repeat %lld: %s; it is tried again", (long long)d->id, e->text);
    if (r && result >= 0) {
        repeat_mark(r, d->step.mark_s);
        if (!d->is_back) tell_lost(all, r, &d->step);
        if (job) repeat_open_add(r, job);
        if (job) repeat_end_others(all, r);
        repeat_look(all, r);
    }
    free(d);
}

static void decide_done(void *ctx, int result, const struct error *e) { decided(ctx, result, 0, e); }

/* A time that ran already, when the clock was wrong: it is passed over. */
static void spawn_done(void *ctx, int result, int64_t job, const struct error *e) {
    struct deciding *d = ctx;
    struct error why;
    if (result == -EEXIST) {
        d->step.count--;
        if (state_submit(d->all->state, decide_work, decide_done, d, &why) >= 0) return;
        e = &why;
    }
    decided(d, result, result < 0 ? 0 : job, e);
}

struct queue_spawn repeat_job(const struct repeat *r) {
    return (struct queue_spawn){.kind = QUEUE_OF_REPEAT,
                                .parent = r->id,
                                .behind = r->open_count ? r->open[r->open_count - 1] : 0,
                                .uid = r->uid,
                                .user = r->user,
                                .account = r->account,
                                .node = r->node,
                                .origin = (enum queue_origin)r->origin,
                                .record = r->record.s,
                                .record_len = r->record.len,
                                .seal = r->seal.s,
                                .seal_len = r->seal.len};
}

void repeat_end_others(struct repeats *all, const struct repeat *r) {
    if (r->spec.overlap != REPEAT_CANCEL) return;
    for (size_t i = 0; i + 1 < r->open_count; i++)
        queue_spawn_end(all->queue, r->open[i], "the next time of its repeat came");
}

void repeat_look(struct repeats *all, struct repeat *r) {
    struct error e;
    int64_t now_s = clock_real_ns() / NS_PER_S;
    bool is_back = repeat_clock_was_wrong(r->mark_s, now_s);
    if (r->is_busy || r->is_paused || *r->problem || all->is_stopping || (r->next_s > now_s && !is_back)) return;
    struct deciding *d = calloc(1, sizeof *d);
    if (!d) abort();
    *d = (struct deciding){.all = all, .id = r->id, .is_back = is_back, .now_s = now_s};
    if (!is_back) {
        const struct repeat_now now = {.mark_s = r->mark_s, .now_s = now_s, .open = (unsigned)r->open_count};
        repeat_step(&r->spec, &r->recur, &r->zone, &now, &d->step);
    }
    const struct queue_spawn job = repeat_job(r);
    int result = d->step.runs ? queue_spawn(all->queue, &job, spawn_work, spawn_done, d, &e)
                              : state_submit(all->state, decide_work, decide_done, d, &e);
    r->is_busy = result >= 0;
    if (result >= 0) return;
    log_line(LOG_WARN, "repeat_store", -1, "repeat %lld: %s; it is tried again", (long long)r->id, e.text);
    free(d);
}

/* ---- its jobs ---- */

struct ended {
    int64_t job;
    int state;
};

static int end_work(struct sql *db, void *ctx, struct error *e) {
    const struct ended *n = ctx;
    return repeat_store_end(db, n->job, n->state, e);
}

static void end_done(void *ctx, int result, const struct error *e) { free(ctx); }

static void news(void *ctx, const struct queue_child *c) {
    struct repeats *all = ctx;
    struct repeat *r = repeat_find(all, c->parent);
    struct error e;
    if (!c->is_over || all->is_stopping) return;
    if (r) open_drop(r, c->job);
    struct ended *n = malloc(sizeof *n);
    if (!n) abort();
    *n = (struct ended){c->job, (int)c->state};
    if (state_submit(all->state, end_work, end_done, n, &e) < 0) free(n); /* noted at the next start */
}

/* ---- beginning and end ---- */

static int load_one(void *ctx, const struct repeat_row *row, struct error *e) {
    struct repeats *all = ctx;
    struct zone zone = {0};
    char name[ZONE_NAME_MAX];
    struct error why = {0};
    int found = repeat_zone(row->zone, name, &zone, &why);
    struct repeat *r = repeat_new(row, &zone, e);
    zone_done(&zone);
    if (!r) { /* written by a newer gpumgr: it stays in the file */
        log_line(LOG_ERROR, "repeat_unread", -1, "repeat %lld cannot be read: %s", (long long)row->id, e->text);
        return 0;
    }
    if (found < 0) {
        snprintf(r->problem, sizeof r->problem, "%.150s", why.text);
        log_line(LOG_ERROR, "repeat_zone", -1, "repeat %lld: %s", (long long)row->id, why.text);
    }
    repeat_put(all, r);
    return 0;
}

static void load_open(void *ctx, int64_t repeat, int64_t job) {
    struct repeat *r = repeat_find(ctx, repeat);
    if (r) repeat_open_add(r, job);
}

static int load_work(struct sql *db, void *ctx, struct error *e) {
    const struct repeat_reader reader = {ctx, load_one, load_open};
    return repeat_store_read(db, &reader, e);
}

static void tick(void *ctx) {
    struct repeats *all = ctx;
    for (size_t i = 0; i < all->count; i++) repeat_look(all, all->of[i]);
}

int repeats_new(const struct repeats_setup *setup, struct repeats **ret, struct error *e) {
    struct repeats *all = calloc(1, sizeof *all);
    if (!all) abort();
    *all = (struct repeats){.loop = setup->loop,
                            .state = setup->state,
                            .queue = setup->queue,
                            .on_event = setup->on_event,
                            .event_ctx = setup->ctx};
    int r = state_run(all->state, load_work, all, e);
    if (r < 0) {
        repeats_free(all);
        return fail_in(e, r, "repeating jobs");
    }
    all->spawner = (struct queue_spawner){.ctx = all, .is_own = repeat_is_own, .take = repeat_take, .news = news};
    queue_spawn_register(all->queue, QUEUE_OF_REPEAT, &all->spawner);
    *ret = all;
    return 0;
}

/* What a server that was killed had not told to end yet is told now. */
void repeats_start(struct repeats *all) {
    for (size_t i = 0; i < all->count; i++) repeat_end_others(all, all->of[i]);
    loop_every(all->loop, TICK_MS, tick, all);
}

void repeats_free(struct repeats *all) {
    if (!all) return;
    all->is_stopping = true;
    for (size_t i = 0; i < all->count; i++) repeat_free(all->of[i]);
    free(all->of);
    free(all);
}
