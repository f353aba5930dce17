#include "model/wire_container_call.h"

#include "model/container_spec.h"
#include "model/wire_frame.h"

static const struct {
    const char *name;
    bool changes;
} verbs[] = {
#define X(id, name, changes) [CONTAINER_VERB_##id] = {name, changes},
    CONTAINER_VERBS(X)
#undef X
};

const char *container_verb_name(enum container_verb v) {
    return (unsigned)v < CONTAINER_VERB_COUNT ? verbs[v].name : "";
}
bool container_verb_changes(enum container_verb v) { return (unsigned)v < CONTAINER_VERB_COUNT && verbs[v].changes; }

static void put_bytes(struct buf *b, const uint8_t *bytes, size_t n) {
    out_u32(b, (uint32_t)n);
    if (n) buf_add(b, bytes, n);
}

static const uint8_t *get_bytes(struct wire_in *in, size_t most, size_t *ret_len) {
    size_t n = in_u32(in);
    if (n > most) in->is_bad = true;
    const uint8_t *p = in->is_bad ? NULL : in_take(in, n);
    *ret_len = p ? n : 0;
    return p;
}

static bool get_flag(struct wire_in *in) {
    uint8_t v = in_u8(in);
    in->is_bad |= v > 1;
    return v == 1;
}

void wire_put_container_call(struct buf *b, const struct wire_container_call *c) {
    size_t from = wire_begin(b, WIRE_CONTAINER_CALL);
    out_u64(b, c->request);
    out_u8(b, c->verb);
    out_text(b, c->account);
    out_u8(b, c->is_admin);
    out_u8(b, c->is_shared);
    out_text(b, c->of);
    out_u32(b, c->lines);
    put_bytes(b, c->record, c->record_len);
    wire_end(b, from);
}

int wire_get_container_call(const struct wire_frame *f, struct wire_container_call *ret, struct error *e) {
    struct wire_container_call c = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_CONTAINER_CALL, &in, e);
    if (r < 0) return r;
    c.request = in_u64(&in);
    c.verb = in_u8(&in);
    in_text(&in, c.account, sizeof c.account);
    c.is_admin = get_flag(&in);
    c.is_shared = get_flag(&in);
    in_text(&in, c.of, sizeof c.of);
    c.lines = in_u32(&in);
    c.record = get_bytes(&in, CONTAINER_RECORD_MAX, &c.record_len);
    if (in.is_bad) return wire_bad(f, e);
    *ret = c;
    return 0;
}

void wire_put_container_answer(struct buf *b, const struct wire_container_answer *a) {
    size_t from = wire_begin(b, WIRE_CONTAINER_ANSWER);
    out_u64(b, a->request);
    out_i32(b, a->result);
    out_text(b, a->text);
    put_bytes(b, a->body, a->len);
    wire_end(b, from);
}

int wire_get_container_answer(const struct wire_frame *f, struct wire_container_answer *ret, struct error *e) {
    struct wire_container_answer a = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_CONTAINER_ANSWER, &in, e);
    if (r < 0) return r;
    a.request = in_u64(&in);
    a.result = in_i32(&in);
    in_text(&in, a.text, sizeof a.text);
    a.body = get_bytes(&in, WIRE_CONTAINER_ANSWER_MAX, &a.len);
    if (in.is_bad) return wire_bad(f, e);
    *ret = a;
    return 0;
}
