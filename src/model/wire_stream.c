#include "model/wire_stream.h"

#include "model/wire_bytes.h"
#include "model/wire_frame.h"

void wire_put_stream_hello(struct buf *b, const struct wire_stream_hello *h) {
    size_t from = wire_begin(b, WIRE_STREAM_HELLO);
    out_text(b, h->node);
    out_text(b, h->version);
    wire_end(b, from);
}

int wire_get_stream_hello(const struct wire_frame *f, struct wire_stream_hello *ret, struct error *e) {
    struct wire_stream_hello h;
    struct wire_in in;
    int r = wire_open(f, WIRE_STREAM_HELLO, &in, e);
    if (r < 0) return r;
    in_text(&in, h.node, sizeof h.node);
    in_text(&in, h.version, sizeof h.version);
    if (in.is_bad || !h.node[0]) return wire_bad(f, e);
    *ret = h;
    return 0;
}

void wire_put_stream_open(struct buf *b, const struct wire_stream_open *o) {
    size_t from = wire_begin(b, WIRE_STREAM_OPEN);
    out_u32(b, o->id);
    out_u8(b, o->kind);
    out_i64(b, o->key.job);
    out_u32(b, o->key.element);
    out_u32(b, o->key.attempt);
    out_text(b, o->container);
    out_u16(b, o->port);
    out_text(b, o->account);
    out_u8(b, o->is_admin);
    out_u16(b, o->rows);
    out_u16(b, o->columns);
    out_text(b, o->argument);
    wire_end(b, from);
}

int wire_get_stream_open(const struct wire_frame *f, struct wire_stream_open *ret, struct error *e) {
    struct wire_stream_open o = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_STREAM_OPEN, &in, e);
    if (r < 0) return r;
    o.id = in_u32(&in);
    o.kind = in_u8(&in);
    o.key.job = in_i64(&in);
    o.key.element = in_u32(&in);
    o.key.attempt = in_u32(&in);
    in_text(&in, o.container, sizeof o.container);
    o.port = in_u16(&in);
    in_text(&in, o.account, sizeof o.account);
    o.is_admin = in_flag(&in);
    o.rows = in_u16(&in);
    o.columns = in_u16(&in);
    in_text(&in, o.argument, sizeof o.argument);
    if (in.is_bad || !o.id || !o.kind || o.key.job < 0) return wire_bad(f, e);
    *ret = o;
    return 0;
}

void wire_put_stream_opened(struct buf *b, const struct wire_stream_opened *o) {
    size_t from = wire_begin(b, WIRE_STREAM_OPENED);
    out_u32(b, o->id);
    out_i32(b, o->result);
    out_text(b, o->text);
    wire_end(b, from);
}

int wire_get_stream_opened(const struct wire_frame *f, struct wire_stream_opened *ret, struct error *e) {
    struct wire_stream_opened o = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_STREAM_OPENED, &in, e);
    if (r < 0) return r;
    o.id = in_u32(&in);
    o.result = in_i32(&in);
    in_text(&in, o.text, sizeof o.text);
    if (in.is_bad || !o.id || !is_result(o.result, o.text)) return wire_bad(f, e);
    *ret = o;
    return 0;
}

void wire_put_stream_data(struct buf *b, const struct wire_stream_data *d) {
    size_t from = wire_begin(b, WIRE_STREAM_DATA);
    out_u32(b, d->id);
    out_bytes(b, d->bytes, d->len);
    wire_end(b, from);
}

int wire_get_stream_data(const struct wire_frame *f, struct wire_stream_data *ret, struct error *e) {
    struct wire_stream_data d = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_STREAM_DATA, &in, e);
    if (r < 0) return r;
    d.id = in_u32(&in);
    d.bytes = in_bytes(&in, WIRE_STREAM_DATA_MAX, &d.len);
    if (in.is_bad || !d.id || !d.len) return wire_bad(f, e);
    *ret = d;
    return 0;
}

void wire_put_stream_word(struct buf *b, enum wire_type type, const struct wire_stream_word *w) {
    size_t from = wire_begin(b, type);
    out_u32(b, w->id);
    out_u32(b, w->value);
    wire_end(b, from);
}

int wire_get_stream_word(const struct wire_frame *f, struct wire_stream_word *ret, struct error *e) {
    struct wire_stream_word w = {0};
    struct wire_in in;
    int r = wire_open(f, (enum wire_type)f->type, &in, e);
    if (r < 0) return r;
    if (f->type < WIRE_STREAM_WINDOW_MORE || f->type > WIRE_STREAM_SIZE) return wire_bad(f, e);
    w.id = in_u32(&in);
    w.value = in_u32(&in);
    if (in.is_bad || !w.id || (f->type == WIRE_STREAM_WINDOW_MORE && (!w.value || w.value > WIRE_STREAM_WINDOW)))
        return wire_bad(f, e);
    *ret = w;
    return 0;
}
