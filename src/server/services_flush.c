/* What of services goes into the file: rows that changed, in one transaction; a job that is made of one, in one with its row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/log.h"
#include "server/services_own.h"

struct item {
    struct item *next;
    int64_t id;
    struct service_row row;
    struct buf texts, life;
    size_t at[4];
    bool is_new, is_drop;
    uint32_t trim, but, nor;
    struct service_revision_row *revision; /* that are not stored yet; their bytes lie in blobs */
    struct buf *record, *seal;
    char **by, **ask;
    size_t revisions;
    struct service_ack *acks;
    int64_t stop
        [3]; /* jobs that this row says are to end: told when the file has it, or their end would look like somebody else's wish */
};

struct writing {
    struct services *services;
    struct item *items;
};

static void item_free(struct item *it) {
    for (size_t i = 0; i < it->revisions; i++) {
        buf_done(&it->record[i]);
        buf_done(&it->seal[i]);
        free(it->by[i]);
        free(it->ask[i]);
    }
    free(it->revision);
    free(it->record);
    free(it->seal);
    free(it->by);
    free(it->ask);
    buf_done(&it->texts);
    buf_done(&it->life);
    free(it);
}

static void *room_for(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) abort();
    return p;
}

/* ---- on the store thread ---- */

static int write_one(struct sql *db, const struct item *it, struct error *e) {
    if (it->is_drop) return service_store_drop(db, it->id, e);
    int r = service_store_put(db, &it->row, e);
    for (size_t i = 0; r >= 0 && i < it->revisions; i++) r = service_store_revision(db, &it->revision[i], e);
    return r < 0 || !it->trim ? r : service_store_trim(db, it->id, it->trim, it->but, it->nor, e);
}

static int write_work(struct sql *db, void *ctx, struct error *e) {
    const struct writing *w = ctx;
    int r = 0;
    CRASH_POINT();
    for (const struct item *it = w->items; r >= 0 && it; it = it->next) r = write_one(db, it, e);
    CRASH_POINT();
    return r;
}

/* ---- before and after ---- */

static void take_revisions(struct service_one *o, struct item *it) {
    it->revision = room_for(o->revisions, sizeof *it->revision);
    it->record = room_for(o->revisions, sizeof *it->record);
    it->seal = room_for(o->revisions, sizeof *it->seal);
    it->by = room_for(o->revisions, sizeof *it->by);
    it->ask = room_for(o->revisions, sizeof *it->ask);
    for (size_t i = 0; i < o->revisions; i++) {
        const struct service_revision *v = o->revision[i];
        if (v->is_stored) continue;
        size_t n = it->revisions++;
        buf_add(&it->record[n], v->record.s, v->record.len);
        buf_add(&it->seal[n], v->seal.s, v->seal.len);
        it->by[n] = strdup(v->by);
        it->ask[n] = strdup(v->ask);
        if (!it->by[n] || !it->ask[n]) abort();
        it->revision[n] = (struct service_revision_row){.service = o->id,
                                                        .made_ns = v->made_ns,
                                                        .number = v->number,
                                                        .by = it->by[n],
                                                        .ask = it->ask[n],
                                                        .record = it->record[n].s,
                                                        .record_len = it->record[n].len,
                                                        .seal = it->seal[n].s,
                                                        .seal_len = it->seal[n].len};
    }
    it->trim = o->revisions == SERVICE_REVISIONS ? o->revision[0]->number : 0;
    it->but = o->life.revision;
    it->nor = o->life.back_revision;
}

static struct item *item_new(struct service_one *o) {
    struct item *it = room_for(1, sizeof *it);
    const char *const texts[] = {o->name, o->user, o->account, o->node};
    it->id = o->id;
    it->is_new = !o->is_stored;
    it->is_drop = o->is_leaving;
    for (int i = 0; i < 4; i++) {
        it->at[i] = it->texts.len;
        buf_add(&it->texts, texts[i], strlen(texts[i]) + 1);
    }
    service_encode(&o->life, &it->life);
    it->row = (struct service_row){.id = o->id,
                                   .made_ns = o->made_ns,
                                   .uid = o->uid,
                                   .origin = o->origin,
                                   .name = it->texts.s + it->at[0],
                                   .user = it->texts.s + it->at[1],
                                   .account = it->texts.s + it->at[2],
                                   .node = it->texts.s + it->at[3],
                                   .life = it->life.s,
                                   .life_len = it->life.len};
    take_revisions(o, it);
    const struct service_slot *slots[] = {&o->life.now, &o->life.next, &o->life.old};
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        if (slots[i]->phase == SERVICE_ENDING) it->stop[i] = slots[i]->job;
    it->acks = o->acks;
    o->acks = NULL;
    o->is_dirty = false;
    return it;
}

static void acknowledge(struct service_ack **acks, int result, const struct error *e) {
    while (*acks) {
        struct service_ack *a = *acks;
        *acks = a->next;
        a->done(a->ctx, result, e);
        free(a);
    }
}

/* Whoever wanted something of it while its last word was being written hears what became of it. */
static void leave(struct services *s, struct service_one *o, int result, const struct error *e) {
    struct service_ack *late = o->acks;
    struct error gone;
    o->acks = NULL;
    if (result >= 0) fail(&gone, -ENOENT, "service %s was removed", o->name);
    service_one_drop(s, o);
    acknowledge(&late, result >= 0 ? -ENOENT : result, result >= 0 ? &gone : e);
}

static void written(struct services *s, struct item *it, int result, const struct error *e) {
    struct service_one *o = service_by_id(s, it->id);
    if (!o) return;
    if (result < 0) {
        if (it->is_new) /* nobody was told of it */
            leave(s, o, result, e);
        else
            o->is_dirty = true;
        return;
    }
    if (it->is_drop) {
        leave(s, o, result, e);
        return;
    }
    if (!o->is_stored) o->wants_settle = true;
    o->is_stored = true;
    for (size_t i = 0; i < ARRAY_LEN(it->stop); i++)
        if (it->stop[i] > 0) service_end_job(s, it->stop[i]);
    for (size_t i = 0; i < it->revisions; i++) {
        struct service_revision *v = service_revision_of(o, it->revision[i].number);
        if (v) v->is_stored = true;
    }
}

static void write_done(void *ctx, int result, const struct error *e) {
    struct writing *w = ctx;
    struct services *s = w->services;
    s->is_writing = false;
    if (result < 0)
        log_line(LOG_ERROR, "services_store", -1, "what happened to services cannot be stored, and is tried again: %s",
                 e->text);
    CRASH_POINT();
    while (w->items) {
        struct item *it = w->items;
        w->items = it->next;
        written(s, it, result, e);
        acknowledge(&it->acks, result, e);
        item_free(it);
    }
    free(w);
    if (result >= 0) services_settle_soon(s);
}

void services_write(struct services *s) {
    struct error e;
    if (s->is_writing) return;
    struct writing *w = room_for(1, sizeof *w);
    w->services = s;
    for (size_t i = 0; i < s->count; i++) {
        struct service_one *o = s->of[i];
        if (!o->is_dirty || o->is_spawning) continue;
        struct item *it = item_new(o);
        it->next = w->items;
        w->items = it;
    }
    if (!w->items) {
        free(w);
        return;
    }
    s->is_writing = true;
    int r = state_submit(s->state, write_work, write_done, w, &e);
    if (r < 0) write_done(w, r, &e);
}

/* ---- a job is made of a service ---- */

struct spawning {
    struct services *services;
    int64_t id;
    uint32_t revision;
    struct service life; /* as it is stored, once the job has its number */
};

static int spawn_work(struct sql *db, void *ctx, int64_t job, struct error *e) {
    struct spawning *p = ctx;
    AUTO(buf_done) struct buf life = {0};
    service_made(&p->life, job, p->revision);
    service_encode(&p->life, &life);
    CRASH_POINT();
    return service_store_life(db, p->id, life.s, life.len, e);
}

static void spawn_done(void *ctx, int result, int64_t first, const struct error *e) {
    struct spawning *p = ctx;
    struct service_one *o = service_by_id(p->services, p->id);
    CRASH_POINT();
    if (o) {
        o->is_spawning = false;
        if (result < 0) {
            log_line(LOG_ERROR, "service_start", -1, "service %s cannot be started, and is tried again: %s", o->name,
                     e->text);
            service_not_made(&o->life, p->revision);
            o->again_ns = clock_real_ns() + NS_PER_S;
        } else {
            service_made(&o->life, first, p->revision);
            o->is_dirty = o->wants_settle = true;
        }
        services_settle_soon(p->services);
    }
    free(p);
}

void service_spawn(struct services *s, struct service_one *o, uint32_t revision) {
    const struct service_revision *v = service_revision_of(o, revision);
    struct spawning *p = room_for(1, sizeof *p);
    struct error e;
    *p = (struct spawning){.services = s, .id = o->id, .revision = revision, .life = o->life};
    o->is_spawning = true;
    if (!v) {
        int missing = fail(&e, -ENOENT, "revision %u is not there", revision);
        spawn_done(p, missing, 0, &e);
        return;
    }
    const struct queue_spawn from = {.kind = QUEUE_OF_SERVICE,
                                     .parent = o->id,
                                     .uid = o->uid,
                                     .user = o->user,
                                     .account = o->account,
                                     .node = o->node,
                                     .origin = (enum queue_origin)o->origin,
                                     .record = v->record.s,
                                     .record_len = v->record.len,
                                     .seal = v->seal.s,
                                     .seal_len = v->seal.len};
    int r = queue_spawn(s->queue, &from, spawn_work, spawn_done, p, &e);
    if (r < 0) spawn_done(p, r, 0, &e);
}
