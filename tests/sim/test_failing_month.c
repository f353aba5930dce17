/* Weeks of simulated machines, healthy ones and ones in which a part fails: what is found, how soon, and what is said of
 * cards that are well. `script/bench failing` does the same over many card-months. */
#include <math.h>

#include "base/auto.h"
#include "bench/failing_life.h"
#include "tests/test.h"

#define DAY_S 86400.0

static int said_wrongly(const struct life *l) {
    int n = 0;
    for (int k = 0; k < FAILING_KINDS; k++) n += l->wrong[k];
    return n;
}

static void weeks(void **state) {
    static const struct {
        const char *name;
        struct life_plan plan; /* expect FAILING_KINDS: nothing */
        double within_s;
    } rows[] = {
        {"healthy, no fans",     {{"h200", 4, 0.6, 3, 0.002, MONTH_HEALTHY, 0, 11}, 14, true, 84, FAILING_KINDS},    0    },
        {"healthy, fans",        {{"rtx4090", 2, 0.4, 3, 0.004, MONTH_HEALTHY, 0, 12}, 10, true, 84, FAILING_KINDS}, 0    },
        {"healthy, alone",       {{"rtx4090", 1, 0.3, 3, 0, MONTH_HEALTHY, 0, 34}, 14, true, 84, FAILING_KINDS},     0    },
        {"healthy, a pair",      {{"rtx4090", 2, 0.4, 3, 0.004, MONTH_HEALTHY, 0, 16}, 14, true, 84, FAILING_KINDS}, 0    },
        {"clogged cooler",       {{"h200", 4, 0.6, 3, 0.002, MONTH_CLOG, 6, 13}, 13, true, 84, FAILING_COOLING},     DAY_S},
        {"clogged, alone",       {{"rtx4090", 1, 0.4, 3, 0, MONTH_CLOG, 8, 42}, 15, true, 84, FAILING_COOLING},      DAY_S},
        {"cooler sits badly",
         {{"h200", 4, 0.6, 3, 0.002, MONTH_MOUNTED, 0, 21}, 10, true, 84, FAILING_UNLIKE},
         7 * DAY_S                                                                                                        },
        {"stopped fan",          {{"rtx4090", 2, 0.9, 3, 0.004, MONTH_FAN_STOP, 1, 14}, 2, true, 84, FAILING_FAN},   3600 },
        {"the same, no rpm",     {{"rtx4090", 1, 0.9, 3, 0, MONTH_FAN_STOP, 7, 44}, 8, false, 84, FAILING_COOLING},  3600 },
        {"hardware slowdown",    {{"h200", 2, 0.9, 3, 0.002, MONTH_SLOWED, 1, 17}, 2, true, 84, FAILING_SLOWDOWN},   3600 },
        {"power brake",          {{"h200", 2, 0.9, 3, 0.002, MONTH_BRAKE, 1, 15}, 2, true, 84, FAILING_BRAKE},       3600 },
        {"a limit is not taken", {{"h200", 2, 0.6, 3, 0.002, MONTH_DEAF, 1, 18}, 2, true, 84, FAILING_LIMIT},        60   },
        {"draws too much",       {{"h200", 2, 0.9, 3, 0.002, MONTH_GREEDY, 1, 19}, 3, true, 84, FAILING_DRAW},       1800 },
        {"hours above target",
         {{"h200", 2, 0.6, 3, 0.002, MONTH_HEALTHY, 0, 20}, 8, true, 50, FAILING_OVERUSE},
         17 * 3600                                                                                                        },
        {"the room is warmer",   {{"h200", 4, 0.6, 3, 0.002, MONTH_ROOM, 6, 16}, 8, true, 84, FAILING_ROOM},         DAY_S},
    };
    uint32_t seen = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum failing_kind want = rows[i].plan.expect;
        struct life l;
        life_live(&rows[i].plan, &l);
        if (said_wrongly(&l)) fail_msg("%s: %d false alarms, day %g", rows[i].name, said_wrongly(&l), l.wrong_day);
        if (want == FAILING_KINDS) continue;
        seen |= (uint32_t)BIT(want);
        if (!(l.found_s[want] <= rows[i].within_s))
            fail_msg("%s: found after %g minutes", rows[i].name, l.found_s[want] / 60);
        if (want == FAILING_COOLING && (l.raised[want] != 1 || l.cleared[want] != 0))
            fail_msg("%s: raised %d times", rows[i].name, l.raised[want]);
    }
    assert_int_equal(seen, BIT(FAILING_KINDS) - 1); /* no kind is left untried */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(weeks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
