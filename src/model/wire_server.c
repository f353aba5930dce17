#include "model/wire_server.h"

#include <string.h>

#include "model/wire_frame.h"

void wire_put_welcome(struct buf *b, const struct wire_welcome *w) {
    size_t from = wire_begin(b, WIRE_WELCOME);
    out_text(b, w->boot_id);
    out_i64(b, w->host_mark);
    out_u16(b, w->sources);
    for (uint16_t i = 0; i < w->sources; i++) out_i64(b, w->event_mark[i]);
    out_u16(b, w->devices);
    for (uint16_t i = 0; i < w->devices; i++) {
        size_t record = out_record_begin(b);
        out_text(b, w->device[i].uuid);
        out_i64(b, w->device[i].mark);
        out_record_end(b, record);
    }
    out_i64(b, w->task_mark);
    wire_end(b, from);
}

static void get_marks(struct wire_in *in, struct wire_welcome *w) {
    w->sources = in_u16(in);
    if (w->sources > WIRE_SOURCES_MAX) in->is_bad = true;
    for (uint16_t i = 0; i < w->sources && !in->is_bad; i++) w->event_mark[i] = in_i64(in);
    w->devices = in_u16(in);
    if (w->devices > WIRE_DEVICES_MAX) in->is_bad = true;
    for (uint16_t i = 0; i < w->devices && !in->is_bad; i++) {
        struct wire_in record = in_record(in);
        in_text(&record, w->device[i].uuid, sizeof w->device[i].uuid);
        w->device[i].mark = in_i64(&record);
        if (record.is_bad) in->is_bad = true;
    }
    if (!in->is_bad && in->at < in->end) w->task_mark = in_i64(in); /* came later than the rest */
}

int wire_get_welcome(const struct wire_frame *f, struct wire_welcome *ret, struct error *e) {
    struct wire_in in;
    int r = wire_open(f, WIRE_WELCOME, &in, e);
    if (r < 0) return r;
    memset(ret, 0, sizeof *ret); /* it is large: decoded in place, and zero where it is bad */
    in_text(&in, ret->boot_id, sizeof ret->boot_id);
    ret->host_mark = in_i64(&in);
    get_marks(&in, ret);
    if (!in.is_bad) return 0;
    memset(ret, 0, sizeof *ret);
    return wire_bad(f, e);
}

void wire_put_order(struct buf *b, const struct wire_order *o) {
    size_t from = wire_begin(b, WIRE_ORDER);
    out_u64(b, o->id);
    out_u32(b, o->verb);
    out_text(b, o->uuid);
    for (size_t i = 0; i < ARRAY_LEN(o->value); i++) out_i64(b, o->value[i]);
    wire_end(b, from);
}

int wire_get_order(const struct wire_frame *f, struct wire_order *ret, struct error *e) {
    struct wire_order o = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_ORDER, &in, e);
    if (r < 0) return r;
    o.id = in_u64(&in);
    o.verb = in_u32(&in);
    in_text(&in, o.uuid, sizeof o.uuid);
    for (size_t i = 0; i < ARRAY_LEN(o.value); i++) o.value[i] = in_i64(&in);
    if (in.is_bad) return wire_bad(f, e);
    *ret = o;
    return 0;
}

void wire_put_order_result(struct buf *b, const struct wire_order_result *a) {
    size_t from = wire_begin(b, WIRE_ORDER_RESULT);
    out_u64(b, a->id);
    out_i32(b, a->result);
    out_i64(b, a->value);
    out_text(b, a->text);
    wire_end(b, from);
}

int wire_get_order_result(const struct wire_frame *f, struct wire_order_result *ret, struct error *e) {
    struct wire_order_result a = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_ORDER_RESULT, &in, e);
    if (r < 0) return r;
    a.id = in_u64(&in);
    a.result = in_i32(&in);
    a.value = in_i64(&in);
    in_text(&in, a.text, sizeof a.text);
    if (in.is_bad || a.result > 0) return wire_bad(f, e);
    *ret = a;
    return 0;
}

void wire_put_bye(struct buf *b, const char *text) {
    size_t from = wire_begin(b, WIRE_BYE);
    char room[sizeof(((struct wire_bye *)0)->text)];
    size_t n = strnlen(text, sizeof room - 1);
    memcpy(room, text, n);
    room[n] = 0;
    out_text(b, room);
    wire_end(b, from);
}

int wire_get_bye(const struct wire_frame *f, struct wire_bye *ret, struct error *e) {
    struct wire_bye bye;
    struct wire_in in;
    int r = wire_open(f, WIRE_BYE, &in, e);
    if (r < 0) return r;
    in_text(&in, bye.text, sizeof bye.text);
    if (in.is_bad) return wire_bad(f, e);
    *ret = bye;
    return 0;
}
