#include "server/auth_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "tests/test.h"

static struct limit l;

static int fresh(void **state) {
    l = (struct limit){.seed = 7};
    return 0;
}

static const struct limit_policy p = {.free = 3, .first_ms = 1000, .most_ms = 8000, .forget_ms = 60000};

static void pauses_grow(void **state) {
    uint64_t key = limit_key_address(&l, "192.0.2.1");
    static const struct {
        int64_t at_ms, wait_ms;
    } rows[] = {
        {0,             0   },
        {0,             0   },
        {0,             0   }, /* three are free; the third is followed by a pause */
        {0,             1000},
        {999,           1   },
        {1000,          0   }, /* asking early changes nothing */
        {1000,          2000},
        {3000,          0   },
        {3000,          4000},
        {7000,          0   },
        {7000,          8000},
        {15000,         0   },
        {15000,         8000},
        {23000,         0   }, /* no longer than the longest */
        {31000 + 60001, 0   },
        {31000 + 60001, 0   },
        {31000 + 60001, 0   },
        {31000 + 60001, 1000}, /* forgotten */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t wait_ms = limit_try(&l, &p, key, rows[i].at_ms);
        if (wait_ms != rows[i].wait_ms)
            fail_msg("row %zu: waits %lld ms, not %lld", i, (long long)wait_ms, (long long)rows[i].wait_ms);
    }
}

static void success_forgets(void **state) {
    uint64_t key = limit_key_account(&l, "admin");
    for (int i = 0; i < 3; i++) assert_int_equal(limit_try(&l, &p, key, 0), 0);
    assert_int_equal(limit_try(&l, &p, key, 0), 1000);
    limit_good(&l, key);
    assert_int_equal(limit_try(&l, &p, key, 0), 0);
}

static void keys(void **state) {
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"192.0.2.1",        "192.0.2.1",        true },
        {"192.0.2.1",        "192.0.2.2",        false},
        {"2001:db8::1",      "2001:db8::ffff",   true }, /* one network */
        {"2001:db8::1",      "2001:db8:0:1::1",  false},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"unix",             "unix",             true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((limit_key_address(&l, rows[i].a) == limit_key_address(&l, rows[i].b)) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    assert_true(limit_key_address(&l, "a") != limit_key_account(&l, "a"));
    const struct limit other = {.seed = 8};
    assert_true(limit_key_address(&l, "a") != limit_key_address(&other, "a"));
}

/* Very many addresses with one try each do not set free the one that has been trying all along. */
static void a_flood_does_not_free_the_worst(void **state) {
    uint64_t key = limit_key_address(&l, "192.0.2.1");
    int64_t now_ms = 0, wait_ms;
    for (int i = 0; i < 8; i++) {
        while ((wait_ms = limit_try(&l, &p, key, now_ms)) > 0) now_ms += wait_ms;
    }
    assert_int_equal(limit_try(&l, &p, key, now_ms), 8000);
    for (int i = 0; i < 100000; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.%d.%d.%d", i >> 16, (i >> 8) & 255, i & 255);
        assert_int_equal(limit_try(&l, &p, limit_key_address(&l, address), now_ms), 0);
    }
    assert_int_equal(limit_try(&l, &p, key, now_ms), 8000);
}

static void a_clock_that_steps_back_does_not_lock_for_ever(void **state) {
    uint64_t key = limit_key_account(&l, "x");
    for (int i = 0; i < 4; i++) (void)limit_try(&l, &p, key, 1000000);
    assert_true(limit_try(&l, &p, key, 0) <= 8000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pauses_grow, fresh),
        cmocka_unit_test_setup(success_forgets, fresh),
        cmocka_unit_test_setup(keys, fresh),
        cmocka_unit_test_setup(a_flood_does_not_free_the_worst, fresh),
        cmocka_unit_test_setup(a_clock_that_steps_back_does_not_lock_for_ever, fresh),
    };
    return cmocka_run_group_tests_name("auth_limit", tests, NULL, NULL);
}
