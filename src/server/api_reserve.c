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
#include "server/accounts.h"
#include "server/api.h"
#include "server/queue_reserve.h"
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

static int64_t now_s(void) { return clock_real_ns() / NS_PER_S; }

static bool is_self(const struct caller *who, const char *name) {
    return strcmp(who->name, name) == 0 || (*who->unix_name && strcmp(who->unix_name, name) == 0);
}

static bool may_cancel(const struct caller *who, const struct reservation *v) {
    return who->role == ROLE_ADMIN || is_self(who, v->made_by) || (*v->user && is_self(who, v->user));
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

/* What an ordinary user may have reserved, and may still reserve. */
static double hours_left(const struct call *c, const char *user) {
    const struct reserves *r = queue_reserves(c->server->queue);
    double left = c->server->settings.reserve_user_gpu_hours;
    int64_t now = now_s();
    for (size_t i = 0; i < r->count; i++) {
        const struct reservation *v = r->of[i];
        int gpus = 1;
        if (strcmp(v->user, user) != 0) continue;
        for (const char *at = v->gpus; *at; at++) gpus += *at == ',';
        left -= (double)reserve_seconds(&v->when, now, now + WEEK_S) / 3600 * gpus;
    }
    return left;
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
        json_num(&c->out, fmax(0, round(hours_left(c, c->who.name) * 100) / 100));
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

/* ---- making one ---- */

struct wish {
    struct call *call;
    struct reservation v; /* texts are the call's, or lie in room */
    struct buf gpus;
    const struct reservation *other; /* that has one of those that were asked for */
    struct reserve_window when;
    int other_gpu;
    int wanted, found, all;
    const char *ids;
    size_t ids_found;
};

/* Whether somebody else has it at some time of the new one. */
static const struct reservation *other_of(struct wish *w, const char *uuid, struct reserve_window *ret) {
    const struct reserves *r = queue_reserves(w->call->server->queue);
    for (size_t i = 0; i < r->count; i++)
        if (reserves_has_gpu(r->of[i], uuid) && reserve_clash(&w->v.when, &r->of[i]->when, now_s(), ret))
            return r->of[i];
    return NULL;
}

static bool is_named(const char *ids, const char *uuid, int index) {
    char number[16];
    snprintf(number, sizeof number, "%d", index);
    for (const char *at = ids; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ",");
        if ((strlen(number) == n && strncmp(at, number, n) == 0) || (strlen(uuid) == n && strncmp(at, uuid, n) == 0))
            return true;
    }
    return false;
}

static void pick(void *ctx, const char *uuid, int index) {
    struct wish *w = ctx;
    struct reserve_window when;
    w->all++;
    if (w->ids && !is_named(w->ids, uuid, index)) return;
    if (!w->ids && w->found == w->wanted) return;
    w->ids_found++;
    const struct reservation *other = other_of(w, uuid, &when);
    if (other) {
        if (!w->other) {
            w->other = other;
            w->when = when;
            w->other_gpu = index;
        }
        return;
    }
    buf_printf(&w->gpus, "%s%s", w->found++ ? "," : "", uuid);
}

static int refuse_clash(const struct wish *w, struct error *e) {
    char who[80], from[40], to[40], few[80] = "";
    reserves_holder(w->other, who, sizeof who);
    reserves_time(w->when.from_s, from, sizeof from);
    reserves_time(w->when.to_s, to, sizeof to);
    if (!w->ids) snprintf(few, sizeof few, "%d of %d GPUs are not reserved then: ", w->found, w->all);
    return fail(e, -EEXIST, "%sGPU %d of %.40s is reserved for %.60s by reservation %lld, from %s to %s", few,
                w->other_gpu, w->v.node, who, (long long)w->other->id, from, to);
}

static int choose_gpus(struct wish *w, struct error *e) {
    struct queue *q = w->call->server->queue;
    const char *node = call_field(w->call, "node");
    double gpus;
    int r = call_field_number(w->call, "gpus", 1, JOB_GPUS_MAX, 1, &gpus, e);
    if (r < 0) return r;
    if (gpus != floor(gpus)) return fail(e, -EINVAL, "gpus: must be a whole number");
    if (!node) node = queue_only_node(q);
    if (!node) return fail(e, -EINVAL, "node: there are several machines, or none with GPUs; say which");
    if (!queue_has_node(q, node)) return fail(e, -EINVAL, "node: there is no machine %.60s with GPUs", node);
    w->v.node = node;
    w->ids = call_field(w->call, "gpu_ids");
    if (w->ids && call_field(w->call, "gpus")) return fail(e, -EINVAL, "gpus: does not go with gpu_ids");
    w->wanted = (int)gpus;
    size_t named = 0;
    for (const char *at = w->ids; at && *at; at += strcspn(at, ","), at += *at == ',') named++;
    if (w->ids && !named) return fail(e, -EINVAL, "gpu_ids: names none");
    queue_each_gpu(q, node, pick, w);
    if (w->ids && w->ids_found != named)
        return fail(e, -EINVAL, "gpu_ids: %s has no such GPU, or one is named twice (it has %d)", node, w->all);
    if (!w->ids && w->wanted > w->all)
        return fail(e, -EINVAL, "gpus: %d are asked for, and %s has %d", w->wanted, node, w->all);
    if (w->ids ? w->other != NULL : w->found < w->wanted) return refuse_clash(w, e);
    w->v.gpus = w->gpus.s;
    return 0;
}

static int check_name(const char *key, const char *name, struct error *e) {
    if (!*name || strlen(name) >= RESERVES_NAME_MAX)
        return fail(e, -EINVAL, "%s: 1 to %d bytes", key, RESERVES_NAME_MAX - 1);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == ',' || *c == ':' || *c == 0x7f)
            return fail(e, -EINVAL, "%s: \"%.30s\" is no name", key, name);
    return 0;
}

/* For whom, and whether this caller may. Hours are counted when the GPUs are known. */
static int choose_holder(struct wish *w, struct error *e) {
    const struct caller *who = &w->call->who;
    const char *user = call_field(w->call, "user"), *group = call_field(w->call, "group");
    if (user && group) return fail(e, -EINVAL, "group: does not go with user");
    w->v.group = group ? group : "";
    w->v.user = group ? "" : user ? user : *who->unix_name ? who->unix_name : who->name;
    int r = group ? check_name("group", group, e) : check_name("user", w->v.user, e);
    if (r < 0 || who->role == ROLE_ADMIN) return r;
    if (w->call->server->settings.reserve_user_gpu_hours <= 0)
        return fail(e, -EACCES, "only administrators reserve here (reserve.user_gpu_hours is 0)");
    if (group || !is_self(who, w->v.user)) return fail(e, -EACCES, "only an administrator reserves for others");
    return 0;
}

static int check_hours(const struct wish *w, struct error *e) {
    int64_t now = now_s();
    double hours = (double)reserve_seconds(&w->v.when, now, now + WEEK_S) / 3600 * w->found, left;
    if (w->call->who.role == ROLE_ADMIN) return 0;
    left = hours_left(w->call, w->v.user);
    if (hours <= left + 1e-9) return 0;
    return fail(e, -EACCES,
                "it has %.4g GPU hours in the next seven days, and of the %.4g that a user may reserve %.4g are left",
                hours, w->call->server->settings.reserve_user_gpu_hours, fmax(left, 0));
}

static int read_times(struct wish *w, struct error *e) {
    const char *every = call_field(w->call, "every"), *zone = call_field(w->call, "zone");
    double from, length, until;
    int r = call_field_number(w->call, "from", 0, 7258118400.0, 0, &from, e);
    if (r >= 0) r = call_field_number(w->call, "for_s", 0, 1e9, 0, &length, e);
    if (r >= 0) r = call_field_number(w->call, "until", 0, 7258118400.0, 0, &until, e);
    if (r < 0) return r;
    w->v.every = every ? every : "";
    w->v.zone = zone ? zone : "";
    w->v.when.from_s = (int64_t)from;
    w->v.when.length_s = (int64_t)length;
    w->v.when.until_s = (int64_t)until;
    if (strlen(w->v.every) > 120) return fail(e, -EINVAL, "every: longer than 120 bytes");
    r = reserves_parse(w->v.every, w->v.zone, &w->v.when, e);
    return r < 0 ? r : reserve_check(&w->v.when, now_s(), e);
}

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
    const char *note = call_field(c, "note");
    struct wish w = {.call = c};
    int bad = call_key(c, &w.v.ask, e);
    if (bad < 0) return bad;
    const struct reservation *old = reserves_asked(all, c->who.name, w.v.ask);
    if (old) return again(c, old, e);
    w.v.note = note ? note : "";
    w.v.made_by = c->who.name;
    w.v.made_s = now_s();
    int r = all->count >= RESERVES_MAX ? fail(e, -EBUSY, "there are %d reservations already", RESERVES_MAX) : 0;
    if (r >= 0 && strlen(w.v.note) > RESERVES_NOTE_MAX)
        r = fail(e, -EINVAL, "note: longer than %d bytes", RESERVES_NOTE_MAX);
    if (r >= 0) r = choose_holder(&w, e);
    if (r >= 0) r = read_times(&w, e);
    if (r >= 0) r = choose_gpus(&w, e);
    if (r >= 0) r = check_hours(&w, e);
    if (r < 0) {
        reserve_done(&w.v.when);
        buf_done(&w.gpus);
        return r;
    }
    struct reservation *v = reserves_add(all, &w.v); /* from here on in the way of others */
    buf_done(&w.gpus);
    r = call_store(c, &(struct change){c, v->id, v}, sizeof(struct change), store_work, stored, e);
    if (r < 0) reserves_drop(all, v->id);
    return r;
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
    if (result >= 0) {
        reserves_drop(queue_reserves(q), ch->id);
        queue_reserves_changed(q);
    }
    call_end(ch->call, result < 0 ? result : 0, e);
    free(ch);
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

int api_reserve_cancel(struct call *c, struct error *e) {
    struct reservation *v;
    char who[80];
    int r = find(c, &v, e);
    if (r < 0) return r;
    reserves_holder(v, who, sizeof who);
    if (!may_cancel(&c->who, v))
        return fail(e, -EACCES, "reservation %lld is %s's: only they and administrators take it back", (long long)v->id,
                    who);
    return call_store(c, &(struct change){c, v->id, v}, sizeof(struct change), drop_work, dropped, e);
}
