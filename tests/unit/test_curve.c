/* What a run used over its time: bounded, never back, exact over any stretch, and read again only if it is whole. */
#include "model/curve.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/test.h"

static struct curve_point at(int64_t ms, uint64_t cpu_ms, uint64_t host) {
    return (struct curve_point){
        .at_ms = ms, .value = {cpu_ms, 2 * cpu_ms, 3 * cpu_ms, host}
    };
}

static void short_ones_keep_every_round(void **s) {
    struct curve c = {0};
    for (int i = 1; i <= 100; i++) {
        struct curve_point p = at(i * 2000 + (i % 3 - 1) * 150, (uint64_t)i * 1000, 5); /* a little early or late */
        curve_add(&c, &p);
    }
    assert_int_equal(c.count, 100);
    assert_int_equal(c.step_ms, 2000);
    for (size_t i = 0; i < c.count; i++) assert_true(fabs(curve_rate(&c, i, CURVE_CPU_MS) - 500) < 90);
}

/* A month of rounds: never more than there is room for, the whole sum is kept, and so is the peak. */
static void long_ones_are_thinned(void **s) {
    struct curve c = {0};
    uint64_t rounds = 30ull * 86400 / 2, most = 0;
    for (uint64_t i = 1; i <= rounds; i++) {
        struct curve_point p = at((int64_t)i * 2000, i * 1000, i == 777777 ? 99999 : i % 7);
        curve_add(&c, &p);
        assert_in_range(c.count, 1, CURVE_POINTS);
    }
    assert_true(c.count >= CURVE_POINTS / 2 - 1);
    assert_int_equal(c.of[c.count - 1].at_ms, rounds * 2000);
    assert_int_equal(c.of[c.count - 1].value[CURVE_CPU_MS], rounds * 1000);
    double sum = 0;
    for (size_t i = 0; i < c.count; i++) {
        double seconds = (double)(c.of[i].at_ms - (i ? c.of[i - 1].at_ms : 0)) / 1e3;
        sum += curve_rate(&c, i, CURVE_WRITTEN_BYTES) * seconds;
        if (c.of[i].value[CURVE_HOST_BYTES] > most) most = c.of[i].value[CURVE_HOST_BYTES];
    }
    assert_true(fabs(sum - 3000.0 * (double)rounds) < 1);
    assert_int_equal(most, 99999);
}

/* Whoever was killed meanwhile: a gap is one long step with its true mean. */
static void a_gap_costs_only_detail(void **s) {
    struct curve c = {0};
    struct curve_point p[] = {at(2000, 1000, 1), at(4000, 2000, 1), at(64000, 62000, 1)};
    for (int i = 0; i < 3; i++) curve_add(&c, &p[i]);
    assert_int_equal(c.count, 3);
    assert_true(fabs(curve_rate(&c, 2, CURVE_CPU_MS) - 1000) < 0.01);
}

static void nothing_goes_back(void **s) {
    struct curve c = {0};
    struct curve_point p = at(4000, 100, 7), earlier = at(3000, 200, 7), less = at(6000, 50, 3),
                       unknown = at(8000, 0, 0);
    for (int i = 0; i < CURVE_COLUMNS; i++) unknown.value[i] = CURVE_UNKNOWN;
    curve_add(&c, &p);
    curve_add(&c, &earlier); /* a clock that was set */
    assert_int_equal(c.count, 1);
    curve_add(&c, &less);
    assert_int_equal(c.of[1].value[CURVE_CPU_MS], 100);
    assert_int_equal(c.of[1].value[CURVE_HOST_BYTES], 3);
    assert_true(curve_rate(&c, 1, CURVE_CPU_MS) == 0);
    curve_add(&c, &unknown);
    assert_int_equal(c.of[2].value[CURVE_CPU_MS], 100);
    assert_int_equal(c.of[2].value[CURVE_HOST_BYTES], CURVE_UNKNOWN);
}

static void what_is_not_known_has_no_rate(void **s) {
    struct curve c = {0};
    struct curve_point p[] = {at(2000, 10, 1), at(4000, 20, 1)};
    p[0].value[CURVE_READ_BYTES] = CURVE_UNKNOWN;
    for (int i = 0; i < 2; i++) curve_add(&c, &p[i]);
    assert_true(isnan(curve_rate(&c, 0, CURVE_READ_BYTES)) && isnan(curve_rate(&c, 1, CURVE_READ_BYTES)));
    assert_true(curve_rate(&c, 1, CURVE_CPU_MS) == 5);
}

static void it_is_read_as_it_was_written(void **s) {
    AUTO(buf_done) struct buf b = {0}, again = {0};
    struct curve c = {0}, back = {0};
    struct error e;
    for (int i = 1; i <= 700; i++) {
        struct curve_point p = at(i * 2000, (uint64_t)i * 1234, i % 5 ? (uint64_t)(i % 11) << 20 : CURVE_UNKNOWN);
        curve_add(&c, &p);
    }
    curve_encode(&c, &b);
    assert_in_range(b.len, 100, 5000);
    assert_int_equal(curve_decode(b.s, b.len, &back, &e), 0);
    assert_int_equal(back.count, c.count);
    assert_int_equal(back.step_ms, c.step_ms);
    assert_memory_equal(back.of, c.of, c.count * sizeof *c.of);
    for (size_t n = 0; n < b.len; n++) assert_int_equal(curve_decode(b.s, n, &back, &e), -EBADMSG);
    buf_putc(&b, 0); /* and nothing may follow */
    assert_int_equal(curve_decode(b.s, b.len, &back, &e), -EBADMSG);
    c = (struct curve){0};
    curve_encode(&c, &again);
    assert_int_equal(curve_decode(again.s, again.len, &back, &e), 0);
    assert_int_equal(back.count, 0);
}

/* Every byte changed to anything: it is refused, or it is a curve whose times rise and whose sums do. */
static void damage_is_seen_or_harmless(void **s) {
    AUTO(buf_done) struct buf b = {0};
    struct curve c = {0}, back = {0};
    struct error e;
    for (int i = 1; i <= 20; i++) {
        struct curve_point p = at(i * 2000, (uint64_t)i * 1234, 7);
        curve_add(&c, &p);
    }
    curve_encode(&c, &b);
    for (size_t n = 0; n < b.len; n++)
        for (int v = 0; v < 256; v++) {
            char was = b.s[n];
            b.s[n] = (char)v;
            int r = curve_decode(b.s, b.len, &back, &e);
            assert_true(r == 0 || (r == -EBADMSG && back.count == 0));
            assert_true(back.count <= CURVE_POINTS);
            for (uint32_t i = 1; i < back.count; i++) assert_true(back.of[i].at_ms > back.of[i - 1].at_ms);
            b.s[n] = was;
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ones_keep_every_round),   cmocka_unit_test(long_ones_are_thinned),
        cmocka_unit_test(a_gap_costs_only_detail),       cmocka_unit_test(nothing_goes_back),
        cmocka_unit_test(what_is_not_known_has_no_rate), cmocka_unit_test(it_is_read_as_it_was_written),
        cmocka_unit_test(damage_is_seen_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
