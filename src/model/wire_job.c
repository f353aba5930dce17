#include "model/wire_job.h"

#include <errno.h>
#include <string.h>

#include "model/wire_bytes.h"
#include "model/wire_frame.h"

/* ---- a sealed job ---- */

size_t wire_sealed_bytes(const struct wire_sealed *s) {
    return 4 + 4 + 2 + strlen(s->user) + 4 + s->record_len + 4 + s->seal_len;
}

void wire_put_sealed_job(struct buf *b, const struct wire_sealed *s) {
    out_u32(b, s->uid);
    out_text(b, s->user);
    out_bytes(b, s->record, s->record_len);
    out_bytes(b, s->seal, s->seal_len);
}

void wire_get_sealed_job(struct wire_in *in, struct wire_sealed *ret) {
    ret->uid = in_u32(in);
    in_text(in, ret->user, sizeof ret->user);
    ret->record = in_bytes(in, JOB_RECORD_MAX, &ret->record_len);
    ret->seal = in_bytes(in, WIRE_SEAL_MAX, &ret->seal_len);
    if (ret->record_len == 0 || ret->seal_len == 0 || ret->uid == UINT32_MAX) in->is_bad = true;
}

/* ---- SEAL, SEALED ---- */

void wire_put_seal(struct buf *b, const struct wire_seal *s) {
    size_t from = wire_begin(b, WIRE_JOB_SEAL);
    out_u64(b, s->request);
    out_text(b, s->account);
    out_u8(b, s->is_admin);
    out_bytes(b, s->record, s->record_len);
    wire_end(b, from);
}

int wire_get_seal(const struct wire_frame *f, struct wire_seal *ret, struct error *e) {
    struct wire_seal s = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_SEAL, &in, e);
    if (r < 0) return r;
    s.request = in_u64(&in);
    in_text(&in, s.account, sizeof s.account);
    s.is_admin = in_flag(&in);
    s.record = in_bytes(&in, JOB_RECORD_MAX, &s.record_len);
    if (in.is_bad || !s.account[0] || !s.record_len) return wire_bad(f, e);
    *ret = s;
    return 0;
}

void wire_put_sealed(struct buf *b, const struct wire_sealed_reply *s) {
    size_t from = wire_begin(b, WIRE_JOB_SEALED);
    out_u64(b, s->request);
    out_i32(b, s->result);
    out_text(b, s->text);
    if (s->result == 0) wire_put_sealed_job(b, &s->sealed);
    wire_end(b, from);
}

int wire_get_sealed(const struct wire_frame *f, struct wire_sealed_reply *ret, struct error *e) {
    struct wire_sealed_reply s = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_SEALED, &in, e);
    if (r < 0) return r;
    s.request = in_u64(&in);
    s.result = in_i32(&in);
    in_text(&in, s.text, sizeof s.text);
    if (s.result == 0) wire_get_sealed_job(&in, &s.sealed);
    if (in.is_bad || !is_result(s.result, s.text)) return wire_bad(f, e);
    *ret = s;
    return 0;
}

/* ---- SUBMIT ---- */

size_t wire_begin_submit(struct buf *b, const struct wire_submit *s) {
    size_t from = wire_begin(b, WIRE_JOB_SUBMIT);
    out_u64(b, s->request);
    out_u16(b, s->count);
    return from;
}

void wire_add_submit(struct buf *b, const struct wire_sealed *s) {
    out_u32(b, (uint32_t)wire_sealed_bytes(s) - 4);
    wire_put_sealed_job(b, s);
}

bool wire_key_is_good(const char *key) {
    if (strlen(key) >= WIRE_KEY - 3) return false;
    for (; *key; key++)
        if (*key <= ' ' || *key > '~') return false;
    return true;
}

void wire_tail_submit(struct buf *b, const struct wire_submit *s) {
    out_text(b, s->key);
    out_u8(b, s->is_part);
}

/* A record with a longer length than in_record's: a seal may need it. */
static bool get_submit(struct wire_in *in, struct wire_sealed *ret) {
    size_t n;
    const uint8_t *p = in_bytes(in, WIRE_FRAME_MAX, &n);
    if (!p) return false;
    struct wire_in record = {.at = p, .end = p + n};
    wire_get_sealed_job(&record, ret);
    return !record.is_bad;
}

int wire_get_submit(const struct wire_frame *f, struct wire_submit *ret, struct error *e) {
    struct wire_submit list = {0};
    struct wire_sealed one;
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_SUBMIT, &in, e);
    if (r < 0) return r;
    list.request = in_u64(&in);
    list.count = in_u16(&in);
    list.at = in.at;
    for (uint16_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_submit(&in, &one)) in.is_bad = true;
    if (in.is_bad || list.count == 0) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    if (in.at < in.end) {
        in_text(&in, list.key, sizeof list.key);
        list.is_part = in_flag(&in);
        if (in.is_bad || !wire_key_is_good(list.key)) return wire_bad(f, e);
    }
    *ret = list;
    return 0;
}

bool wire_next_submit(struct wire_submit *list, struct wire_sealed *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0 || !get_submit(&in, ret)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    return true;
}

/* ---- CONTROL, and the answers ---- */

void wire_put_control(struct buf *b, const struct wire_control *c) {
    size_t from = wire_begin(b, WIRE_JOB_CONTROL);
    out_u64(b, c->request);
    out_u32(b, c->uid);
    out_u8(b, c->verb);
    out_i64(b, c->job);
    out_i64(b, c->element);
    out_i64(b, c->value);
    wire_end(b, from);
}

int wire_get_control(const struct wire_frame *f, struct wire_control *ret, struct error *e) {
    struct wire_control c = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_CONTROL, &in, e);
    if (r < 0) return r;
    c.request = in_u64(&in);
    c.uid = in_u32(&in);
    c.verb = in_u8(&in);
    c.job = in_i64(&in);
    c.element = in_i64(&in);
    c.value = in_i64(&in);
    if (in.is_bad || c.verb > WIRE_PRIORITY || c.job <= 0 || c.element < -1 || c.element >= JOB_ELEMENTS_MAX)
        return wire_bad(f, e);
    *ret = c;
    return 0;
}

void wire_put_job_result(struct buf *b, enum wire_type type, const struct wire_job_result *r) {
    size_t from = wire_begin(b, type);
    out_u64(b, r->request);
    out_i32(b, r->result);
    out_i64(b, r->first);
    out_u32(b, r->count);
    out_text(b, r->text);
    wire_end(b, from);
}

int wire_get_job_result(const struct wire_frame *f, struct wire_job_result *ret, struct error *e) {
    struct wire_job_result v = {0};
    struct wire_in in;
    enum wire_type type = f->type == WIRE_JOB_CONTROLLED ? WIRE_JOB_CONTROLLED : WIRE_JOB_SUBMITTED;
    int r = wire_open(f, type, &in, e);
    if (r < 0) return r;
    v.request = in_u64(&in);
    v.result = in_i32(&in);
    v.first = in_i64(&in);
    v.count = in_u32(&in);
    in_text(&in, v.text, sizeof v.text);
    if (in.is_bad || v.first < 0 || !is_result(v.result, v.text)) return wire_bad(f, e);
    *ret = v;
    return 0;
}
