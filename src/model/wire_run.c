#include "model/wire_run.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "model/wire_bytes.h"
#include "model/wire_frame.h"

static void put_key(struct buf *b, const struct wire_run_key *k) {
    out_i64(b, k->job);
    out_u32(b, k->element);
    out_u32(b, k->attempt);
}

static struct wire_run_key get_key(struct wire_in *in) {
    struct wire_run_key k = {0};
    k.job = in_i64(in);
    k.element = in_u32(in);
    k.attempt = in_u32(in);
    if (k.job <= 0 || k.element >= JOB_ELEMENTS_MAX || k.attempt == 0) in->is_bad = true;
    return k;
}

/* ---- GRANT, STOP ---- */

void wire_put_grant(struct buf *b, const struct wire_grant *g) {
    size_t from = wire_begin(b, WIRE_JOB_GRANT);
    put_key(b, &g->key);
    out_u16(b, g->gpus);
    for (uint16_t i = 0; i < g->gpus; i++) out_text(b, g->uuid[i]);
    wire_put_sealed_job(b, &g->sealed);
    wire_end(b, from);
}

int wire_get_grant(const struct wire_frame *f, struct wire_grant *ret, struct error *e) {
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_GRANT, &in, e);
    if (r < 0) return r;
    memset(ret, 0, sizeof *ret); /* it is large: decoded in place, and zero where it is bad */
    ret->key = get_key(&in);
    ret->gpus = in_u16(&in);
    if (ret->gpus == 0 || ret->gpus > JOB_GPUS_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < ret->gpus && !in.is_bad; i++) {
        in_text(&in, ret->uuid[i], sizeof ret->uuid[i]);
        if (!ret->uuid[i][0]) in.is_bad = true;
    }
    wire_get_sealed_job(&in, &ret->sealed);
    if (!in.is_bad) return 0;
    memset(ret, 0, sizeof *ret);
    return wire_bad(f, e);
}

void wire_put_stop(struct buf *b, const struct wire_stop *s) {
    size_t from = wire_begin(b, WIRE_JOB_STOP);
    put_key(b, &s->key);
    out_u8(b, s->reason);
    out_i64(b, s->grace_ns);
    wire_end(b, from);
}

int wire_get_stop(const struct wire_frame *f, struct wire_stop *ret, struct error *e) {
    struct wire_stop s = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_STOP, &in, e);
    if (r < 0) return r;
    s.key = get_key(&in);
    s.reason = in_u8(&in);
    s.grace_ns = in_i64(&in);
    if (in.is_bad || s.reason >= JOB_REASON_COUNT || s.grace_ns < 0) return wire_bad(f, e);
    *ret = s;
    return 0;
}

/* ---- RUN, STORED, RUNS ---- */

void wire_put_run(struct buf *b, const struct wire_run *r) {
    size_t from = wire_begin(b, WIRE_JOB_RUN);
    put_key(b, &r->key);
    out_u8(b, r->state);
    out_u8(b, r->reason);
    out_i32(b, r->pid);
    out_i64(b, r->start_ns);
    out_i64(b, r->end_ns);
    out_u8(b, r->has_exit);
    out_i32(b, r->code);
    out_i32(b, r->signal);
    out_f64(b, r->gpu_seconds);
    out_f64(b, r->energy_joules);
    out_f64(b, r->cpu_seconds);
    out_f64(b, r->gpu_ratio);
    out_f64(b, r->cpu_ratio);
    out_u64(b, r->memory_peak_bytes);
    out_u64(b, r->memory_total_bytes);
    out_u64(b, r->host_peak_bytes);
    out_u64(b, r->log_bytes);
    out_text(b, r->text);
    wire_end(b, from);
}

static bool is_amount(double v) { return isfinite(v) && v >= 0; }
/* NaN: nobody can tell. */
static bool is_amount_or_none(double v) { return isnan(v) || is_amount(v); }

/* A peer that is wrong about one run must not make a row that no reader expects. */
static bool is_run_sound(const struct wire_run *r) {
    if (r->state > RUN_ENDED || r->reason >= JOB_REASON_COUNT || r->pid < 0) return false;
    if (r->start_ns < 0 || r->end_ns < 0 || r->signal < 0 || r->signal > 64) return false;
    if (r->has_exit && r->state != RUN_ENDED) return false;
    if (!is_amount_or_none(r->gpu_seconds) || !is_amount(r->energy_joules) || !is_amount(r->cpu_seconds)) return false;
    return (isnan(r->gpu_ratio) || (r->gpu_ratio >= 0 && r->gpu_ratio <= 1)) && is_amount_or_none(r->cpu_ratio);
}

int wire_get_run(const struct wire_frame *f, struct wire_run *ret, struct error *e) {
    struct wire_run v = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_RUN, &in, e);
    if (r < 0) return r;
    v.key = get_key(&in);
    v.state = in_u8(&in);
    v.reason = in_u8(&in);
    v.pid = in_i32(&in);
    v.start_ns = in_i64(&in);
    v.end_ns = in_i64(&in);
    v.has_exit = in_flag(&in);
    v.code = in_i32(&in);
    v.signal = in_i32(&in);
    v.gpu_seconds = in_f64(&in);
    v.energy_joules = in_f64(&in);
    v.cpu_seconds = in_f64(&in);
    v.gpu_ratio = in_f64(&in);
    v.cpu_ratio = in_f64(&in);
    v.memory_peak_bytes = in_u64(&in);
    v.memory_total_bytes = in_u64(&in);
    v.host_peak_bytes = in_u64(&in);
    v.log_bytes = in_u64(&in);
    in_text(&in, v.text, sizeof v.text);
    if (in.is_bad || !is_run_sound(&v)) return wire_bad(f, e);
    *ret = v;
    return 0;
}

void wire_put_stored(struct buf *b, const struct wire_run_key *k) {
    size_t from = wire_begin(b, WIRE_JOB_STORED);
    put_key(b, k);
    wire_end(b, from);
}

int wire_get_stored(const struct wire_frame *f, struct wire_run_key *ret, struct error *e) {
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_STORED, &in, e);
    if (r < 0) return r;
    struct wire_run_key k = get_key(&in);
    if (in.is_bad) return wire_bad(f, e);
    *ret = k;
    return 0;
}

size_t wire_begin_runs(struct buf *b, uint32_t count) {
    size_t from = wire_begin(b, WIRE_JOB_RUNS);
    out_u32(b, count);
    return from;
}

void wire_add_run_key(struct buf *b, const struct wire_run_key *k) {
    size_t record = out_record_begin(b);
    put_key(b, k);
    out_record_end(b, record);
}

static struct wire_run_key get_listed_key(struct wire_in *in) {
    struct wire_in record = in_record(in);
    struct wire_run_key k = get_key(&record);
    in->is_bad |= record.is_bad;
    return k;
}

int wire_get_runs(const struct wire_frame *f, struct wire_runs *ret, struct error *e) {
    struct wire_runs list = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_RUNS, &in, e);
    if (r < 0) return r;
    list.count = in_u32(&in);
    list.at = in.at;
    for (uint32_t i = 0; i < list.count && !in.is_bad; i++) get_listed_key(&in);
    if (in.is_bad) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    *ret = list;
    return 0;
}

bool wire_next_run_key(struct wire_runs *list, struct wire_run_key *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0) return false;
    struct wire_run_key k = get_listed_key(&in);
    if (in.is_bad) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    *ret = k;
    return true;
}

/* ---- FIGURES ---- */

size_t wire_begin_figures(struct buf *b, uint32_t count) {
    size_t from = wire_begin(b, WIRE_JOB_FIGURES);
    out_u32(b, count);
    return from;
}

void wire_add_figures(struct buf *b, const struct wire_figures *v) {
    size_t record = out_record_begin(b);
    put_key(b, &v->key);
    out_f64(b, v->gpu_seconds);
    out_f64(b, v->energy_joules);
    out_f64(b, v->gpu_ratio);
    out_f64(b, v->cpu_seconds);
    out_u64(b, v->memory_bytes);
    out_u64(b, v->memory_peak_bytes);
    out_u64(b, v->memory_total_bytes);
    out_u64(b, v->host_bytes);
    out_u64(b, v->read_bytes);
    out_u64(b, v->written_bytes);
    out_u64(b, v->log_bytes);
    out_record_end(b, record);
}

static bool get_figures(struct wire_in *in, struct wire_figures *v) {
    struct wire_in record = in_record(in);
    v->key = get_key(&record);
    v->gpu_seconds = in_f64(&record);
    v->energy_joules = in_f64(&record);
    v->gpu_ratio = in_f64(&record);
    v->cpu_seconds = in_f64(&record);
    v->memory_bytes = in_u64(&record);
    v->memory_peak_bytes = in_u64(&record);
    v->memory_total_bytes = in_u64(&record);
    v->host_bytes = in_u64(&record);
    v->read_bytes = in_u64(&record);
    v->written_bytes = in_u64(&record);
    v->log_bytes = in_u64(&record);
    return !record.is_bad && is_amount_or_none(v->gpu_seconds) && is_amount(v->energy_joules) &&
           (isnan(v->gpu_ratio) || (v->gpu_ratio >= 0 && v->gpu_ratio <= 1)) && is_amount_or_none(v->cpu_seconds);
}

int wire_get_figures(const struct wire_frame *f, struct wire_figures_list *ret, struct error *e) {
    struct wire_figures_list list = {0};
    struct wire_figures one;
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_FIGURES, &in, e);
    if (r < 0) return r;
    list.count = in_u32(&in);
    list.at = in.at;
    for (uint32_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_figures(&in, &one)) in.is_bad = true;
    if (in.is_bad) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    *ret = list;
    return 0;
}

bool wire_next_figures(struct wire_figures_list *list, struct wire_figures *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    struct wire_figures one = {0};
    if (list->len == 0 || !get_figures(&in, &one)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    *ret = one;
    return true;
}

/* ---- LOG_ASK, LOG ---- */

void wire_put_log_ask(struct buf *b, const struct wire_log_ask *a) {
    size_t from = wire_begin(b, WIRE_JOB_LOG_ASK);
    out_u64(b, a->request);
    put_key(b, &a->key);
    out_u64(b, a->offset);
    out_u32(b, a->len);
    wire_end(b, from);
}

int wire_get_log_ask(const struct wire_frame *f, struct wire_log_ask *ret, struct error *e) {
    struct wire_log_ask a = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_LOG_ASK, &in, e);
    if (r < 0) return r;
    a.request = in_u64(&in);
    a.key = get_key(&in);
    a.offset = in_u64(&in);
    a.len = in_u32(&in);
    if (in.is_bad || a.len == 0 || a.len > WIRE_LOG_MAX) return wire_bad(f, e);
    *ret = a;
    return 0;
}

void wire_put_log(struct buf *b, const struct wire_log *l) {
    size_t from = wire_begin(b, WIRE_JOB_LOG);
    out_u64(b, l->request);
    out_i32(b, l->result);
    out_u64(b, l->offset);
    out_u64(b, l->total);
    out_u8(b, l->is_over);
    out_bytes(b, l->bytes, l->len);
    out_text(b, l->text);
    wire_end(b, from);
}

int wire_get_log(const struct wire_frame *f, struct wire_log *ret, struct error *e) {
    struct wire_log l = {0};
    struct wire_in in;
    size_t len;
    int r = wire_open(f, WIRE_JOB_LOG, &in, e);
    if (r < 0) return r;
    l.request = in_u64(&in);
    l.result = in_i32(&in);
    l.offset = in_u64(&in);
    l.total = in_u64(&in);
    l.is_over = in_flag(&in);
    l.bytes = in_bytes(&in, WIRE_LOG_MAX, &len);
    l.len = (uint32_t)len;
    in_text(&in, l.text, sizeof l.text);
    if (in.is_bad || !is_result(l.result, l.text) || (l.len && (l.offset > l.total || l.total - l.offset < l.len)))
        return wire_bad(f, e);
    *ret = l;
    return 0;
}

/* ---- FREE ---- */

size_t wire_begin_frees(struct buf *b, uint16_t count) {
    size_t from = wire_begin(b, WIRE_JOB_FREE);
    out_u16(b, count);
    return from;
}

void wire_add_free(struct buf *b, const struct wire_free *f) {
    size_t record = out_record_begin(b);
    out_text(b, f->uuid);
    out_u8(b, f->verdict);
    out_u32(b, f->uid);
    out_text(b, f->user);
    out_i32(b, f->pid);
    out_u64(b, f->memory_bytes);
    out_i64(b, f->since_ns);
    out_i64(b, f->idle_ns);
    out_u8(b, f->outside);
    out_i64(b, f->ends_ns);
    out_text(b, f->note);
    out_record_end(b, record);
}

static bool get_free(struct wire_in *in, struct wire_free *f) {
    struct wire_in record = in_record(in);
    in_text(&record, f->uuid, sizeof f->uuid);
    f->verdict = in_u8(&record);
    f->uid = in_u32(&record);
    in_text(&record, f->user, sizeof f->user);
    f->pid = in_i32(&record);
    f->memory_bytes = in_u64(&record);
    f->since_ns = in_i64(&record);
    f->idle_ns = in_i64(&record);
    f->outside = 0;
    f->ends_ns = 0;
    f->note[0] = 0;
    if (!record.is_bad && record.at < record.end) { /* an older node says nothing of this */
        f->outside = in_u8(&record);
        f->ends_ns = in_i64(&record);
        in_text(&record, f->note, sizeof f->note);
    }
    return f->outside < OUTSIDE_STEP_COUNT && f->ends_ns >= 0 && !record.is_bad && f->uuid[0] &&
           f->verdict < OCCUPANCY_COUNT && f->pid >= 0 && f->since_ns >= 0 && f->idle_ns >= 0;
}

int wire_get_frees(const struct wire_frame *f, struct wire_frees *ret, struct error *e) {
    struct wire_frees list = {0};
    struct wire_free one;
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_FREE, &in, e);
    if (r < 0) return r;
    list.count = in_u16(&in);
    list.at = in.at;
    if (list.count > WIRE_DEVICES_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_free(&in, &one)) in.is_bad = true;
    if (in.is_bad) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    *ret = list;
    return 0;
}

bool wire_next_free(struct wire_frees *list, struct wire_free *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0 || !get_free(&in, ret)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    return true;
}

/* For frames about runs that lie elsewhere. */
struct wire_run_key wire_in_key(struct wire_in *in) {
    return get_key(in);
}
void wire_out_key(struct buf *b, const struct wire_run_key *k) { put_key(b, k); }
