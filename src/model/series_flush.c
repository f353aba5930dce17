#include "model/series_flush.h"

#include <errno.h>
#include <stdlib.h>

#include "model/series_bytes.h"

#define FLUSH_FORMAT 1
enum { IS_REAL = 1, IS_DENSE = 2, IS_STILL = 4, FLAG_BITS = 3 };

void flush_begin(struct flush_writer *w, struct buf *out) {
    *w = (struct flush_writer){.out = out};
    buf_putc(out, FLUSH_FORMAT);
}
void flush_end(struct flush_writer *w) { varint_put(w->out, 0); }

/* n differences as varints, at most ten bytes each. */
static void put_deltas(struct buf *out, const int64_t *v, size_t n) {
    buf_reserve(out, n * 10);
    uint8_t *began = (uint8_t *)out->s + out->len, *at = began;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        at = varint_write(at, zigzag((int64_t)((uint64_t)v[i] - before)));
        before = (uint64_t)v[i];
    }
    out->len += (size_t)(at - began);
    out->s[out->len] = 0;
}

void flush_subject(struct flush_writer *w, uint64_t id, const int64_t *at_ms, size_t rounds, size_t series) {
    varint_put(w->out, id);
    varint_put(w->out, rounds);
    put_deltas(w->out, at_ms, rounds);
    varint_put(w->out, series);
    w->last_id = 0;
}

void flush_series(struct flush_writer *w, uint64_t id, size_t rounds, const uint32_t *round, uint32_t first,
                  const int64_t *v, size_t n, enum series_kind kind) {
    struct buf *out = w->out;
    size_t same = 1;
    while (same < n && v[same] == v[0]) same++;
    bool is_real = kind == SERIES_REAL, is_dense = n == rounds, is_still = same == n;
    varint_put(out, id - w->last_id);
    varint_put(out, n << FLAG_BITS | (is_still ? IS_STILL : 0) | (is_dense ? IS_DENSE : 0) | (is_real ? IS_REAL : 0));
    w->last_id = id;
    for (size_t i = 0; i < n && !is_dense; i++) {
        varint_put(out, round[i] - first);
        first = round[i] + 1;
    }
    if (is_still) n = 1;
    if (is_real)
        buf_add(out, v, n * sizeof *v);
    else
        put_deltas(out, v, n);
}

struct walk {
    struct bytes b;
    int64_t *at_ms, *v;
    uint32_t *round;
    size_t at_room, v_room, round_room;
    uint64_t last_id;
};

static void *room(void *have, size_t *have_n, size_t want_n, size_t each) {
    if (*have_n >= want_n) return have;
    free(have);
    if (!(have = malloc(want_n * each))) abort();
    *have_n = want_n;
    return have;
}

static void get_deltas(struct bytes *b, int64_t *ret, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) ret[i] = (int64_t)(v += (uint64_t)unzigzag(bytes_varint(b)));
}

static void get_rounds(struct walk *w, size_t rounds, size_t n, bool is_dense) {
    size_t at = 0;
    for (size_t i = 0; i < n && !w->b.is_bad; i++) {
        at += is_dense ? 0 : bytes_count(&w->b, FLUSH_ROUNDS_MAX);
        if (at >= rounds) bytes_bad(&w->b);
        w->round[i] = (uint32_t)at++;
    }
}

static int walk_series(struct walk *w, size_t rounds, const struct flush_visit *visit, void *ctx, struct error *e) {
    uint64_t id = w->last_id += bytes_varint(&w->b), head = bytes_varint(&w->b);
    size_t n = (size_t)(head >> FLAG_BITS), kept = head & IS_STILL ? 1 : n;
    bool is_real = head & IS_REAL, is_dense = head & IS_DENSE;
    /* n is below the number of rounds, which was below that of the bytes: nobody can ask for memory for nothing. */
    if (n == 0 || n > rounds || is_dense != (n == rounds) || kept > bytes_left(&w->b)) bytes_bad(&w->b);
    if (w->b.is_bad) return fail(e, -EBADMSG, "a damaged flush row");
    w->round = room(w->round, &w->round_room, n, sizeof *w->round);
    w->v = room(w->v, &w->v_room, n, sizeof *w->v);
    get_rounds(w, rounds, n, is_dense);
    if (is_real)
        for (size_t i = 0; i < kept; i++) w->v[i] = (int64_t)bytes_u64(&w->b);
    else
        get_deltas(&w->b, w->v, kept);
    for (size_t i = kept; i < n; i++) w->v[i] = w->v[0];
    if (w->b.is_bad) return fail(e, -EBADMSG, "a damaged flush row");
    return visit->series(ctx, id, w->round, w->v, n, is_real ? SERIES_REAL : SERIES_WHOLE, e);
}

static int walk_subject(struct walk *w, uint64_t id, const struct flush_visit *visit, void *ctx, struct error *e) {
    size_t rounds = bytes_count(&w->b, FLUSH_ROUNDS_MAX);
    if (rounds > bytes_left(&w->b)) bytes_bad(&w->b);
    w->at_ms = room(w->at_ms, &w->at_room, rounds + 1, sizeof *w->at_ms);
    if (!w->b.is_bad) get_deltas(&w->b, w->at_ms, rounds);
    uint64_t series = bytes_varint(&w->b);
    if (w->b.is_bad) return fail(e, -EBADMSG, "a damaged flush row");
    w->last_id = 0;
    int r = visit->subject(ctx, id, w->at_ms, rounds, e);
    for (uint64_t i = 0; i < series && r >= 0; i++) r = walk_series(w, rounds, visit, ctx, e);
    return r;
}

static int walk_all(struct walk *w, const struct flush_visit *visit, void *ctx, struct error *e) {
    if (bytes_u8(&w->b) != FLUSH_FORMAT) return fail(e, -EBADMSG, "a flush row of an unknown format");
    for (;;) {
        uint64_t id = bytes_varint(&w->b);
        if (w->b.is_bad) return fail(e, -EBADMSG, "a damaged flush row");
        if (id == 0) return w->b.at == w->b.end ? 0 : fail(e, -EBADMSG, "a flush row with something behind its end");
        int r = walk_subject(w, id, visit, ctx, e);
        if (r < 0) return r;
    }
}

int flush_walk(const uint8_t *bytes, size_t len, const struct flush_visit *visit, void *ctx, struct error *e) {
    struct walk w = {
        .b = {.at = bytes, .end = bytes + len}
    };
    int r = walk_all(&w, visit, ctx, e);
    free(w.at_ms);
    free(w.v);
    free(w.round);
    return r;
}
