#include "server/queue_curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "server/queue_own.h"

#define WRITE_TICKS 15 /* seconds between two writes of what goes on */
#define STALE_MS 20000
#define WRITE_MOST 256 /* curves in one of them; the others go with the next */

/* ---- what comes in ---- */

static void add(struct queue_run *r, const struct curve_point *p) {
    if (!r->curve) {
        r->curve = calloc(1, sizeof *r->curve);
        if (!r->curve) abort();
    }
    curve_add(r->curve, p);
    r->is_curve_new = true;
}

static uint64_t cpu_ms(double seconds) {
    return isfinite(seconds) && seconds >= 0 && seconds < 1e12 ? (uint64_t)llround(seconds * 1e3) : CURVE_UNKNOWN;
}

/* A node looks at processes less often than it tells, where that is dear: then it says the same again, and what came meanwhile would
 * look as if it came all at once. One that really does nothing gets a point now and then. */
static bool is_stale(const struct curve *c, const struct curve_point *p) {
    const struct curve_point *last = c && c->count ? &c->of[c->count - 1] : NULL;
    return last && p->at_ms - last->at_ms < STALE_MS &&
           memcmp(p->value, last->value, CURVE_SUMS * sizeof *p->value) == 0;
}

void queue_curve_take(struct queue_run *r, const struct wire_figures *v) {
    bool has_disk = v->read_bytes != UINT64_MAX, has_host = isfinite(v->cpu_seconds);
    if (!r->of.start_ns || (!has_host && !has_disk)) return;
    struct curve_point p = {
        .at_ms = (clock_real_ns() - r->of.start_ns) / NS_PER_MS,
        .value = {[CURVE_CPU_MS] = cpu_ms(v->cpu_seconds),
                  [CURVE_READ_BYTES] = has_disk ? v->read_bytes : CURVE_UNKNOWN,
                  [CURVE_WRITTEN_BYTES] = has_disk ? v->written_bytes : CURVE_UNKNOWN,
                  [CURVE_HOST_BYTES] = has_host ? v->host_bytes : CURVE_UNKNOWN}
    };
    if (!is_stale(r->curve, &p)) add(r, &p);
}

/* How much CPU it had is told exactly with the end, the disk a moment before it. One that nothing was told of gets no curve: it was
 * over within seconds. */
void queue_curve_end(struct queue_run *r, const struct wire_run *w) {
    if (!r->curve || !r->curve->count || !w->start_ns || w->end_ns <= w->start_ns) return;
    struct curve_point p = r->curve->of[r->curve->count - 1];
    p.at_ms = (w->end_ns - w->start_ns) / NS_PER_MS;
    p.value[CURVE_CPU_MS] = cpu_ms(w->cpu_seconds);
    p.value[CURVE_HOST_BYTES] = CURVE_UNKNOWN;
    add(r, &p);
}

/* ---- the file ---- */

struct writing {
    size_t count;
    struct {
        struct wire_run_key key;
        struct buf body;
    } of[WRITE_MOST];
};

static int write_work(struct sql *db, void *ctx, struct error *e) {
    struct writing *w = ctx;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < w->count; i++)
        r = trail_store_curve(db, &w->of[i].key, w->of[i].body.s, w->of[i].body.len, e);
    return r;
}

/* What could not be written goes with the next: it has more points by then. */
static void write_done(void *ctx, int result, const struct error *e) {
    struct writing *w = ctx;
    if (result < 0) log_line(LOG_WARN, "queue_curves", -1, "what jobs use over their time is not stored: %s", e->text);
    for (size_t i = 0; i < w->count; i++) buf_done(&w->of[i].body);
    free(w);
}

void queue_curves_tick(struct queue *q) {
    static unsigned ticks;
    struct error e;
    if (++ticks % WRITE_TICKS != 0) return;
    struct writing *w = calloc(1, sizeof *w);
    if (!w) abort();
    for (size_t i = 0; i < q->count; i++)
        for (struct queue_run *r = q->job[i]->runs; r; r = r->next) {
            if (!r->is_curve_new || !r->is_stored || w->count == WRITE_MOST) continue;
            r->is_curve_new = false;
            w->of[w->count].key = r->of.key;
            curve_encode(r->curve, &w->of[w->count++].body);
        }
    if (!w->count) {
        free(w);
        return;
    }
    int r = state_submit(q->state, write_work, write_done, w, &e);
    if (r < 0) write_done(w, r, &e);
}

static void load(void *ctx, const struct wire_run_key *k, const struct curve *c) {
    struct queue_run *r = queue_run_find(ctx, k);
    if (!r || r->curve) return;
    r->curve = malloc(sizeof *r->curve);
    if (!r->curve) abort();
    *r->curve = *c;
}

int queue_curves_load(struct queue *q, struct sql *db, struct error *e) { return trail_open_curves(db, load, q, e); }

/* ---- what is asked ---- */

bool queue_curve_of(const struct queue *q, int64_t job, int64_t number, uint32_t attempt, struct trail_curve *ret) {
    const struct queue_job *j = queue_find(q, job);
    for (const struct queue_run *r = j ? j->runs : NULL; r; r = r->next) {
        bool is_it = j->elements > 1 ? job_element_number(&j->spec, r->of.key.element) == number : number < 0;
        if (!is_it || !r->curve || (attempt && r->of.key.attempt != attempt)) continue;
        ret->key = r->of.key;
        ret->started_ns = r->of.start_ns;
        ret->ended_ns = 0;
        ret->curve = *r->curve;
        return true;
    }
    return false;
}

static void put_rates(struct buf *b, const char *key, const struct curve *c, enum curve_column column, double unit,
                      double step) {
    json_key(b, key);
    json_open(b, '[');
    for (uint32_t i = 0; i < c->count; i++) {
        double v = curve_rate(c, i, column);
        if (isfinite(v))
            json_num(b, round(v * unit / step) * step);
        else
            json_nil(b);
    }
    json_close(b, ']');
}

void queue_curve_json(struct buf *b, const struct trail_curve *t) {
    const struct curve *c = &t->curve;
    json_open(b, '{');
    json_pair_int(b, "id", t->key.job);
    json_pair_int(b, "attempt", t->key.attempt);
    json_pair_time(b, "started", t->started_ns);
    json_pair_time(b, "ended", t->ended_ns);
    json_pair_num(b, "step_s", c->step_ms * 1e-3);
    json_key(b, "time");
    json_open(b, '[');
    for (uint32_t i = 0; i < c->count; i++) json_num(b, (double)(t->started_ns / NS_PER_MS + c->of[i].at_ms) / 1e3);
    json_close(b, ']');
    put_rates(b, "cpu_cores", c, CURVE_CPU_MS, 1e-3, 0.001);
    json_key(b, "memory_bytes");
    json_open(b, '[');
    for (uint32_t i = 0; i < c->count; i++)
        if (c->of[i].value[CURVE_HOST_BYTES] != CURVE_UNKNOWN)
            json_uint(b, c->of[i].value[CURVE_HOST_BYTES]);
        else
            json_nil(b);
    json_close(b, ']');
    put_rates(b, "disk_read_bytes_per_second", c, CURVE_READ_BYTES, 1, 1);
    put_rates(b, "disk_written_bytes_per_second", c, CURVE_WRITTEN_BYTES, 1, 1);
    json_close(b, '}');
    buf_putc(b, '\n');
}
