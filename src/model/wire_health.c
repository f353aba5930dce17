#include "model/wire_health.h"

#include <errno.h>
#include <string.h>

#include "model/wire_bytes.h"
#include "model/wire_frame.h"

void wire_put_health(struct buf *b, const struct wire_health *h) {
    size_t from = wire_begin(b, WIRE_JOB_HEALTH);
    wire_out_key(b, &h->key);
    out_u8(b, h->is_good);
    out_i32(b, h->took_ms);
    out_text(b, h->text);
    wire_end(b, from);
}

int wire_get_health(const struct wire_frame *f, struct wire_health *ret, struct error *e) {
    struct wire_health h = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_HEALTH, &in, e);
    if (r < 0) return r;
    h.key = wire_in_key(&in);
    h.is_good = in_flag(&in);
    h.took_ms = in_i32(&in);
    in_text(&in, h.text, sizeof h.text);
    if (in.is_bad || h.took_ms < 0) return wire_bad(f, e);
    *ret = h;
    return 0;
}

void wire_put_try(struct buf *b, const struct wire_try *t) {
    size_t from = wire_begin(b, WIRE_JOB_TRY);
    out_u64(b, t->request);
    out_u32(b, t->uid);
    out_bytes(b, t->record, t->record_len);
    wire_end(b, from);
}

int wire_get_try(const struct wire_frame *f, struct wire_try *ret, struct error *e) {
    struct wire_try t = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_TRY, &in, e);
    if (r < 0) return r;
    t.request = in_u64(&in);
    t.uid = in_u32(&in);
    t.record = in_bytes(&in, JOB_RECORD_MAX, &t.record_len);
    if (in.is_bad || !t.record_len) return wire_bad(f, e);
    *ret = t;
    return 0;
}

void wire_put_tried(struct buf *b, const struct wire_tried *t) {
    size_t from = wire_begin(b, WIRE_JOB_TRIED);
    out_u64(b, t->request);
    out_i32(b, t->result);
    out_text(b, t->text);
    wire_end(b, from);
}

int wire_get_tried(const struct wire_frame *f, struct wire_tried *ret, struct error *e) {
    struct wire_tried t = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_TRIED, &in, e);
    if (r < 0) return r;
    t.request = in_u64(&in);
    t.result = in_i32(&in);
    in_text(&in, t.text, sizeof t.text);
    if (in.is_bad || !is_result(t.result, t.text)) return wire_bad(f, e);
    *ret = t;
    return 0;
}
