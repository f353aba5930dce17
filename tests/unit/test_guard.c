/* The guard's step: what it does with one reading after the other. How well it controls is tests/sim's and bench/guard's. */
#include "model/guard.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

#define S 1000000000ll
#define ABSENT NAN

static struct guard_policy policy(void) {
    struct guard_policy p = {.control = GUARD_BY_POWER, .floor = 200, .baseline = 700, .grace_ns = 3 * S};
    p.target[GUARD_CORE] = 84;
    p.target[GUARD_MEMORY] = 92;
    p.target[GUARD_MARGIN] = 3;
    p.uses[GUARD_CORE] = true;
    return p;
}

struct reading {
    double core, memory, margin, watts;
};

static struct sample sample_of(struct reading r) {
    struct sample s = {0};
    sample_put(&s, METRIC_TEMP_CORE, r.core);
    sample_put(&s, METRIC_TEMP_MEMORY, r.memory);
    sample_put(&s, METRIC_TEMP_MARGIN, r.margin);
    sample_put(&s, METRIC_POWER_INSTANT, r.watts);
    sample_put(&s, METRIC_UTIL_GPU, 1);
    return s;
}

/* The same reading at 10 Hz for a while; watts above the limit in force are not drawn. */
static struct guard_action feed(struct guard_state *g, const struct guard_policy *p, struct reading r, double seconds,
                                int64_t *now_ns) {
    struct guard_action a = {.limit = p->baseline};
    for (int n = 0; n < (int)lround(seconds * 10); n++) {
        struct reading now = r;
        if (g->is_begun) now.watts = fmin(r.watts, g->floor + g->u * (g->baseline - g->floor));
        struct sample s = sample_of(now);
        *now_ns += S / 10;
        a = guard_step(g, p, &s, *now_ns);
        assert_true(a.limit >= p->floor && a.limit <= p->baseline);
    }
    return a;
}

static void what_one_state_leads_to(void **state) {
    static const struct {
        const char *name;
        double begin;
        struct reading reading;
        double seconds, least, most;
        enum guard_reason reason;
    } rows[] = {
        {"cool holds the baseline",     700, {60, ABSENT, ABSENT, 690}, 120, 700, 700, GUARD_CALM      },
        {"hot lowers",                  700, {90, ABSENT, ABSENT, 690}, 1,   200, 560, GUARD_HOT_CORE  },
        {"very hot goes to the floor",  700, {99, ABSENT, ABSENT, 690}, 20,  200, 200, GUARD_HOT_CORE  },
        {"the floor is the floor",      200, {99, ABSENT, ABSENT, 200}, 20,  200, 200, GUARD_HOT_CORE  },
        {"the band holds",              450, {83, ABSENT, ABSENT, 450}, 9,   410, 450, GUARD_HOT_CORE  },
        {"cooled down is given back",   300, {50, ABSENT, ABSENT, 300}, 200, 700, 700, GUARD_CALM      },
        {"idle and cool is given back", 300, {40, ABSENT, ABSENT, 80},  400, 700, 700, GUARD_CALM      },
        {"the memory alone lowers",     700, {60, 99, ABSENT, 690},     2,   200, 650, GUARD_HOT_MEMORY},
        {"a small margin alone lowers", 700, {60, 60, -6, 690},         2,   200, 650, GUARD_LOW_MARGIN},
        {"a large margin does not",     700, {60, 60, 40, 690},         60,  700, 700, GUARD_CALM      },
        {"the worst of them counts",    700, {86, 101, 1, 690},         2,   200, 600, GUARD_HOT_MEMORY},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct guard_policy p = policy();
        p.uses[GUARD_MEMORY] = !isnan(rows[i].reading.memory);
        p.uses[GUARD_MARGIN] = !isnan(rows[i].reading.margin);
        struct guard_state g = {0};
        int64_t now = 5 * S;
        guard_begin(&g, &p, rows[i].begin, now);
        struct guard_action a = feed(&g, &p, rows[i].reading, rows[i].seconds, &now);
        if (a.limit < rows[i].least || a.limit > rows[i].most || a.reason != rows[i].reason)
            fail_msg("%s: %g, because %s", rows[i].name, a.limit, guard_reason_words(a.reason));
    }
}

static void cards_that_cannot_be_moved_are_left(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    p.control = GUARD_BY_NONE;
    struct guard_action a = feed(&g, &p, (struct reading){99, ABSENT, ABSENT, 690}, 5, &now);
    assert_int_equal(a.verb, GUARD_HOLD);
    p.control = GUARD_BY_POWER;
    p.floor = p.baseline = 50; /* no range */
    a = feed(&g, &p, (struct reading){99, ABSENT, ABSENT, 50}, 5, &now);
    assert_int_equal(a.verb, GUARD_HOLD);
    assert_true(a.limit == 50);
}

static void lowers_fast_and_raises_slowly(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    feed(&g, &p, (struct reading){60, ABSENT, ABSENT, 690}, 30, &now);
    double lowered = feed(&g, &p, (struct reading){92, ABSENT, ABSENT, 690}, 2, &now).limit;
    assert_true(lowered < 600);
    assert_true(feed(&g, &p, (struct reading){55, ABSENT, ABSENT, lowered}, 1, &now).limit <= lowered);
    /* so far below its target it comes back within seconds, but not all at once */
    assert_true(feed(&g, &p, (struct reading){55, ABSENT, ABSENT, lowered}, 4, &now).limit <= lowered + 180);
    feed(&g, &p, (struct reading){55, ABSENT, ABSENT, 700}, 300, &now);
    assert_true(g.u == 1);
}

static void a_lost_sensor_counts_as_hot_after_its_grace(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    const struct reading cool = {50, ABSENT, ABSENT, 500}, blind = {ABSENT, ABSENT, ABSENT, 500};
    feed(&g, &p, cool, 30, &now);
    assert_true(feed(&g, &p, blind, 2.9, &now).limit == 700);
    struct guard_action a = feed(&g, &p, blind, 0.3, &now);
    assert_true(a.limit == 200);
    assert_int_equal(a.reason, GUARD_BLIND);
    assert_true(feed(&g, &p, blind, 600, &now).limit == 200);
    assert_true(feed(&g, &p, cool, 300, &now).limit == 700);

    p.uses[GUARD_MEMORY] = true; /* one of two is enough */
    assert_true(feed(&g, &p, cool, 4, &now).limit == 200);
    struct guard_state fresh = {0}; /* never read at all */
    now = S;
    assert_true(feed(&fresh, &p, blind, 2, &now).limit == 700);
    assert_true(feed(&fresh, &p, blind, 2, &now).limit == 200);
}

static void numbers_that_are_none_do_no_harm(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    for (int n = 0; n < 3000; n++) {
        struct sample s = sample_of((struct reading){n % 7 ? 60 : NAN, ABSENT, ABSENT, n % 3 ? 400 : NAN});
        if (n % 11 == 0) s.value[METRIC_POWER_INSTANT] = n % 2 ? INFINITY : -1e300;
        now += S / 10;
        struct guard_action a = guard_step(&g, &p, &s, now);
        assert_true(a.limit >= 200 && a.limit <= 700);
    }
    assert_true(isfinite(g.u) && isfinite(guard_headroom_c(&g, &p)));
    p.target[GUARD_CORE] = NAN; /* refused at load; but if it came through, nothing breaks */
    feed(&g, &p, (struct reading){60, ABSENT, ABSENT, 400}, 10, &now);
    p.target[GUARD_CORE] = 84;
    assert_true(feed(&g, &p, (struct reading){60, ABSENT, ABSENT, 400}, 300, &now).limit == 700);
}

static void time_may_jump(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = 100 * S;
    const struct reading cool = {60, ABSENT, ABSENT, 500}, hot = {95, ABSENT, ABSENT, 690};
    feed(&g, &p, cool, 30, &now);
    now += 3600 * S; /* suspended */
    assert_true(feed(&g, &p, cool, 5, &now).limit == 700);
    now -= 1800 * S; /* cannot be; does no harm */
    assert_true(feed(&g, &p, cool, 5, &now).limit == 700);
    assert_true(feed(&g, &p, hot, 5, &now).limit < 500);
    assert_true(feed(&g, &p, cool, 300, &now).limit == 700);
    struct sample s = sample_of(cool);
    for (int n = 0; n < 100; n++) assert_true(guard_step(&g, &p, &s, now).limit == 700); /* the same moment again */
}

static void the_policy_may_change(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    const struct reading cool = {50, ABSENT, ABSENT, 600}, hot = {95, ABSENT, ABSENT, 690};
    feed(&g, &p, cool, 30, &now);
    p.baseline = 500; /* lower than what is in force */
    struct sample s = sample_of(cool);
    now += S / 10;
    struct guard_action a = guard_step(&g, &p, &s, now);
    assert_int_equal(a.verb, GUARD_LOWER);
    assert_true(a.limit == 500);
    p.baseline = 700;
    now += S / 10;
    a = guard_step(&g, &p, &s, now);
    assert_int_equal(a.verb, GUARD_RAISE);
    assert_true(a.limit == 700);

    double held = feed(&g, &p, hot, 1, &now).limit;
    p.baseline = 600; /* a limit in force stays what it is */
    now += S / 10;
    double after = feed(&g, &p, (struct reading){83, ABSENT, ABSENT, held}, 0.1, &now).limit;
    assert_true(after <= held + 1 && after <= 600);
    p.floor = 400;
    assert_true(feed(&g, &p, hot, 30, &now).limit == 400);
    p.target[GUARD_CORE] = 100; /* and a higher target gives it back */
    assert_true(feed(&g, &p, cool, 300, &now).limit == 600);
    p.target[GUARD_CORE] = 45;
    assert_true(feed(&g, &p, cool, 30, &now).limit < 600);
    assert_true(g.u >= 0 && g.u <= 1);
}

/* An idle card that was throttled has its baseline back soon, whatever it is read by. */
static void an_idle_card_is_given_back(void **state) {
    static const double begins[] = {200, 450, 690};
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        struct guard_policy p = policy();
        struct guard_state g = {0};
        int64_t now = 5 * S;
        guard_begin(&g, &p, begins[i], now);
        double limit = begins[i];
        for (int n = 0; n < 30; n++) { /* at 1 Hz, as cool cards are read */
            struct sample s = sample_of((struct reading){38, ABSENT, ABSENT, 80});
            now += S;
            limit = guard_step(&g, &p, &s, now).limit;
        }
        if (limit != 700) fail_msg("from %g: at %g after 30 s", begins[i], limit);
    }
}

static void headroom_is_that_of_the_worst(void **state) {
    struct guard_policy p = policy();
    struct guard_state g = {0};
    int64_t now = S;
    p.uses[GUARD_MEMORY] = p.uses[GUARD_MARGIN] = true;
    assert_true(isnan(guard_headroom_c(&g, &p)));
    feed(&g, &p, (struct reading){60, 70, 40, 300}, 1, &now);
    assert_true(guard_headroom_c(&g, &p) == 22);
    feed(&g, &p, (struct reading){60, 70, 10, 300}, 1, &now);
    assert_true(guard_headroom_c(&g, &p) == 7);
}

static void begins_where_the_card_is(void **state) {
    static const struct {
        double limit, want;
    } rows[] = {
        {700, 700},
        {450, 450},
        {100, 200},
        {900, 700},
        {NAN, 200},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct guard_policy p = policy();
        struct guard_state g = {0};
        guard_begin(&g, &p, rows[i].limit, S);
        struct sample s = sample_of((struct reading){40, ABSENT, ABSENT, 150});
        assert_true(fabs(guard_step(&g, &p, &s, S).limit - rows[i].want) < 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_one_state_leads_to),
                                       cmocka_unit_test(cards_that_cannot_be_moved_are_left),
                                       cmocka_unit_test(lowers_fast_and_raises_slowly),
                                       cmocka_unit_test(a_lost_sensor_counts_as_hot_after_its_grace),
                                       cmocka_unit_test(numbers_that_are_none_do_no_harm),
                                       cmocka_unit_test(time_may_jump),
                                       cmocka_unit_test(the_policy_may_change),
                                       cmocka_unit_test(an_idle_card_is_given_back),
                                       cmocka_unit_test(headroom_is_that_of_the_worst),
                                       cmocka_unit_test(begins_where_the_card_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
