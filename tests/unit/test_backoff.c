/* Pauses before a restart, and figures that no card can have. */
#include "model/backoff.h"

#include <math.h>

#include "base/auto.h"
#include "model/plausible.h"
#include "tests/test.h"

#define MS 1000000ll
#define S 1000000000ll

static void doubles_and_is_bounded(void **state) {
    struct backoff b = {0};
    const int64_t want[] = {100 * MS,  200 * MS,   400 * MS,   800 * MS, 1600 * MS, 3200 * MS,
                            6400 * MS, 12800 * MS, 25600 * MS, 30 * S,   30 * S};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) assert_int_equal(backoff_next(&b, S, 0, 100 * MS, 30 * S), want[i]);
}

static void a_good_run_is_a_new_start(void **state) {
    struct backoff b = {0};
    for (int i = 0; i < 5; i++) backoff_next(&b, S, 0, 100 * MS, 30 * S);
    assert_int_equal(backoff_next(&b, 61 * S, 0, 100 * MS, 30 * S), 100 * MS);
}

static void what_others_kill_is_back_at_once(void **state) {
    struct backoff b = {0};
    for (int i = 0; i < 100; i++) assert_int_equal(backoff_next(&b, S, 100, 20 * MS, 30 * S), 20 * MS);
    assert_int_equal(backoff_next(&b, S, 100, 20 * MS, 30 * S), 20 * MS);
    assert_int_equal(backoff_next(&b, S, 100, 20 * MS, 30 * S), 40 * MS); /* but not for ever */
}

static void plausible(void **state) {
    static const struct {
        enum metric_unit unit;
        double value;
        bool want;
    } rows[] = {
        {UNIT_CELSIUS, 34,           true },
        {UNIT_CELSIUS, -8,           true },
        {UNIT_CELSIUS, 4294967295.0, false},
        {UNIT_CELSIUS, 9.2e18,       false},
        {UNIT_RATIO,   0,            true },
        {UNIT_RATIO,   1,            true },
        {UNIT_RATIO,   1.01,         false},
        {UNIT_RATIO,   -0.01,        false},
        {UNIT_WATTS,   700,          true },
        {UNIT_WATTS,   4294967,      false},
        {UNIT_BYTES,   1.8e19,       false},
        {UNIT_NUMBER,  NAN,          false},
        {UNIT_SECONDS, 1.8e10,       false},
        {UNIT_HERTZ,   INFINITY,     false},
        {UNIT_BOOL,    2,            false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (value_is_plausible(rows[i].unit, rows[i].value) != rows[i].want) fail_msg("row %zu: %g", i, rows[i].value);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(doubles_and_is_bounded),
                                       cmocka_unit_test(a_good_run_is_a_new_start),
                                       cmocka_unit_test(what_others_kill_is_back_at_once), cmocka_unit_test(plausible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
