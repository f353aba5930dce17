#include "model/wire_notice.h"

#include <string.h>

#include "model/wire_bytes.h"
#include "model/wire_frame.h"

/* ---- WANTED ---- */

size_t wire_begin_wanted(struct buf *b, uint16_t count) {
    size_t from = wire_begin(b, WIRE_JOB_WANTED);
    out_u16(b, count);
    return from;
}

void wire_add_wanted(struct buf *b, const char *uuid) {
    size_t record = out_record_begin(b);
    out_text(b, uuid);
    out_record_end(b, record);
}

void wire_begin_sound(struct buf *b, uint16_t count) { out_u16(b, count); }

void wire_add_sound(struct buf *b, const char *uuid, int64_t since_ns) {
    size_t record = out_record_begin(b);
    out_text(b, uuid);
    out_i64(b, since_ns);
    out_record_end(b, record);
}

static bool get_sound(struct wire_in *in, char ret[96], int64_t *since_ns) {
    struct wire_in record = in_record(in);
    in_text(&record, ret, 96);
    *since_ns = in_i64(&record);
    return !record.is_bad && ret[0] && *since_ns > 0;
}

static bool get_one(struct wire_in *in, char ret[96]) {
    struct wire_in record = in_record(in);
    in_text(&record, ret, 96);
    return !record.is_bad && ret[0];
}

int wire_get_wanted(const struct wire_frame *f, struct wire_wanted *ret, struct error *e) {
    struct wire_wanted list = {0};
    struct wire_in in;
    char uuid[96];
    int64_t since_ns;
    int r = wire_open(f, WIRE_JOB_WANTED, &in, e);
    if (r < 0) return r;
    list.count = in_u16(&in);
    list.at = in.at;
    if (list.count > WIRE_DEVICES_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_one(&in, uuid)) in.is_bad = true;
    list.len = in.is_bad ? 0 : (size_t)(in.at - list.at);
    list.sound = in_u16(&in);
    list.sound_at = in.at;
    if (list.sound > WIRE_DEVICES_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < list.sound && !in.is_bad; i++)
        if (!get_sound(&in, uuid, &since_ns)) in.is_bad = true;
    if (in.is_bad) return wire_bad(f, e);
    list.sound_len = (size_t)(in.at - list.sound_at);
    *ret = list;
    return 0;
}

bool wire_next_wanted(struct wire_wanted *list, char ret[96]) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0 || !get_one(&in, ret)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    return true;
}

bool wire_next_sound(struct wire_wanted *list, char ret[96], int64_t *since_ns) {
    struct wire_in in = {.at = list->sound_at, .end = list->sound_at + list->sound_len};
    if (list->sound_len == 0 || !get_sound(&in, ret, since_ns)) return false;
    list->sound_len -= (size_t)(in.at - list->sound_at);
    list->sound_at = in.at;
    return true;
}

/* ---- NOTICE, NOTICED ---- */

void wire_put_notice(struct buf *b, const struct wire_notice *n) {
    size_t from = wire_begin(b, WIRE_JOB_NOTICE);
    out_u64(b, n->id);
    out_i64(b, n->job);
    out_u16(b, n->word);
    out_text(b, n->kind);
    out_text(b, n->text);
    wire_put_sealed_job(b, &n->sealed);
    wire_end(b, from);
}

int wire_get_notice(const struct wire_frame *f, struct wire_notice *ret, struct error *e) {
    struct wire_notice n = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_NOTICE, &in, e);
    if (r < 0) return r;
    n.id = in_u64(&in);
    n.job = in_i64(&in);
    n.word = in_u16(&in);
    in_text(&in, n.kind, sizeof n.kind);
    in_text(&in, n.text, sizeof n.text);
    wire_get_sealed_job(&in, &n.sealed);
    if (in.is_bad || n.job <= 0 || !n.kind[0] || !n.text[0]) return wire_bad(f, e);
    *ret = n;
    return 0;
}

void wire_put_noticed(struct buf *b, const struct wire_noticed *n) {
    size_t from = wire_begin(b, WIRE_JOB_NOTICED);
    out_u64(b, n->id);
    out_i32(b, n->result);
    out_text(b, n->text);
    wire_end(b, from);
}

int wire_get_noticed(const struct wire_frame *f, struct wire_noticed *ret, struct error *e) {
    struct wire_noticed n = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_JOB_NOTICED, &in, e);
    if (r < 0) return r;
    n.id = in_u64(&in);
    n.result = in_i32(&in);
    in_text(&in, n.text, sizeof n.text);
    if (in.is_bad || !is_result(n.result, n.text)) return wire_bad(f, e);
    *ret = n;
    return 0;
}
