/* The queue as a whole, what it cost whom, and GPUs that are taken out of service. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "server/api.h"
#include "server/server.h"

enum { WAITING_USUAL = 200, WAITING_MAX = 10000, REASON_MAX = 200 };
#define HOUR_S 3600
#define WEEK_S (7.0 * 24 * HOUR_S)

const struct route_field api_queue_query[] = {
    {"limit", FIELD_NUMBER, false, "How many that wait are shown: 200 where it is not given, 10000"},
    {0 }
};
const struct route_field api_report_query[] = {
    {"from",        FIELD_NUMBER, false, "Unix seconds, to the hour; below zero: before now. A week where it is not given"},
    {"to",        FIELD_NUMBER, false, "The same; now where it is not given"},
    {"by",             FIELD_TEXT, false, "user"},
    {0}
};
const struct route_field api_cordon_body[] = {
    {"reason", FIELD_TEXT, false, "Why, for those who wonder"},
    {0  }
};

int api_queue(struct call *c, struct error *e) {
    double limit;
    int r = call_query_number(c, "limit", 0, WAITING_MAX, WAITING_USUAL, &limit, e);
    if (r < 0) return r;
    json_open(&c->out, '{');
    gpu_json_number(&c->out, "time", (double)clock_real_ns() / NS_PER_S, 0.001);
    queue_json(c->server->queue, &c->out, (size_t)limit);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

/* ---- the report ---- */

struct reporting {
    struct call *call;
    int64_t from_hour, to_hour;
    struct buf users; /* JSON of each */
    struct queue_report_row total;
};

static void put_sums(struct buf *b, const struct queue_report_row *r) {
    double idle = r->held_s > 0 ? 1 - fmin(r->used_s / r->held_s, 1) : NAN;
    gpu_json_number(b, "gpu_hours_held", r->held_s / HOUR_S, 0.0001);
    gpu_json_number(b, "gpu_hours_used", r->used_s / HOUR_S, 0.0001);
    json_key(b, "idle_ratio");
    if (isnan(idle))
        json_nil(b);
    else
        json_num(b, round(idle * 1e4) / 1e4);
    gpu_json_number(b, "energy_joules", r->energy_j, 0.1);
    json_pair_int(b, "runs", r->runs);
    json_pair_int(b, "failed", r->failed);
    json_key(b, "wait_s_mean");
    if (r->runs > 0)
        json_num(b, round(r->wait_s / (double)r->runs * 1e3) / 1e3);
    else
        json_nil(b);
}

static void take_user(void *ctx, const struct queue_report_row *row) {
    struct reporting *r = ctx;
    json_open(&r->users, '{');
    json_pair_str(&r->users, "user", row->user);
    put_sums(&r->users, row);
    json_close(&r->users, '}');
    r->total.held_s += row->held_s;
    r->total.used_s += row->used_s;
    r->total.energy_j += row->energy_j;
    r->total.wait_s += row->wait_s;
    r->total.runs += row->runs;
    r->total.failed += row->failed;
}

static int report_work(struct sql *db, void *ctx, struct error *e) {
    struct reporting *r = ctx;
    json_open(&r->users, '[');
    int result = queue_store_report(db, r->from_hour, r->to_hour, take_user, r, e);
    json_close(&r->users, ']');
    return result;
}

static void put_sentence(struct buf *b, const struct queue_report_row *t) {
    char text[160];
    if (t->held_s > 0)
        snprintf(text, sizeof text, "%.0f %% of GPU-hours were held idle", 100 * (1 - fmin(t->used_s / t->held_s, 1)));
    else
        snprintf(text, sizeof text, "no GPU was held by a job that has ended");
    json_pair_str(b, "sentence", text);
}

static void report_done(void *ctx, int result, const struct error *e) {
    struct reporting *r = ctx;
    struct call *c = r->call;
    struct buf *b = &c->out;
    if (result >= 0) {
        json_open(b, '{');
        json_pair_int(b, "from", r->from_hour * HOUR_S);
        json_pair_int(b, "to", r->to_hour * HOUR_S);
        put_sentence(b, &r->total);
        json_key(b, "total");
        json_open(b, '{');
        put_sums(b, &r->total);
        json_close(b, '}');
        json_key(b, "users");
        buf_puts(b, r->users.s);
        json_close(b, '}');
        buf_putc(b, '\n');
    }
    buf_done(&r->users);
    free(r);
    call_end(c, result < 0 ? result : 0, e);
}

int api_report(struct call *c, struct error *e) {
    const char *by = call_query(c, "by");
    double from, to, now_s = (double)(clock_real_ns() / NS_PER_S);
    int r = call_query_number(c, "from", -8e9, 8e9, -WEEK_S, &from, e);
    if (r >= 0) r = call_query_number(c, "to", -8e9, 8e9, now_s, &to, e);
    if (r >= 0 && by && strcmp(by, "user") != 0) r = fail(e, -EINVAL, "by: %.20s is not user", by);
    if (r < 0) return r;
    if (from < 0) from += now_s;
    if (to < 0) to += now_s;
    if (from >= to) return fail(e, -EINVAL, "from: must be before to");
    struct reporting *ask = calloc(1, sizeof *ask);
    if (!ask) abort();
    *ask = (struct reporting){
        .call = c, .from_hour = (int64_t)floor(fmax(from, 0) / HOUR_S), .to_hour = (int64_t)ceil(to / HOUR_S)};
    r = state_submit(c->server->state, report_work, report_done, ask, e);
    if (r >= 0) return CALL_LATER;
    free(ask);
    return r;
}

/* ---- cordons ---- */

static void cordoned(void *ctx, int result, const struct error *e) { call_end(ctx, result < 0 ? result : 0, e); }

int api_cordon(struct call *c, struct error *e) {
    const char *reason = call_field(c, "reason");
    if (reason && strlen(reason) > REASON_MAX) return fail(e, -EINVAL, "reason: longer than %d bytes", REASON_MAX);
    int r = queue_cordon(c->server->queue, c->param[0], reason ? reason : "", c->who.name, cordoned, c, e);
    return r < 0 ? r : CALL_LATER;
}

int api_uncordon(struct call *c, struct error *e) {
    int r = queue_cordon(c->server->queue, c->param[0], NULL, c->who.name, cordoned, c, e);
    return r < 0 ? r : CALL_LATER;
}
