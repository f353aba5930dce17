#include "model/curve.h"

#include <errno.h>
#include <math.h>

#include "model/series_bytes.h"

#define VERSION 1
#define STEP_MAX_MS (1u << 31)
#define AT_MAX_MS (1ll << 50)

static int64_t before_ms(const struct curve *c, size_t at) { return at ? c->of[at - 1].at_ms : 0; }

/* Of two moments the later stays; of what was held, the more. */
static void join(struct curve_point *later, const struct curve_point *earlier) {
    uint64_t *held = &later->value[CURVE_HOST_BYTES], was = earlier->value[CURVE_HOST_BYTES];
    if (was != CURVE_UNKNOWN && (*held == CURVE_UNKNOWN || was > *held)) *held = was;
}

static void thin(struct curve *c) {
    for (uint32_t i = 0; i + 1 < c->count; i += 2) {
        struct curve_point later = c->of[i + 1];
        join(&later, &c->of[i]);
        c->of[i / 2] = later;
    }
    c->count /= 2;
    if (c->step_ms < STEP_MAX_MS) c->step_ms *= 2;
}

/* Rounds come a little early or late: three quarters of a step are one. */
static bool is_whole(const struct curve *c, size_t at) {
    return c->of[at].at_ms - before_ms(c, at) >= (int64_t)c->step_ms / 4 * 3;
}

void curve_add(struct curve *c, const struct curve_point *p) {
    struct curve_point next = *p;
    const struct curve_point *last = c->count ? &c->of[c->count - 1] : NULL;
    if (!c->step_ms) c->step_ms = CURVE_STEP_MS;
    if (next.at_ms <= (last ? last->at_ms : 0) || next.at_ms >= AT_MAX_MS) return;
    for (int i = 0; last && i < CURVE_SUMS; i++)
        if (last->value[i] != CURVE_UNKNOWN && (next.value[i] == CURVE_UNKNOWN || next.value[i] < last->value[i]))
            next.value[i] = last->value[i];
    if (last && !is_whole(c, c->count - 1)) {
        join(&next, last);
        c->of[c->count - 1] = next;
        return;
    }
    if (c->count == CURVE_POINTS) thin(c);
    c->of[c->count++] = next;
}

double curve_rate(const struct curve *c, size_t at, enum curve_column column) {
    uint64_t now = c->of[at].value[column], before = at ? c->of[at - 1].value[column] : 0;
    double seconds = (double)(c->of[at].at_ms - before_ms(c, at)) * 1e-3;
    if (now == CURVE_UNKNOWN || before == CURVE_UNKNOWN || seconds <= 0 || now < before) return NAN;
    return (double)(now - before) / seconds;
}

void curve_encode(const struct curve *c, struct buf *b) {
    uint64_t last[CURVE_COLUMNS] = {0};
    buf_putc(b, VERSION);
    varint_put(b, c->step_ms);
    varint_put(b, c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        varint_put(b, (uint64_t)(c->of[i].at_ms - before_ms(c, i)));
        for (int k = 0; k < CURVE_COLUMNS; k++) {
            uint64_t v = c->of[i].value[k];
            varint_put(b, v == CURVE_UNKNOWN ? 0 : 1 + zigzag((int64_t)(v - last[k])));
            if (v != CURVE_UNKNOWN) last[k] = v;
        }
    }
}

static bool get_point(struct bytes *in, int64_t before, uint64_t last[CURVE_COLUMNS], struct curve_point *ret) {
    ret->at_ms = before + (int64_t)bytes_count(in, AT_MAX_MS);
    if (ret->at_ms <= before || ret->at_ms >= AT_MAX_MS) return false;
    for (int k = 0; k < CURVE_COLUMNS; k++) {
        uint64_t v = bytes_varint(in);
        ret->value[k] = v ? last[k] + (uint64_t)unzigzag(v - 1) : CURVE_UNKNOWN;
        if (v && k < CURVE_SUMS && ret->value[k] < last[k]) return false;
        if (v) last[k] = ret->value[k];
    }
    return !in->is_bad;
}

int curve_decode(const void *bytes, size_t len, struct curve *ret, struct error *e) {
    struct bytes in = {.at = bytes, .end = (const uint8_t *)bytes + len};
    uint64_t last[CURVE_COLUMNS] = {0};
    bool is_good = bytes_u8(&in) == VERSION;
    ret->step_ms = (uint32_t)bytes_count(&in, STEP_MAX_MS);
    ret->count = (uint32_t)bytes_count(&in, CURVE_POINTS);
    if (!ret->step_ms && ret->count) is_good = false;
    for (uint32_t i = 0; is_good && i < ret->count; i++) is_good = get_point(&in, before_ms(ret, i), last, &ret->of[i]);
    if (is_good && !in.is_bad && !bytes_left(&in)) return 0;
    ret->count = 0;
    return fail(e, -EBADMSG, "what a run has used over its time is damaged");
}
