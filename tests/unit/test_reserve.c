/* Reservations: which windows they have, what is refused, which are in each other's way, and when one is given back. */
#include "tests/test.h"

#include <string.h>

#include "model/reserve.h"

#define HOUR 3600LL
#define DAY 86400LL
#define NOW 1794787200LL /* 2026-11-16, a Monday, 00:00 UTC */

static struct reserve once(int64_t from_s, int64_t hours) {
    return (struct reserve){.from_s = NOW + from_s, .length_s = hours * HOUR};
}

static struct reserve every(const char *cron, const char *interval, int64_t from_s, int64_t hours) {
    struct reserve r = once(from_s, hours);
    struct error e = {0};
    r.is_recurring = true;
    if (recur_parse(cron, interval, &r.recur, &e) < 0) fail_msg("%s", e.text);
    return r;
}

static void windows(void **state) {
    struct reserve_window w;
    struct reserve r = once(2 * HOUR, 4);
    assert_true(reserve_next(&r, NOW, &w) && w.from_s == NOW + 2 * HOUR && w.to_s == NOW + 6 * HOUR);
    assert_true(reserve_next(&r, NOW + 6 * HOUR - 1, &w) && w.from_s == NOW + 2 * HOUR); /* it goes on */
    assert_false(reserve_next(&r, NOW + 6 * HOUR, &w));
    struct reserve weekdays = every("0 9 * * 1-5", NULL, 0, 4);
    assert_true(reserve_next(&weekdays, NOW, &w) && w.from_s == NOW + 9 * HOUR);
    assert_true(reserve_next(&weekdays, NOW + 13 * HOUR - 1, &w) && w.from_s == NOW + 9 * HOUR);
    assert_true(reserve_next(&weekdays, NOW + 13 * HOUR, &w) && w.from_s == NOW + DAY + 9 * HOUR);
    assert_true(reserve_next(&weekdays, NOW + 4 * DAY + 13 * HOUR, &w) && w.from_s == NOW + 7 * DAY + 9 * HOUR);
    weekdays.until_s = NOW + 2 * DAY;
    assert_true(reserve_next(&weekdays, NOW + DAY, &w) && w.from_s == NOW + DAY + 9 * HOUR);
    assert_false(reserve_next(&weekdays, NOW + 2 * DAY, &w));
    struct reserve late = every("0 9 * * *", NULL, 3 * DAY + 10 * HOUR, 1);
    assert_true(reserve_next(&late, NOW, &w) && w.from_s == NOW + 4 * DAY + 9 * HOUR); /* none before from */
    struct reserve three = every(NULL, "R3/2026-11-16T01:00:00Z/P1D", 0, 2);
    assert_true(reserve_next(&three, NOW + 2 * DAY, &w) && w.from_s == NOW + 2 * DAY + HOUR);
    assert_false(reserve_next(&three, NOW + 3 * DAY, &w));
}

static void refused(void **state) {
    struct error e;
    struct reserve r = once(-DAY, 4);
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "from: lies in the past");
    r = once(HOUR, 0);
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "for: a minute is the least");
    r = once(HOUR, 24 * 32);
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "for: 31 days are the most");
    r = once(400 * DAY, 1);
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "from: is more than a year ahead");
    r = every("0 * * * *", NULL, 0, 2);
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "for: it comes again before it is over");
    r = every("0 9 * * *", NULL, 0, 2);
    r.until_s = NOW + HOUR;
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    assert_string_equal(e.text, "every: has no time after from and before until");
    r = once(HOUR, 1);
    r.until_s = NOW + DAY;
    assert_true(reserve_check(&r, NULL, NOW, &e) < 0);
    r = every("0 9 * * *", NULL, 0, 24); /* one ends as the next begins */
    assert_int_equal(reserve_check(&r, NULL, NOW, &e), 0);
}

/* One that has begun becomes longer or shorter, and is moved nowhere but ahead. */
static void changed(void **state) {
    static const struct {
        int64_t from_s, hours;
        const char *sentence; /* NULL: it may */
    } rows[] = {
        {-2 * HOUR,     8, NULL                                                 },
        {-2 * HOUR,     3, NULL                                                 },
        {-2 * HOUR,     2, "for: it would be over already; take it back instead"},
        {-2 * HOUR,     1, "for: it would be over already; take it back instead"},
        {-3 * HOUR,     8, "from: lies in the past"                             },
        {-2 * HOUR + 1, 8, "from: lies in the past"                             },
        {HOUR,          1, NULL                                                 },
    };
    const struct reserve was = once(-2 * HOUR, 4);
    struct error e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct reserve r = once(rows[i].from_s, rows[i].hours);
        int result = reserve_check(&r, &was, NOW, &e);
        assert_int_equal(result < 0, rows[i].sentence != NULL);
        if (rows[i].sentence) assert_string_equal(e.text, rows[i].sentence);
    }
    struct reserve daily = every("0 9 * * *", NULL, -30 * DAY, 4), longer = every("0 9 * * *", NULL, -30 * DAY, 6);
    assert_int_equal(reserve_check(&longer, &daily, NOW, &e), 0);
}

static void clashes(void **state) {
    struct reserve daily = every("0 9 * * *", NULL, 0, 4), a = once(10 * DAY + 12 * HOUR, 4),
                   b = once(10 * DAY + 13 * HOUR, 20), c = once(10 * DAY + 13 * HOUR, 21),
                   sundays = every("30 12 * * 0", NULL, 0, 1), nights = every("0 13 * * *", NULL, 0, 20);
    struct reserve_window w;
    assert_true(reserve_clash(&a, &daily, NOW, &w) && w.from_s == NOW + 10 * DAY + 9 * HOUR);
    assert_true(reserve_clash(&daily, &a, NOW, &w) && w.from_s == a.from_s);
    assert_false(reserve_clash(&b, &daily, NOW, &w)); /* from the end of one to the beginning of the next */
    assert_true(reserve_clash(&c, &daily, NOW, &w));
    assert_true(reserve_clash(&daily, &sundays, NOW, &w) && w.from_s == NOW + 6 * DAY + 12 * HOUR + 1800);
    assert_false(reserve_clash(&daily, &nights, NOW, &w));
    assert_false(reserve_clash(&a, &daily, NOW + 11 * DAY, &w)); /* over */
}

static void hours(void **state) {
    struct reserve daily = every("0 9 * * *", NULL, 0, 4), r = once(-HOUR, 4);
    assert_int_equal(reserve_seconds(&daily, NOW, NOW + 7 * DAY), 28 * HOUR);
    assert_int_equal(reserve_seconds(&r, NOW, NOW + 7 * DAY), 3 * HOUR);
    assert_int_equal(reserve_seconds(&r, NOW, NOW + HOUR), HOUR);
    assert_int_equal(reserve_seconds(&r, NOW + DAY, NOW + 7 * DAY), 0);
}

static void given_back(void **state) {
    const struct reserve_window w = {NOW, NOW + 4 * HOUR};
    static const struct {
        int64_t last_use_s, unused_s, now_s;
        bool want;
    } rows[] = {
        {0,          900, 0,    true },
        {0,          900, 899,  true },
        {0,          900, 900,  false},
        {0,          0,   9000, true }, /* never */
        {NOW - 5000, 900, 899,  true }, /* what was before it began does not count */
        {NOW - 5000, 900, 900,  false},
        {NOW + 3000, 900, 3899, true },
        {NOW + 3000, 900, 3900, false},
        {NOW + 9000, 900, 9000, true }, /* he has come */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(reserve_stands(&w, rows[i].last_use_s, rows[i].unused_s, NOW + rows[i].now_s), rows[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows), cmocka_unit_test(refused), cmocka_unit_test(changed),
        cmocka_unit_test(clashes), cmocka_unit_test(hours),   cmocka_unit_test(given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
