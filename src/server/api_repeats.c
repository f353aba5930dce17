/* Repeating jobs by the API. They are made by handing in a job with `repeat`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/duration.h"
#include "server/api.h"
#include "server/repeat.h"
#include "server/server.h"

enum { SLOTS_OF_ALL = 40, SLOTS_OF_ONE = REPEAT_SLOTS_KEPT };

const struct route_field api_repeat_times_query[] = {
    {"cron",      FIELD_TEXT, false, "Five fields, or @daily and the like"},
    {"interval",      FIELD_TEXT, false, "Instead: an ISO 8601 repeating interval"},
    {"zone",           FIELD_TEXT, false, "A time zone, the server's own where it is not given"},
    {0}
};

static int number_of(const char *text, int64_t *ret, struct error *e) {
    if (!*text || strlen(text) > 18 || strspn(text, "0123456789") != strlen(text))
        return fail(e, -ENOENT, "%.30s is no repeat's number", text);
    *ret = strtoll(text, NULL, 10);
    return 0;
}

/* ---- looking ---- */

struct listing {
    struct call *call;
    int64_t id;   /* 0: all */
    int status;   /* to answer with */
    int64_t made; /* the number of a job that was made just now, or 0 */
    struct repeat_slot_row *slot;
    size_t count, cap;
};

static void keep_slot(void *ctx, const struct repeat_slot_row *row) {
    struct listing *l = ctx;
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->slot = realloc(l->slot, l->cap * sizeof *l->slot);
        if (!l->slot) abort();
    }
    l->slot[l->count++] = *row;
}

static int list_work(struct sql *db, void *ctx, struct error *e) {
    struct listing *l = ctx;
    l->count = 0;
    return repeat_store_list(db, l->id, l->id ? SLOTS_OF_ONE : SLOTS_OF_ALL, keep_slot, l, e);
}

static void list_done(void *ctx, int result, const struct error *e) {
    struct listing *l = ctx;
    struct call *c = l->call;
    const struct repeats *all = c->server->repeats;
    struct error why = *e;
    int status = l->status;
    if (result >= 0 && l->id && !repeat_is_there(all, l->id))
        result = fail(&why, -ENOENT, "there is no repeat %lld", (long long)l->id);
    if (result >= 0 && !l->id) {
        json_open(&c->out, '{');
        json_key(&c->out, "repeats");
        json_open(&c->out, '[');
    }
    if (result >= 0) repeats_json(all, &c->out, l->id, l->slot, l->count);
    if (result >= 0 && !l->id) {
        json_close(&c->out, ']');
        json_close(&c->out, '}');
    }
    if (result >= 0 && l->made) {
        c->out.len--; /* the bracket */
        c->out.s[c->out.len] = 0;
        json_pair_int(&c->out, "job", l->made);
        json_close(&c->out, '}');
    }
    if (result >= 0) buf_putc(&c->out, '\n');
    free(l->slot);
    free(l);
    call_end(c, result < 0 ? result : status, &why);
}

static int list(struct call *c, int64_t id, int64_t made, struct error *e) {
    struct listing *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (struct listing){.call = c, .id = id, .made = made, .status = made ? 201 : 0};
    int r = state_submit(c->server->state, list_work, list_done, l, e);
    if (r >= 0) return CALL_LATER;
    free(l);
    return r;
}

int api_repeats(struct call *c, struct error *e) { return list(c, 0, 0, e); }

int api_repeat(struct call *c, struct error *e) {
    int64_t id = 0;
    int r = number_of(c->param[0], &id, e);
    return r < 0 ? r : list(c, id, 0, e);
}

/* ---- control ---- */

static void controlled(void *ctx, int result, int64_t job, const struct error *e) {
    struct call *c = ctx;
    struct error why = *e;
    int64_t id = 0;
    if (result >= 0) result = number_of(c->param[0], &id, &why);
    if (result >= 0 && repeat_is_there(c->server->repeats, id)) {
        result = list(c, id, job, &why);
        if (result == CALL_LATER) return;
    }
    call_end(c, result < 0 ? result : 0, &why);
}

static int control(struct call *c, enum repeat_verb verb, struct error *e) {
    const struct queue_who who = api_who(c);
    int64_t id = 0;
    int r = number_of(c->param[0], &id, e);
    if (r >= 0) r = repeat_control(c->server->repeats, &who, id, verb, controlled, c, e);
    return r < 0 ? r : CALL_LATER;
}

int api_repeat_pause(struct call *c, struct error *e) { return control(c, REPEAT_DO_PAUSE, e); }
int api_repeat_resume(struct call *c, struct error *e) { return control(c, REPEAT_DO_RESUME, e); }
int api_repeat_run(struct call *c, struct error *e) { return control(c, REPEAT_DO_RUN, e); }
int api_repeat_remove(struct call *c, struct error *e) { return control(c, REPEAT_DO_REMOVE, e); }

/* ---- before it is made ---- */

struct trial {
    struct call *call;
    struct buf cron, interval, zone, out;
};

static void trial_free(struct trial *t) {
    buf_done(&t->cron);
    buf_done(&t->interval);
    buf_done(&t->zone);
    buf_done(&t->out);
    free(t);
}

static int trial_work(struct sql *db, void *ctx, struct error *e) {
    struct trial *t = ctx;
    const struct repeat_spec s = {
        .cron = t->cron.s, .interval = t->interval.s, .zone = t->zone.s, .late_ns = REPEAT_LATE_USUAL_NS};
    return repeat_preview(&s, clock_real_ns() / NS_PER_S, &t->out, e);
}

static void trial_done(void *ctx, int result, const struct error *e) {
    struct trial *t = ctx;
    struct call *c = t->call;
    if (result >= 0) buf_printf(&c->out, "%s\n", t->out.s);
    trial_free(t);
    call_end(c, result < 0 ? result : 0, e);
}

static void take_text(struct buf *b, const char *text) { buf_printf(b, "%s", text ? text : ""); }

int api_repeat_times(struct call *c, struct error *e) {
    struct trial *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->call = c;
    take_text(&t->cron, call_query(c, "cron"));
    take_text(&t->interval, call_query(c, "interval"));
    take_text(&t->zone, call_query(c, "zone"));
    int r = state_submit(c->server->state, trial_work, trial_done, t, e);
    if (r >= 0) return CALL_LATER;
    trial_free(t);
    return r;
}
