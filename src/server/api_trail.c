/* What runs leave behind: who held a GPU and when, and what a run has used over its time. What goes on is asked of the queue, what
 * is over of the file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/queue_curves.h"
#include "server/queue_json.h"
#include "server/server.h"

enum { LIMIT_USUAL = 500, LIMIT_MAX = 2000 };
#define HOUR_S 3600

const struct route_field api_gpu_jobs_query[] = {
    {"from",        FIELD_NUMBER, false, "Unix seconds; below zero: before now. An hour before now where it is not given"},
    {"to",        FIELD_NUMBER, false, "The same; now where it is not given"},
    {"limit",             FIELD_NUMBER, false, "How many that began in that time: 500 where it is not given, 2000"},
    {0}
};
const struct route_field api_curves_query[] = {
    {"element", FIELD_NUMBER, false, "Of an array: which element"},
    {"attempt",    FIELD_NUMBER, false, "Which try; the last where it is not given"},
    {0        }
};

/* ---- of a GPU ---- */

struct asking {
    struct call *call;
    struct trail_ask ask;
    struct buf out; /* of those that are over */
};

static int take_run(void *ctx, const struct queue_job_row *j, const struct queue_run_row *r, struct error *e) {
    struct asking *a = ctx;
    struct job_spec spec;
    if (job_decode(j->record, j->record_len, &spec, NULL) >= 0) queue_json_brief(&a->out, j, &spec, r);
    return 0;
}

static int gpu_work(struct sql *db, void *ctx, struct error *e) {
    struct asking *a = ctx;
    json_open(&a->out, '[');
    int r = trail_of_gpu(db, &a->ask, take_run, a, e);
    json_close(&a->out, ']');
    return r;
}

static void gpu_done(void *ctx, int result, const struct error *e) {
    struct asking *a = ctx;
    struct call *c = a->call;
    struct buf *b = &c->out;
    if (result >= 0) {
        json_open(b, '{');
        json_pair_num(b, "from", (double)(a->ask.from_ns / NS_PER_MS) / 1e3);
        json_pair_num(b, "to", (double)(a->ask.to_ns / NS_PER_MS) / 1e3);
        json_pair_bool(b, "is_whole", result == 0);
        json_key(b, "jobs");
        json_open(b, '[');
        queue_json_on_gpu(c->server->queue, b, c->param[0], a->ask.to_ns);
        if (a->out.len > 2) { /* both are lists: the second goes on where the first ends */
            if (b->s[b->len - 1] != '[') buf_putc(b, ',');
            buf_add(b, a->out.s + 1, a->out.len - 2);
        }
        json_close(b, ']');
        json_close(b, '}');
        buf_putc(b, '\n');
    }
    buf_done(&a->out);
    free(a);
    call_end(c, result < 0 ? result : 0, e);
}

int api_gpu_jobs(struct call *c, struct error *e) {
    double from, to, limit, now_s = (double)(clock_real_ns() / NS_PER_MS) / 1e3;
    int r = call_query_number(c, "from", -1e9, 9e9, -HOUR_S, &from, e);
    if (r >= 0) r = call_query_number(c, "to", -1e9, 9e9, now_s, &to, e);
    if (r >= 0) r = call_query_number(c, "limit", 1, LIMIT_MAX, LIMIT_USUAL, &limit, e);
    if (r < 0) return r;
    if (from < 0) from += now_s;
    if (to < 0) to += now_s;
    if (from >= to) return fail(e, -EINVAL, "from: must be before to");
    struct asking *a = calloc(1, sizeof *a);
    if (!a) abort();
    *a = (struct asking){
        .call = c,
        .ask = {.gpu = c->param[0],
                .from_ns = (int64_t)(fmax(from, 0) * 1e3) * NS_PER_MS,
                .to_ns = (int64_t)(to * 1e3) * NS_PER_MS,
                .limit = (int)limit}
    };
    r = state_submit(c->server->state, gpu_work, gpu_done, a, e);
    if (r >= 0) return CALL_LATER;
    free(a);
    return r;
}

/* ---- curves ---- */

struct curving {
    struct call *call;
    int64_t job, number;
    uint32_t attempt;
    struct trail_curve got;
};

static int curve_work(struct sql *db, void *ctx, struct error *e) {
    struct curving *v = ctx;
    return trail_curve(db, v->job, v->number, v->attempt, &v->got, e);
}

static void curve_done(void *ctx, int result, const struct error *e) {
    struct curving *v = ctx;
    struct call *c = v->call;
    struct error why = *e;
    if (result == 0 || result == -EBADMSG) v->got.curve.count = 0, result = 0; /* nothing was told of it */
    if (result >= 0) queue_curve_json(&c->out, &v->got);
    free(v);
    call_end(c, result < 0 ? result : 0, &why);
}

int api_job_curves(struct call *c, struct error *e) {
    double element, attempt;
    struct curving *v = calloc(1, sizeof *v);
    if (!v) abort();
    v->call = c;
    int r = api_job_number(c->param[0], &v->job, e);
    if (r >= 0) r = call_query_number(c, "element", 0, 1e9, -1, &element, e);
    if (r >= 0) r = call_query_number(c, "attempt", 0, 1e6, 0, &attempt, e);
    if (r >= 0) {
        v->number = (int64_t)element;
        v->attempt = (uint32_t)attempt;
        if (queue_curve_of(c->server->queue, v->job, v->number, v->attempt, &v->got)) {
            queue_curve_json(&c->out, &v->got);
            free(v);
            return 0;
        }
        r = state_submit(c->server->state, curve_work, curve_done, v, e);
        if (r >= 0) return CALL_LATER;
    }
    free(v);
    return r;
}
