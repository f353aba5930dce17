/* Samples: absent is never zero. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "model/sample.h"

enum { A = 0, B = 63 % METRIC_COUNT, C = METRIC_COUNT - 1 };

static void put_and_has(void **state) {
    for (int id = 0; id < METRIC_COUNT; id++) {
        struct sample s = {0};
        sample_put(&s, id, 0);
        for (int other = 0; other < METRIC_COUNT; other++) assert_int_equal(sample_has(&s, other), other == id);
        bits_clear(s.has, id);
        assert_false(sample_has(&s, id));
    }
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sample s = {0};
        sample_put(&s, A, bad[i]);
        assert_false(sample_has(&s, A));
    }
}

static void taking(void **state) {
    static const struct {
        const char *name;
        bool known, asked, came; /* known before; in the sample */
        bool has;                /* known after */
        double value;
    } rows[] = {
        {"came",                         false, true,  true,  true,  0},
        {"came without being asked for", false, false, true,  true,  0},
        {"replaced",                     true,  true,  true,  true,  0},
        {"not asked keeps",              true,  false, false, true,  7},
        {"asked and missing clears",     true,  true,  false, false, 0},
        {"missing stays missing",        false, true,  false, false, 0},
        {"never asked is never there",   false, false, false, false, 0},
    };
    static const int ids[] = {A, B, C};
    int64_t for_ns[METRIC_COUNT];
    for (int i = 0; i < METRIC_COUNT; i++) for_ns[i] = 100;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
            int id = ids[k];
            struct latest l = {0};
            struct sample old = {.boot_ns = 1000}, s = {.boot_ns = 1050};
            if (rows[i].known) {
                sample_put(&old, id, 7);
                latest_take(&l, &old, for_ns);
            }
            if (rows[i].asked) bits_set(s.asked, id);
            if (rows[i].came) sample_put(&s, id, 0);
            latest_take(&l, &s, for_ns);
            if (latest_has(&l, id, 1060) != rows[i].has) print_error("row %s\n", rows[i].name);
            assert_int_equal(latest_has(&l, id, 1060), rows[i].has);
            if (rows[i].has) assert_true(l.of[id].value == rows[i].value);
            for (int other = 0; other < METRIC_COUNT; other++) assert_true(other == id || !latest_has(&l, other, 1060));
        }
    }
}

static void expiry(void **state) {
    static const struct {
        int64_t at, lives, now;
        bool has;
    } rows[] = {
        {1000,          100,       1000,      true },
        {1000,          100,       1100,      true },
        {1000,          100,       1101,      false},
        {1000,          0,         1000,      true },
        {1000,          0,         1001,      false},
        {1000,          INT64_MAX, INT64_MAX, true },
        {INT64_MAX - 5, 10,        INT64_MAX, true },
        {0,             100,       50,        false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t for_ns[METRIC_COUNT] = {0};
        struct latest l = {0};
        struct sample s = {.boot_ns = rows[i].at};
        for_ns[C] = rows[i].lives;
        sample_put(&s, C, 1);
        latest_take(&l, &s, for_ns);
        assert_int_equal(latest_has(&l, C, rows[i].now), rows[i].has);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_and_has),
        cmocka_unit_test(taking),
        cmocka_unit_test(expiry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
