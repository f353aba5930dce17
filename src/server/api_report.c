/* What was held and what was used of it, how long people waited, and the energy, by user: of runs that are over, which the file
 * has by the hour, and of those that go on, up to now. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "server/api.h"
#include "server/queue_store.h"
#include "server/server.h"

#define HOUR_S 3600
#define WEEK_S (7.0 * 24 * HOUR_S)

const struct route_field api_report_query[] = {
    {"from",        FIELD_NUMBER, false, "Unix seconds, to the hour; below zero: before now. A week where it is not given"},
    {"to",        FIELD_NUMBER, false, "The same; now where it is not given"},
    {"by",             FIELD_TEXT, false, "user"},
    {0}
};

struct line {
    char *user;
    struct queue_report_row of;
};

struct reporting {
    struct call *call;
    int64_t from_hour, to_hour;
    struct line *line; /* a user each */
    size_t lines, cap;
};

static void add(struct queue_report_row *to, const struct queue_report_row *more) {
    to->held_s += more->held_s;
    to->used_s += more->used_s;
    to->energy_j += more->energy_j;
    to->wait_s += more->wait_s;
    to->runs += more->runs;
    to->failed += more->failed;
    to->running += more->running;
}

static void take(void *ctx, const struct queue_report_row *row) {
    struct reporting *r = ctx;
    size_t i = 0;
    while (i < r->lines && strcmp(r->line[i].user, row->user) != 0) i++;
    if (i == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 16;
        r->line = realloc(r->line, r->cap * sizeof *r->line);
        if (!r->line) abort();
    }
    if (i == r->lines) {
        r->line[i] = (struct line){.user = strdup(row->user)};
        if (!r->line[i].user) abort();
        r->lines++;
    }
    add(&r->line[i].of, row);
}

static int by_held(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    if (x->of.held_s != y->of.held_s) return x->of.held_s > y->of.held_s ? -1 : 1;
    return strcmp(x->user, y->user);
}

static void put_ratio(struct buf *b, const char *key, double x, double step) {
    json_key(b, key);
    if (isnan(x))
        json_nil(b);
    else
        json_num(b, round(x / step) * step);
}

static void put_sums(struct buf *b, const struct queue_report_row *r) {
    gpu_json_number(b, "gpu_hours_held", r->held_s / HOUR_S, 1e-6);
    gpu_json_number(b, "gpu_hours_used", r->used_s / HOUR_S, 1e-6);
    put_ratio(b, "idle_ratio", r->held_s > 0 ? 1 - fmin(r->used_s / r->held_s, 1) : NAN, 1e-4);
    gpu_json_number(b, "energy_joules", r->energy_j, 0.1);
    json_pair_int(b, "runs", r->runs);
    json_pair_int(b, "running", r->running);
    json_pair_int(b, "failed", r->failed);
    put_ratio(b, "wait_s_mean", r->runs > 0 ? r->wait_s / (double)r->runs : NAN, 1e-3);
}

static void put_sentence(struct buf *b, const struct queue_report_row *t) {
    char text[160];
    if (t->held_s > 0)
        snprintf(text, sizeof text, "%.0f %% of GPU-hours were held idle", 100 * (1 - fmin(t->used_s / t->held_s, 1)));
    else
        snprintf(text, sizeof text, "no job held a GPU");
    json_pair_str(b, "sentence", text);
}

static void put(struct reporting *r, struct buf *b) {
    struct queue_report_row total = {0};
    if (r->lines) qsort(r->line, r->lines, sizeof *r->line, by_held);
    for (size_t i = 0; i < r->lines; i++) add(&total, &r->line[i].of);
    json_open(b, '{');
    json_pair_int(b, "from", r->from_hour * HOUR_S);
    json_pair_int(b, "to", r->to_hour * HOUR_S);
    put_sentence(b, &total);
    json_key(b, "total");
    json_open(b, '{');
    put_sums(b, &total);
    json_close(b, '}');
    json_key(b, "users");
    json_open(b, '[');
    for (size_t i = 0; i < r->lines; i++) {
        json_open(b, '{');
        json_pair_str(b, "user", r->line[i].user);
        put_sums(b, &r->line[i].of);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
}

static void drop(struct reporting *r) {
    for (size_t i = 0; i < r->lines; i++) free(r->line[i].user);
    free(r->line);
    free(r);
}

static int work(struct sql *db, void *ctx, struct error *e) {
    struct reporting *r = ctx;
    return queue_store_report(db, r->from_hour, r->to_hour, take, r, e);
}

static void done(void *ctx, int result, const struct error *e) {
    struct reporting *r = ctx;
    struct call *c = r->call;
    if (result >= 0) put(r, &c->out);
    drop(r);
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
    queue_report_now(c->server->queue, ask->from_hour, ask->to_hour, take,
                     ask); /* before a run's end can be in the file */
    r = state_submit(c->server->state, work, done, ask, e);
    if (r >= 0) return CALL_LATER;
    drop(ask);
    return r;
}
