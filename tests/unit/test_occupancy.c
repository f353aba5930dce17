/* Free means measured free. */
#include "tests/test.h"

#include <stdbool.h>

#include "base/auto.h"
#include "model/occupancy.h"

#define MIB (1ull << 20)
#define SECOND 1000000000LL

static const struct occupancy_facts empty = {.has_processes = true,
                                             .has_memory = true,
                                             .total_bytes = 80ull << 30,
                                             .has_utilisation = true,
                                             .now_ns = 100 * SECOND};

static void verdicts(void **state) {
#define ROWS(X)                                                                                                        \
    X(FREE, )                                                                                                          \
    X(FREE, f.has_utilisation = false; f.utilisation = 1)                                                              \
    X(FREE, f.used_bytes = 64 * MIB)                                                                                   \
    X(FREE, f.used_bytes = 80 * MIB) /* a thousandth of a large card */                                                \
    X(MEMORY, f.used_bytes = 90 * MIB)                                                                                 \
    X(MEMORY, f.total_bytes = 8ull << 30; f.used_bytes = 65 * MIB)                                                     \
    X(FREE, f.used_bytes = 500 * MIB; f.idle_bytes = 480 * MIB)                                                        \
    X(FREE, f.used_bytes = 400 * MIB; f.idle_bytes = 480 * MIB)                                                        \
    X(MEMORY, f.used_bytes = 700 * MIB; f.idle_bytes = 480 * MIB)                                                      \
    X(FOREIGN, f.foreign = 1)                                                                                          \
    X(FOREIGN, f.foreign = 1; f.is_granted = true; f.ours = 2)                                                         \
    X(FREE, f.is_granted = true; f.ours = 1; f.used_bytes = 70ull << 30; f.utilisation = 1) /* held by us */           \
    X(BUSY, f.utilisation = 0.5)                                                                                       \
    X(FREE, f.utilisation = 0.1)                                                                                       \
    X(FREE, f.utilisation = 1; f.end_ns = f.now_ns - SECOND + 1) /* the figure of who just left */                     \
    X(BUSY, f.utilisation = 1; f.end_ns = f.now_ns - SECOND)                                                           \
    X(STRAY, f.stray = 1)                                                                                              \
    X(STRAY, f.stray = 1; f.ours = 1; f.is_granted = true) /* to another */                                            \
    X(FOREIGN, f.stray = 1; f.foreign = 1)                                                                             \
    X(HOT, f.is_hot = true)                                                                                            \
    X(FOREIGN, f.is_hot = true; f.foreign = 1)                                                                         \
    X(LOST, f.is_lost = true; f.foreign = 1)                                                                           \
    X(CORDONED, f.is_cordoned = true; f.foreign = 1)                                                                   \
    X(UNHEALTHY, f.is_unhealthy = true)                                                                                \
    X(UNKNOWN, f.has_processes = false)                                                                                \
    X(UNKNOWN, f.has_memory = false)
#define TRY(want, change)                                                                                              \
    {                                                                                                                  \
        struct occupancy_facts f = empty;                                                                              \
        change;                                                                                                        \
        enum occupancy got = occupancy_judge(&f, 64 * MIB);                                                            \
        if (got != OCCUPANCY_##want) fail_msg("%s: %s", #change, occupancy_name(got));                                 \
    }
    ROWS(TRY)
    struct occupancy_facts nothing = {0};
    assert_int_equal(occupancy_judge(&nothing, 64 * MIB), OCCUPANCY_UNKNOWN); /* absent is not free */
}

static void again(void **state) {
    struct occupancy_facts f = empty;
    assert_int_equal(occupancy_again_ns(&f), 0);
    f.utilisation = 1;
    f.end_ns = f.now_ns - 1;
    assert_int_equal(occupancy_again_ns(&f), f.end_ns + SECOND);
    f.now_ns = f.end_ns + SECOND;
    assert_int_equal(occupancy_again_ns(&f), 0);
}

static void words(void **state) {
    for (int i = 0; i < OCCUPANCY_COUNT; i++) {
        assert_true(occupancy_name((enum occupancy)i)[0]);
        assert_true(occupancy_text((enum occupancy)i)[0]);
    }
    assert_string_equal(occupancy_name(OCCUPANCY_COUNT), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts), cmocka_unit_test(again), cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
