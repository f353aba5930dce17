/* Reservations: who may, for which GPUs, and whether somebody else has them then. Read from memory; a new one is told of when it is
 * in the state file. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "server/accounts.h"
#include "server/api.h"
#include "server/json_changes.h"
#include "server/queue_reserve.h"
#include "server/reserve_wish.h"
#include "server/server.h"

#define WEEK_S (7 * 86400)
#define SHOWN_MAX_S (62 * 86400)
#define WINDOWS_MOST 5000

const struct route_field api_reservations_query[] = {
    {"from", FIELD_NUMBER, false, "Unix seconds; now where it is not given"},
    {"to", FIELD_NUMBER, false, "Windows until then: a week after `from` where it is not given, 62 days at most"},
    {0     }
};
const struct route_field api_reserve_body[] = {
    {"from",                                  FIELD_NUMBER, true, "Unix seconds at which it begins; one that comes again has no window before"},
    {"for_s",                                   FIELD_NUMBER, true, "How long each window is, in seconds"},
    {"gpus",                                       FIELD_NUMBER, false, "So many of the machine, which are chosen now; 1 where nothing is said"},
    {"gpu_ids",FIELD_LIST, false, "Just these instead: indices or UUIDs"},
    {"node",  FIELD_TEXT, false, "The machine; where there is one only it need not be said"},
    {"user",                                  FIELD_TEXT, false,
     "For whom: a Unix user; oneself where nothing is said. Others: only as an administrator"},
    {"group",                                  FIELD_TEXT, false, "For the members of a Unix group instead: only as an administrator"},
    {"every",                                       FIELD_TEXT, false, "It comes again: a cron expression (`0 9 * * 1-5`) or an ISO 8601 repeating interval"},
    {"zone",                                     FIELD_TEXT, false, "Of the cron expression, as `Europe/Berlin`; UTC where it is not given"},
    {"until", FIELD_NUMBER, false, "No window begins from then on"},
    {"note",                                  FIELD_TEXT, false, "What for, for people"},
    {0                                 }
};
const struct route_field api_reserve_edit_body[] = {
    {"from",                                  FIELD_NUMBER, false, "Unix seconds at which it begins: not in the past, unless it began then"},
    {"for_s",                                  FIELD_NUMBER, false, "How long each window is, in seconds"},
    {"gpus",                                       FIELD_NUMBER, false, "So many: of those that it has, and others where they do not suffice"},
    {"gpu_ids",FIELD_LIST, false, "Just these instead: indices or UUIDs"},
    {"node",  FIELD_TEXT, false, "Another machine"},
    {"user",                                  FIELD_TEXT, false, "For whom: a Unix user. Others: only as an administrator"},
    {"group",                                  FIELD_TEXT, false, "For the members of a Unix group instead: only as an administrator"},
    {"every",                                       FIELD_TEXT, false,
     "When it comes again: a cron expression or an ISO 8601 repeating interval; an empty text: once"},
    {"zone",                                    FIELD_TEXT, false, "Of the cron expression"},
    {"until", FIELD_NUMBER, false, "No window begins from then on; 0: without end"},
    {"note",                                  FIELD_TEXT, false, "What for; an empty text: nothing"},
    {0                                 }
};

static int64_t now_s(void) { return clock_real_ns() / NS_PER_S; }

static bool may_cancel(const struct caller *who, const struct reservation *v) {
    return who->role == ROLE_ADMIN || reserve_is_self(who, v->made_by) || (*v->user && reserve_is_self(who, v->user));
}

/* ---- looking ---- */

struct indices {
    const struct reservation *v;
    struct buf *uuids, *numbers;
};

static void put_gpu(void *ctx, const char *uuid, int index) {
    struct indices *i = ctx;
    if (!reserves_has_gpu(i->v, uuid)) return;
    json_str(i->uuids, uuid);
    json_int(i->numbers, index);
}

static void put_gpus(struct buf *b, struct queue *q, const struct reservation *v) {
    AUTO(buf_done) struct buf uuids = {0}, numbers = {0};
    struct indices i = {v, &uuids, &numbers};
    json_open(&uuids, '[');
    json_open(&numbers, '[');
    queue_each_gpu(q, v->node, put_gpu, &i);
    json_close(&uuids, ']');
    json_close(&numbers, ']');
    json_key(b, "gpu_uuids");
    buf_puts(b, uuids.s);
    json_key(b, "gpu_indices");
    buf_puts(b, numbers.s);
}

static void put_window(struct buf *b, const struct reserve_window *w) {
    json_pair_int(b, "from", w->from_s);
    json_pair_int(b, "to", w->to_s);
}

static void put_reservation(struct call *c, struct buf *b, const struct reservation *v) {
    struct reserve_window w;
    int64_t now = now_s();
    bool is_ahead = reserve_next(&v->when, now, &w);
    bool is_now = is_ahead && w.from_s <= now;
    bool stands = is_now && queue_reserve_stands(c->server->queue, v, &w, now);
    json_open(b, '{');
    json_pair_int(b, "id", v->id);
    json_pair_text(b, "user", v->user);
    json_pair_text(b, "group", v->group);
    json_pair_str(b, "node", v->node);
    put_gpus(b, c->server->queue, v);
    json_pair_int(b, "begins", v->when.from_s);
    json_pair_int(b, "for_s", v->when.length_s);
    json_pair_text(b, "every", v->every);
    json_pair_text(b, "zone", v->zone);
    json_key(b, "until");
    if (v->when.until_s)
        json_int(b, v->when.until_s);
    else
        json_nil(b);
    json_pair_text(b, "note", v->note);
    json_pair_str(b, "made_by", v->made_by);
    json_pair_int(b, "made", v->made_s);
    json_pair_str(b, "state", !is_ahead ? "over" : !is_now ? "ahead" : stands ? "now" : "unused");
    json_key(b, "next");
    if (is_ahead) {
        json_open(b, '{');
        put_window(b, &w);
        json_close(b, '}');
    } else {
        json_nil(b);
    }
    json_pair_bool(b, "may_cancel", may_cancel(&c->who, v));
    json_close(b, '}');
}

static void put_windows(struct call *c, const struct reserves *r, int64_t from_s, int64_t to_s) {
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct reserve_window w;
        for (int64_t at = from_s; count < WINDOWS_MOST && reserve_next(&r->of[i]->when, at, &w) && w.from_s < to_s;
             at = w.to_s, count++) {
            json_open(&c->out, '{');
            json_pair_int(&c->out, "id", r->of[i]->id);
            put_window(&c->out, &w);
            json_close(&c->out, '}');
        }
    }
}

int api_reservations(struct call *c, struct error *e) {
    const struct reserves *r = queue_reserves(c->server->queue);
    double from, to;
    int64_t now = now_s();
    int bad = call_query_number(c, "from", 0, 7258118400.0, (double)now, &from, e);
    if (bad >= 0) bad = call_query_number(c, "to", from, from + SHOWN_MAX_S, from + WEEK_S, &to, e);
    if (bad < 0) return bad;
    json_open(&c->out, '{');
    json_pair_int(&c->out, "time", now);
    json_key(&c->out, "hours_left");
    if (c->who.role == ROLE_ADMIN)
        json_nil(&c->out);
    else
        json_num(&c->out, fmax(0, round(reserve_hours_left(c, c->who.name, NULL) * 100) / 100));
    json_key(&c->out, "reservations");
    json_open(&c->out, '[');
    for (size_t i = 0; i < r->count; i++) put_reservation(c, &c->out, r->of[i]);
    json_close(&c->out, ']');
    json_key(&c->out, "windows");
    json_open(&c->out, '[');
    put_windows(c, r, (int64_t)from, (int64_t)to);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

static int find(const struct call *c, struct reservation **ret, struct error *e) {
    int64_t id;
    int r = accounts_id("reservation", c->param[0], &id, e);
    if (r < 0) return r;
    *ret = reserves_find(queue_reserves(c->server->queue), id);
    return *ret && (*ret)->is_stored ? 0 : fail(e, -ENOENT, "there is no reservation %lld", (long long)id);
}

int api_reservation(struct call *c, struct error *e) {
    struct reservation *v;
    int r = find(c, &v, e);
    if (r < 0) return r;
    put_reservation(c, &c->out, v);
    buf_putc(&c->out, '\n');
    return 0;
}

/* ---- making one ---- */

struct change {
    struct call *call;
    int64_t id;
    struct reservation *v; /* while it is stored nobody drops it */
};

static int store_work(struct sql *db, void *ctx, struct error *e) {
    const struct change *ch = ctx;
    return reserves_store(db, ch->v, e);
}

static void stored(void *ctx, int result, const struct error *e) {
    struct change *ch = ctx;
    struct queue *q = ch->call->server->queue;
    CRASH_POINT();
    if (result >= 0) {
        ch->v->is_stored = true;
        put_reservation(ch->call, &ch->call->out, ch->v);
        buf_putc(&ch->call->out, '\n');
        queue_reserves_changed(q);
    } else {
        reserves_drop(queue_reserves(q), ch->id);
    }
    call_end(ch->call, result < 0 ? result : 201, e);
    free(ch);
}

/* Its answer got lost: it is given again. */
static int again(struct call *c, const struct reservation *v, struct error *e) {
    if (!v->is_stored) return fail(e, -EBUSY, "reservation %lld is just being stored; ask again", (long long)v->id);
    put_reservation(c, &c->out, v);
    buf_putc(&c->out, '\n');
    return 201;
}

int api_reserve(struct call *c, struct error *e) {
    struct reserves *all = queue_reserves(c->server->queue);
    struct reserve_wish w = {.call = c};
    int r = call_key(c, &w.v.ask, e);
    if (r < 0) return r;
    const struct reservation *old = reserves_asked(all, c->who.name, w.v.ask);
    if (old) return again(c, old, e);
    r = all->count >= RESERVES_MAX ? fail(e, -EBUSY, "there are %d reservations already", RESERVES_MAX) : 0;
    if (r >= 0) r = reserve_wish_read(&w, e);
    if (r < 0) return r;
    struct reservation *v = reserves_add(all, &w.v); /* from here on in the way of others */
    buf_done(&w.gpus);
    r = call_store(c, &(struct change){c, v->id, v}, sizeof(struct change), store_work, stored, e);
    if (r < 0) reserves_drop(all, v->id);
    return r;
}

/* ---- changing one ---- */

struct edit {
    struct call *call;
    int64_t id;
    const struct reservation *to; /* while it is stored nobody changes or drops it */
    char ask[160];
    struct buf changes;
};

static void put_terms(struct buf *b, struct queue *q, const struct reservation *v) {
    json_open(b, '{');
    json_pair_text(b, "user", v->user);
    json_pair_text(b, "group", v->group);
    json_pair_str(b, "node", v->node);
    put_gpus(b, q, v);
    json_pair_int(b, "from", v->when.from_s);
    json_pair_int(b, "for_s", v->when.length_s);
    json_pair_text(b, "every", v->every);
    json_pair_text(b, "zone", v->zone);
    accounts_put_time(b, "until", v->when.until_s);
    json_pair_text(b, "note", v->note);
    json_close(b, '}');
}

/* A list of {key, from, to}. How many there are. */
static size_t compare(struct queue *q, const struct reservation *old, const struct reservation *new, struct buf *ret) {
    AUTO(buf_done) struct buf before = {0}, after = {0};
    struct json_tree *from, *to;
    struct error ignored;
    put_terms(&before, q, old);
    put_terms(&after, q, new);
    if (json_tree_parse(before.s, before.len, &from, &ignored) < 0) abort(); /* we wrote it */
    if (json_tree_parse(after.s, after.len, &to, &ignored) < 0) abort();
    json_tree_drop(from, "gpu_uuids"); /* people read the indices */
    json_tree_drop(to, "gpu_uuids");
    json_open(ret, '[');
    size_t count = json_changes(ret, "", from, to);
    json_close(ret, ']');
    json_tree_free(from);
    json_tree_free(to);
    return count;
}

static void put_edited(struct call *c, const struct buf *changes, bool is_dry, const struct reservation *v) {
    json_open(&c->out, '{');
    json_pair_bool(&c->out, "dry_run", is_dry);
    json_key(&c->out, "changes");
    buf_puts(&c->out, changes->len ? changes->s : "[]");
    json_key(&c->out, "reservation");
    put_reservation(c, &c->out, v);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
}

static int edit_work(struct sql *db, void *ctx, struct error *e) {
    const struct edit *d = ctx;
    CRASH_POINT();
    int r = reserves_store_change(db, d->to, d->ask, e);
    CRASH_POINT();
    return r;
}

static void edited(void *ctx, int result, const struct error *e) {
    struct edit *d = ctx;
    struct queue *q = d->call->server->queue;
    CRASH_POINT();
    reserves_changed(queue_reserves(q), d->id, result >= 0);
    if (result >= 0) {
        put_edited(d->call, &d->changes, false, d->to);
        queue_reserves_changed(q); /* what is free now is planned anew at once */
    }
    call_end(d->call, result < 0 ? result : 0, e);
    buf_done(&d->changes);
    free(d);
}

static int may_edit(const struct call *c, const struct reservation *v, struct error *e) {
    struct reserve_window w;
    long long id = v->id;
    char who[80];
    reserves_holder(v, who, sizeof who);
    if (!may_cancel(&c->who, v))
        return fail(e, -EACCES, "reservation %lld is %s's: only they and administrators change it", id, who);
    if (v->next || v->is_leaving) return fail(e, -EBUSY, "reservation %lld is just being changed; ask again", id);
    if (!reserve_next(&v->when, now_s(), &w)) return fail(e, -EBUSY, "reservation %lld is over", id);
    return 0;
}

static int edit(struct call *c, struct reservation *v, const char *ask, bool is_dry, struct error *e) {
    struct reserve_wish w = {
        .call = c, .was = v, .v = {.id = v->id, .ask = v->ask, .last_use_s = v->last_use_s}
    };
    AUTO(buf_done) struct buf changes = {0};
    int r = reserve_wish_read(&w, e);
    if (r < 0) return r;
    size_t count = compare(c->server->queue, v, &w.v, &changes);
    if (is_dry || !count) {
        put_edited(c, &changes, is_dry, &w.v);
        reserve_wish_done(&w);
        return 0;
    }
    reserves_change(v, &w.v, ask); /* from here on in the way of others, as what it was is until it is stored */
    buf_done(&w.gpus);
    struct edit d = {.call = c, .id = v->id, .to = v->next, .changes = changes};
    snprintf(d.ask, sizeof d.ask, "%s", ask);
    r = call_store(c, &d, sizeof d, edit_work, edited, e);
    if (r < 0)
        reserves_changed(queue_reserves(c->server->queue), v->id, false);
    else
        changes = (struct buf){0}; /* the other's to free */
    return r;
}

int api_reserve_edit(struct call *c, struct error *e) {
    const struct buf none = {0};
    bool is_dry = call_query_is_true(c, "dry_run");
    const char *key;
    struct reservation *v;
    char ask[160] = "";
    int r = find(c, &v, e);
    if (r >= 0) r = call_key(c, &key, e);
    if (r < 0) return r;
    if (*key) snprintf(ask, sizeof ask, "%.63s:%.64s", c->who.name, key);
    if (!is_dry && reserves_knows(v, ask)) { /* its answer got lost: it is given again */
        put_edited(c, &none, false, v);
        return 0;
    }
    r = may_edit(c, v, e);
    return r < 0 ? r : edit(c, v, ask, is_dry, e);
}

/* ---- taking one back ---- */

static int drop_work(struct sql *db, void *ctx, struct error *e) {
    const struct change *ch = ctx;
    return reserves_store_drop(db, ch->id, e);
}

static void dropped(void *ctx, int result, const struct error *e) {
    struct change *ch = ctx;
    struct queue *q = ch->call->server->queue;
    CRASH_POINT();
    struct reservation *v = reserves_find(queue_reserves(q), ch->id); /* NULL: two took it back */
    if (v) v->is_leaving = false;
    if (result >= 0) {
        reserves_drop(queue_reserves(q), ch->id);
        queue_reserves_changed(q);
    }
    call_end(ch->call, result < 0 ? result : 0, e);
    free(ch);
}

int api_reserve_cancel(struct call *c, struct error *e) {
    struct reservation *v;
    char who[80];
    int r = find(c, &v, e);
    if (r < 0) return r;
    reserves_holder(v, who, sizeof who);
    if (!may_cancel(&c->who, v))
        return fail(e, -EACCES, "reservation %lld is %s's: only they and administrators take it back", (long long)v->id,
                    who);
    if (v->next) return fail(e, -EBUSY, "reservation %lld is just being changed; ask again", (long long)v->id);
    r = call_store(c, &(struct change){c, v->id, v}, sizeof(struct change), drop_work, dropped, e);
    v->is_leaving = r >= 0;
    return r;
}
