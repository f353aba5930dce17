/* The energy counter between its rare readings. */
#include "model/energy.h"

#include <math.h>

#include "tests/test.h"

#define S 1000000000ll

static void integrates(void **state) {
    struct energy en = {0};
    for (int t = 1; t <= 11; t++) energy_step(&en, 100, t * S, 30 * S);
    assert_true(fabs(en.joules - 1000) < 1e-6);
    energy_step(&en, 300, 12 * S, 30 * S); /* the mean of 100 and 300 W for a second */
    assert_true(fabs(en.joules - 1200) < 1e-6);
}

static void a_long_gap_is_not_guessed(void **state) {
    struct energy en = {0};
    energy_step(&en, 100, 1 * S, 30 * S);
    energy_step(&en, 100, 61 * S, 30 * S);
    assert_true(en.joules == 0);
}

static void corrected_and_never_backwards(void **state) {
    struct energy en = {0};
    assert_true(energy_correct(&en, 5000) == 5000);
    energy_step(&en, 100, 1 * S, 30 * S);
    assert_true(energy_step(&en, 100, 11 * S, 30 * S) == 6000);
    assert_true(energy_correct(&en, 5900) == 6000); /* we were ahead: stand still */
    assert_true(energy_step(&en, 100, 12 * S, 30 * S) == 6000);
    assert_true(energy_step(&en, 100, 13 * S, 30 * S) == 6100);
    assert_true(energy_correct(&en, 6500) == 6500); /* we were behind: catch up */
}

static void a_driver_loaded_anew_starts_low(void **state) {
    struct energy en = {0};
    energy_correct(&en, 5000);
    assert_true(energy_correct(&en, 10) == 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(integrates), cmocka_unit_test(a_long_gap_is_not_guessed),
                                       cmocka_unit_test(corrected_and_never_backwards),
                                       cmocka_unit_test(a_driver_loaded_anew_starts_low)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
