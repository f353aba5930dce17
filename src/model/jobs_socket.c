#include "model/jobs_socket.h"

#include <errno.h>

#include "model/wire_frame.h"

static struct job_words in_words(struct wire_in *in, size_t most) {
    struct job_words w = {.count = in_u16(in)};
    w.len = in_u32(in); /* not in one initialiser: its order is the compiler's */
    const uint8_t *at = in_take(in, w.len);
    unsigned found = 0;
    if (!at || w.len > most || (w.len && at[w.len - 1] != 0)) {
        in->is_bad = true;
        return (struct job_words){0};
    }
    for (size_t i = 0; i < w.len; i++) found += at[i] == 0;
    in->is_bad |= found != w.count;
    w.s = (const char *)at;
    return w;
}

static void out_words(struct buf *b, const struct job_words *w) {
    out_u16(b, (uint16_t)w->count);
    out_u32(b, (uint32_t)w->len);
    buf_add(b, w->s, w->len);
}

/* ---- SUBMIT ---- */

size_t jobs_begin_submit(struct buf *b, const struct jobs_submit *s) {
    size_t from = wire_begin(b, WIRE_CALL_SUBMIT);
    out_u64(b, s->request);
    out_u32(b, s->umask);
    out_text(b, s->cwd);
    out_words(b, &s->environment);
    out_u16(b, s->count);
    return from;
}

void jobs_add_submit(struct buf *b, const void *record, size_t len) {
    out_u32(b, (uint32_t)len);
    buf_add(b, record, len);
}

void jobs_tail_submit(struct buf *b, const struct jobs_submit *s) { out_text(b, s->key); }

static bool next_record(struct wire_in *in, const uint8_t **record, size_t *len) {
    *len = in_u32(in);
    *record = *len <= JOB_RECORD_MAX ? in_take(in, *len) : NULL;
    return *record != NULL;
}

int jobs_get_submit(const struct wire_frame *f, struct jobs_submit *ret, struct error *e) {
    struct jobs_submit s = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_CALL_SUBMIT, &in, e);
    if (r < 0) return r;
    s.request = in_u64(&in);
    s.umask = in_u32(&in);
    in_text(&in, s.cwd, sizeof s.cwd);
    s.environment = in_words(&in, JOBS_ENVIRONMENT_MAX);
    s.count = in_u16(&in);
    s.at = in.at;
    s.len = in.is_bad ? 0 : (size_t)(in.end - in.at);
    if (in.is_bad || s.count > JOBS_SUBMIT_MAX || s.umask > 0777) return wire_bad(f, e);
    const uint8_t *record;
    size_t len;
    for (unsigned i = 0; i < s.count; i++)
        if (!next_record(&in, &record, &len)) return wire_bad(f, e);
    s.len = (size_t)(in.at - s.at);
    if (in.at < in.end) in_text(&in, s.key, sizeof s.key);
    if (in.is_bad || !wire_key_is_good(s.key)) return wire_bad(f, e);
    *ret = s;
    return 0;
}

bool jobs_next_submit(struct jobs_submit *list, const uint8_t **record, size_t *len) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (!list->count || !next_record(&in, record, len)) return false;
    list->count--;
    list->at = in.at;
    list->len = (size_t)(in.end - in.at);
    return true;
}

/* ---- FOLLOW, SIGNAL ---- */

void jobs_put_follow(struct buf *b, const struct jobs_follow *f) {
    size_t from = wire_begin(b, WIRE_CALL_FOLLOW);
    out_u64(b, f->request);
    out_i64(b, f->job);
    out_u32(b, f->element);
    out_u8(b, f->has_log);
    out_u32(b, f->attempt);
    out_u64(b, f->offset);
    wire_end(b, from);
}

int jobs_get_follow(const struct wire_frame *f, struct jobs_follow *ret, struct error *e) {
    struct jobs_follow got = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_CALL_FOLLOW, &in, e);
    if (r < 0) return r;
    got.request = in_u64(&in);
    got.job = in_i64(&in);
    got.element = in_u32(&in);
    got.has_log = in_u8(&in) != 0;
    got.attempt = in_u32(&in);
    got.offset = in_u64(&in);
    if (in.is_bad) return wire_bad(f, e);
    *ret = got;
    return 0;
}

void jobs_put_signal(struct buf *b, const struct jobs_signal *s) {
    size_t from = wire_begin(b, WIRE_CALL_SIGNAL);
    out_u64(b, s->request);
    out_i64(b, s->job);
    out_u32(b, s->element);
    out_i32(b, s->number);
    wire_end(b, from);
}

int jobs_get_signal(const struct wire_frame *f, struct jobs_signal *ret, struct error *e) {
    struct jobs_signal got = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_CALL_SIGNAL, &in, e);
    if (r < 0) return r;
    got.request = in_u64(&in);
    got.job = in_i64(&in);
    got.element = in_u32(&in);
    got.number = in_i32(&in);
    if (in.is_bad || got.number < 1 || got.number > 64) return wire_bad(f, e);
    *ret = got;
    return 0;
}

/* ---- a terminal ---- */

void jobs_put_pty(struct buf *b, const struct jobs_pty *p) {
    out_u8(b, (uint8_t)p->kind);
    out_u8(b, 0);
    out_u16(b, p->kind == JOBS_PTY_SIZE ? 4 : p->len);
    if (p->kind == JOBS_PTY_SIZE) {
        out_u16(b, p->rows);
        out_u16(b, p->columns);
    } else {
        buf_add(b, p->bytes, p->len);
    }
}

int jobs_get_pty(const void *bytes, size_t n, struct jobs_pty *ret, struct error *e) {
    struct wire_in in = {.at = bytes, .end = (const uint8_t *)bytes + n};
    if (n < JOBS_PTY_HEAD) return 0;
    struct jobs_pty p = {.kind = in_u8(&in)};
    uint8_t zero = in_u8(&in);
    p.len = in_u16(&in);
    if (p.kind > JOBS_PTY_SIZE || zero || p.len > JOBS_PTY_MOST || (p.kind == JOBS_PTY_SIZE && p.len != 4))
        return fail(e, -EPROTO, "not a record for a terminal");
    if (n < JOBS_PTY_HEAD + (size_t)p.len) return 0;
    p.bytes = in.at;
    if (p.kind == JOBS_PTY_SIZE) {
        p.rows = in_u16(&in);
        p.columns = in_u16(&in);
    }
    *ret = p;
    return JOBS_PTY_HEAD + (int)p.len;
}
