/* Verdicts on failing parts: rows of what is read for how long, and what is said of it. How well cooling is judged over
 * weeks is in tests/sim/test_failing_month.c. */
#include "model/failing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

#define S 1000000000ll

struct bed { /* one card and its readings */
    struct failing f;
    struct sample s;
    struct failing_input in;
    int64_t now_ns;
    int raised[FAILING_KINDS], cleared[FAILING_KINDS];
};

static struct bed bed;

static void bed_new(void) {
    memset(&bed, 0, sizeof bed);
    bed.in = (struct failing_input){.s = &bed.s, .asked_w = NAN, .hot_c = 84};
    bed.now_ns = S;
}

static void bed_run(double seconds) {
    for (int64_t end = bed.now_ns + (int64_t)(seconds * S); bed.now_ns < end; bed.now_ns += S) {
        uint32_t before = bed.f.card[0].up;
        failing_step(&bed.f, &failing_defaults, &bed.in, 1, bed.now_ns);
        for (int k = 0; k < FAILING_KINDS; k++) {
            bed.raised[k] += (bed.f.card[0].up & ~before) >> k & 1;
            bed.cleared[k] += (before & ~bed.f.card[0].up) >> k & 1;
        }
    }
}

static bool is_up(enum failing_kind k) { return bed.f.card[0].up & BIT(k); }

static void every_row_has_its_words(void **state) {
    struct event e;
    for (int k = 0; k < FAILING_KINDS; k++) {
        const struct failing_row *r = &failing_rows[k];
        assert_true(r->name && strlen(r->name) < sizeof e.kind && strlen(r->raised) < sizeof e.text - 24);
        assert_true(r->cleared && r->cleared[0] && r->severity > EVENT_INFO);
    }
}

static void fans(void **state) {
    static const struct {
        const char *name;
        double asked, rpm, temp;
        bool want;
    } rows[] = {
        {"turns as told",                0.6, 1900, 70, false},
        {"stands",                       0.6, 0,    70, true },
        {"far too slow",                 0.6, 500,  70, true },
        {"somewhat slow",                0.6, 1300, 70, false},
        {"stands, and nobody asks",      0,   0,    44, false},
        {"stands, and the card is cool", 0.3, 0,    38, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_new();
        sample_put(&bed.s, METRIC_FAN_SPEED, 0.5);
        sample_put(&bed.s, METRIC_FAN_RPM, 1600);
        sample_put(&bed.s, METRIC_TEMP_CORE, 60);
        bed_run(600);
        sample_put(&bed.s, METRIC_FAN_SPEED, rows[i].asked);
        sample_put(&bed.s, METRIC_FAN_RPM, rows[i].rpm);
        sample_put(&bed.s, METRIC_TEMP_CORE, rows[i].temp);
        bed_run(50);
        if (is_up(FAILING_FAN)) fail_msg("%s: said too soon", rows[i].name);
        bed_run(60);
        if (is_up(FAILING_FAN) != rows[i].want) fail_msg("%s: %d", rows[i].name, is_up(FAILING_FAN));
        sample_put(&bed.s, METRIC_FAN_SPEED, 0.5);
        sample_put(&bed.s, METRIC_FAN_RPM, 1600);
        bed_run(600);
        if (is_up(FAILING_FAN) || bed.raised[FAILING_FAN] != rows[i].want || bed.cleared[FAILING_FAN] != rows[i].want)
            fail_msg("%s: raised %d times, cleared %d times", rows[i].name, bed.raised[FAILING_FAN],
                     bed.cleared[FAILING_FAN]);
    }
}

/* Reasons as they come: so many seconds on, so many off. */
static void slowdowns(void **state) {
    static const struct {
        const char *name;
        int id;
        int on_s, off_s;
        enum failing_kind kind;
        bool want;
    } rows[] = {
        {"flashes when the P-state changes", METRIC_REASON_HW_SLOWDOWN, 1,  10,   FAILING_SLOWDOWN, false},
        {"seconds of every minute",          METRIC_REASON_HW_SLOWDOWN, 5,  55,   FAILING_SLOWDOWN, true },
        {"heat, without a pause",            METRIC_REASON_HW_THERMAL,  60, 0,    FAILING_SLOWDOWN, true },
        {"a few in an hour",                 METRIC_REASON_HW_SLOWDOWN, 5,  600,  FAILING_SLOWDOWN, false},
        {"brake, every minute",              METRIC_REASON_POWER_BRAKE, 5,  55,   FAILING_BRAKE,    true },
        {"brake, now and then",              METRIC_REASON_POWER_BRAKE, 20, 1800, FAILING_BRAKE,    false},
        {"power cap is normal",              METRIC_REASON_POWER_CAP,   60, 0,    FAILING_SLOWDOWN, false},
        {"so is the driver's own care",      METRIC_REASON_SW_THERMAL,  60, 0,    FAILING_SLOWDOWN, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_new();
        for (int k = 0; k < 7200; k += rows[i].on_s + rows[i].off_s) {
            sample_put(&bed.s, rows[i].id, 1);
            bed_run(rows[i].on_s);
            sample_put(&bed.s, rows[i].id, 0);
            bed_run(rows[i].off_s);
        }
        if (is_up(rows[i].kind) != rows[i].want || bed.raised[rows[i].kind] != rows[i].want)
            fail_msg("%s: raised %d times", rows[i].name, bed.raised[rows[i].kind]);
        bed_run(1800);
        if (is_up(rows[i].kind)) fail_msg("%s: stays", rows[i].name);
    }
}

/* A brake sets the slowdown bit as well; it is told apart. */
static void a_brake_is_no_heat(void **state) {
    bed_new();
    sample_put(&bed.s, METRIC_REASON_HW_SLOWDOWN, 1);
    sample_put(&bed.s, METRIC_REASON_POWER_BRAKE, 1);
    bed_run(1200);
    assert_true(is_up(FAILING_BRAKE) && !is_up(FAILING_SLOWDOWN));
}

static void limits(void **state) {
    static const struct {
        const char *name;
        double asked, enforced, draw;
        uint32_t want;
    } rows[] = {
        {"as asked",              300, 300,   290, 0                 },
        {"rounded",               300, 301.5, 290, 0                 },
        {"not taken",             300, 700,   290, BIT(FAILING_LIMIT)},
        {"someone else is lower", 300, 250,   240, BIT(FAILING_LIMIT)},
        {"nobody asked",          NAN, 700,   690, 0                 },
        {"taken and ignored",     300, 300,   400, BIT(FAILING_DRAW) },
        {"a little above",        300, 300,   315, 0                 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_new();
        bed.in.asked_w = rows[i].asked;
        sample_put(&bed.s, METRIC_POWER_LIMIT_ENFORCED, rows[i].enforced);
        sample_put(&bed.s, METRIC_POWER, rows[i].draw);
        sample_put(&bed.s, METRIC_TEMP_CORE, 60);
        bed_run(8);
        if (bed.f.card[0].up) fail_msg("%s: said too soon", rows[i].name);
        bed_run(300);
        if (bed.f.card[0].up != rows[i].want) fail_msg("%s: %x", rows[i].name, bed.f.card[0].up);
    }
}

static void hours_above_target(void **state) {
    static const struct {
        const char *name;
        double hours_a_day;
        bool want;
    } rows[] = {
        {"never",         0,  false},
        {"an hour a day", 1,  false},
        {"four hours",    4,  true },
        {"most of it",    20, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bed_new();
        for (int day = 0; day < 7; day++)
            for (int hour = 0; hour < 24; hour++) {
                sample_put(&bed.s, METRIC_TEMP_CORE, hour < rows[i].hours_a_day ? 87 : 70);
                bed_run(3600);
            }
        if (is_up(FAILING_OVERUSE) != rows[i].want) fail_msg("%s", rows[i].name);
        sample_put(&bed.s, METRIC_TEMP_CORE, 70);
        bed_run(7 * 86400);
        if (is_up(FAILING_OVERUSE) || bed.raised[FAILING_OVERUSE] != rows[i].want) fail_msg("%s: stays", rows[i].name);
    }
}

static void nothing_is_said_of_nothing(void **state) {
    bed_new();
    bed_run(3600); /* a sample in which nothing came */
    assert_true(bed.f.card[0].up == 0);
    bed.in.s = NULL;
    bed_run(3600);
    assert_true(bed.f.card[0].up == 0 && bed.f.room_up == 0);
    bed.now_ns += 86400 * S; /* a machine that slept */
    bed_run(3600);
    assert_true(bed.f.card[0].up == 0);
}

/* ---- warmth ---- */

static double true_c(struct warmth_load l) { return 30 + 32 * l.power - 7 * l.memory; }

static void warmth_is_learnt(void **state) {
    struct warmth w = {0};
    assert_true(isnan(warmth_guess(&w, (struct warmth_load){0.5, 0.2}).warm_c));
    for (int k = 0; k < 20000; k++) {
        struct warmth_load l = {(double)(k * 37 % 100) / 100, (double)(k * 61 % 83) / 83};
        warmth_learn(&w, l, round(true_c(l)), 1);
    }
    for (int k = 0; k < 100; k++) {
        struct warmth_load l = {(double)(k * 13 % 100) / 100, (double)(k * 29 % 97) / 97};
        struct warmth_guess g = warmth_guess(&w, l);
        if (fabs(g.warm_c - true_c(l)) > 1)
            fail_msg("%.2f %.2f: %.2f, not %.2f", l.power, l.memory, g.warm_c, true_c(l));
        assert_true(fabs(g.slope_c - 32) < 2 && g.minutes >= WARMTH_NEAR);
    }
}

static void what_was_not_seen_is_drawn_from_afar(void **state) {
    struct warmth w = {0};
    for (int k = 0; k < 3000; k++) {
        struct warmth_load l = {0.1 + (double)(k % 30) / 100, 0.2};
        warmth_learn(&w, l, true_c(l), 1);
    }
    struct warmth_load full = {1, 0.2};
    struct warmth_guess g = warmth_guess(&w, full);
    assert_true(g.minutes < WARMTH_NEAR && fabs(g.warm_c - true_c(full)) < 4);
}

/* What gathers slowly is not learnt as normal, what got better is. */
static void warmth_forgets_upwards_slowly(void **state) {
    struct warmth w = {0};
    struct warmth_load l = {0.8, 0.2};
    for (int k = 0; k < 20000; k++) warmth_learn(&w, l, 50, 1);
    for (int k = 0; k < 5 * 1440; k++) warmth_learn(&w, l, 60, 1);
    assert_true(warmth_guess(&w, l).warm_c < 53);
    for (int k = 0; k < 5 * 1440; k++) warmth_learn(&w, l, 45, 1);
    assert_true(warmth_guess(&w, l).warm_c < 47);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_its_words),
        cmocka_unit_test(fans),
        cmocka_unit_test(slowdowns),
        cmocka_unit_test(a_brake_is_no_heat),
        cmocka_unit_test(limits),
        cmocka_unit_test(hours_above_target),
        cmocka_unit_test(nothing_is_said_of_nothing),
        cmocka_unit_test(warmth_is_learnt),
        cmocka_unit_test(what_was_not_seen_is_drawn_from_afar),
        cmocka_unit_test(warmth_forgets_upwards_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
