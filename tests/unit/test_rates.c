/* How often calls are made: rows for what is fast, and the budget as an invariant over random costs. */
#include "model/rates.h"

#include <stdlib.h>

#include "base/auto.h"
#include "tests/test.h"

#define US 1000ll
#define MS 1000000ll
#define S 1000000000ll

static void fast_or_slow(void **state) {
    static const struct {
        const char *name;
        int64_t cpu, wall, least, base;
        bool is_fast;
    } rows[] = {
        {"a cheap one",                           7 * US,   7 * US,   0,     S,        true },
        {"a cheap one at 100 Hz",                 7 * US,   7 * US,   0,     10 * MS,  true },
        {"wanted every time, affordable at 1 Hz", 180 * US, 180 * US, 0,     S,        true },
        {"the same is not at 10 Hz",              400 * US, 400 * US, 0,     100 * MS, false},
        {"not wanted so often",                   7 * US,   7 * US,   5 * S, S,        false},
        {"dear",                                  4 * MS,   4 * MS,   0,     S,        false},
        {"costs little, blocks long",             10 * US,  20 * MS,  0,     S,        false},
        {"blocks a twentieth of the round",       10 * US,  600 * US, 0,     10 * MS,  false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rate_call c = {
            .cpu_ns = rows[i].cpu, .wall_ns = rows[i].wall, .weight = 1, .least_ns = rows[i].least, .is_wanted = true};
        rates_plan(&c, 1, rows[i].base, 1e-4);
        if (c.is_fast != rows[i].is_fast) fail_msg("%s: is_fast is %d", rows[i].name, c.is_fast);
        assert_true(c.period_ns >= rows[i].base);
        if (!c.is_fast) assert_true(c.period_ns >= rows[i].least);
    }
}

static void unwanted_is_not_made(void **state) {
    struct rate_call c = {.cpu_ns = 5 * US, .wall_ns = 5 * US, .weight = 1};
    rates_plan(&c, 1, S, 1e-4);
    assert_false(c.is_fast);
    assert_int_equal(c.period_ns, 0);
}

static void budget_holds(void **state) {
    srand(7);
    for (int round = 0; round < 2000; round++) {
        struct rate_call c[12] = {0};
        double budget = 1e-5 * (1 + rand() % 1000), spent = 0;
        for (int i = 0; i < 12; i++) {
            int64_t cpu = (1 + rand() % 8000) * US;
            c[i] = (struct rate_call){.cpu_ns = cpu,
                                      .wall_ns = cpu * (1 + rand() % 3),
                                      .weight = 0.1 * (1 + rand() % 20),
                                      .is_wanted = rand() % 4 > 0};
        }
        rates_plan(c, 12, S, budget);
        for (int i = 0; i < 12; i++) {
            bool is_capped = c[i].period_ns == RATE_PERIOD_MAX_NS; /* nothing is read more rarely than that */
            if (c[i].is_wanted && !c[i].is_fast && !is_capped) spent += (double)c[i].cpu_ns / (double)c[i].period_ns;
        }
        if (spent > budget * 1.0001) fail_msg("round %d: %g of %g", round, spent, budget);
    }
}

static void weight_buys_freshness(void **state) {
    struct rate_call c[2] = {
        {.cpu_ns = 4 * MS, .wall_ns = 4 * MS, .weight = 4, .is_wanted = true},
        {.cpu_ns = 4 * MS, .wall_ns = 4 * MS, .weight = 1, .is_wanted = true}
    };
    rates_plan(c, 2, S, 1e-3);
    assert_true(llabs(c[0].period_ns * 2 - c[1].period_ns) < MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fast_or_slow), cmocka_unit_test(unwanted_is_not_made),
                                       cmocka_unit_test(budget_holds), cmocka_unit_test(weight_buys_freshness)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
