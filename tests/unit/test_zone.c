/* Zones: what a file says, what its rule says of the years after, and which moments a local time has. */
#include "model/zone.h"

#include <errno.h>
#include <string.h>

#include "model/calendar.h"
#include "model/moment.h"
#include "tests/test.h"
#include "tests/unit/zone_bytes.h"

static int64_t at(const char *text) {
    int64_t ns;
    struct error e;
    if (moment_parse(text, &ns, &e) < 0) fail_msg("%s", e.text);
    return ns / 1000000000;
}

static struct zone by_rule(const char *rule) {
    AUTO(buf_done) struct buf b = {0};
    struct zone z;
    struct error e;
    zone_bytes_make(&b, 0, NULL, NULL, 0, rule);
    if (zone_parse(b.s, b.len, &z, &e) < 0) fail_msg("%s: %s", rule, e.text);
    return z;
}

static void days_of_the_calendar(void **s) {
    assert_int_equal(calendar_days(1970, 1, 1), 0);
    assert_int_equal(calendar_days(2000, 2, 29), 11016);
    assert_int_equal(calendar_days(1969, 12, 31), -1);
    assert_int_equal(calendar_weekday(calendar_days(2026, 11, 15)), 0);
    assert_int_equal(calendar_weekday(-5), 6);
    for (int64_t d = -200000; d < 200000; d += 13) {
        struct calendar_date c = calendar_date(d);
        assert_int_equal(calendar_days(c.year, c.month, c.day), d);
        assert_true(c.day >= 1 && c.day <= calendar_days_in(c.year, c.month));
    }
}

static void rules(void **s) {
    static const struct {
        const char *rule, *when;
        int32_t want_s;
    } rows[] = {
        {"UTC0",                                 "2026-07-01T00:00:00Z", 0     },
        {"<+0545>-5:45",                         "2026-07-01T00:00:00Z", 20700 },
        {"CET-1CEST,M3.5.0,M10.5.0/3",           "2026-03-29T00:59:59Z", 3600  },
        {"CET-1CEST,M3.5.0,M10.5.0/3",           "2026-03-29T01:00:00Z", 7200  },
        {"CET-1CEST,M3.5.0,M10.5.0/3",           "2026-10-25T00:59:59Z", 7200  },
        {"CET-1CEST,M3.5.0,M10.5.0/3",           "2026-10-25T01:00:00Z", 3600  },
        {"CET-1CEST,M3.5.0,M10.5.0/3",           "2199-07-01T00:00:00Z", 7200  },
        {"NZST-12NZDT,M9.5.0,M4.1.0/3",          "2026-01-01T00:00:00Z", 46800 },
        {"NZST-12NZDT,M9.5.0,M4.1.0/3",          "2026-06-01T00:00:00Z", 43200 },
        {"IST-1GMT0,M10.5.0,M3.5.0/1",           "2026-01-01T00:00:00Z", 0     }, /* winter is what is called summer */
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-01-01T00:00:00Z", 39600 }, /* half an hour */
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",      "2026-03-29T00:59:59Z", -7200 }, /* the day before */
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0",      "2026-03-29T01:00:00Z", -3600 },
        {"XXX-2<+01>-1,0/0,J365/23",             "2026-02-01T00:00:00Z", 3600  }, /* the whole year */
        {"XXX-2<+01>-1,0/0,J365/23",             "2025-12-31T22:30:00Z", 3600  },
        {"AAA3BBB,J60,J300",                     "2028-03-01T04:59:59Z", -10800}, /* J60 is 1 March in a leap year, too */
        {"AAA3BBB,J60,J300",                     "2028-03-01T05:00:00Z", -7200 },
        {"AAA3BBB,59,300",                       "2028-02-29T05:00:00Z", -7200 }, /* 59 is not */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(zone_done) struct zone z = by_rule(rows[i].rule);
        int32_t have = zone_offset_s(&z, at(rows[i].when));
        if (have != rows[i].want_s) fail_msg("%s at %s: %d", rows[i].rule, rows[i].when, have);
    }
}

static void a_table_comes_before_the_rule(void **s) {
    static const int64_t changes[] = {1000, 2000, 3000, 4000};
    static const int32_t offsets[] = {60, 120, 120, 3600};
    AUTO(buf_done) struct buf b = {0};
    AUTO(zone_done) struct zone z = {0};
    struct error e;
    int64_t next;
    zone_bytes_make(&b, -60, changes, offsets, 4, "CET-1");
    assert_int_equal(zone_parse(b.s, b.len, &z, &e), 0);
    assert_int_equal(zone_offset_s(&z, -5000000000), -60);
    assert_int_equal(zone_offset_s(&z, 999), -60);
    assert_int_equal(zone_offset_s(&z, 1000), 60);
    assert_int_equal(zone_offset_s(&z, 3999), 120);
    assert_int_equal(zone_offset_s(&z, 4000), 3600);
    assert_int_equal(zone_offset_s(&z, 5000000000), 3600);
    assert_true(zone_next_change(&z, 2000, &next)); /* nothing changes at 3000 */
    assert_int_equal(next, 4000);
    assert_false(zone_next_change(&z, 4000, &next));
    const struct zone utc = {0};
    assert_int_equal(zone_offset_s(&utc, 12345), 0);
    assert_false(zone_next_change(&utc, 0, &next));
}

static void moments_of_a_local_time(void **s) {
    AUTO(zone_done) struct zone z = by_rule("CET-1CEST,M3.5.0,M10.5.0/3");
    static const struct {
        const char *local; /* as if it were UTC */
        int count;
        const char *first, *second;
    } rows[] = {
        {"2026-03-29T01:59:59Z", 1, "2026-03-29T00:59:59Z", NULL                  },
        {"2026-03-29T02:00:00Z", 0, "2026-03-29T01:00:00Z", NULL                  },
        {"2026-03-29T02:59:59Z", 0, "2026-03-29T01:00:00Z", NULL                  },
        {"2026-03-29T03:00:00Z", 1, "2026-03-29T01:00:00Z", NULL                  },
        {"2026-10-25T01:59:59Z", 1, "2026-10-24T23:59:59Z", NULL                  },
        {"2026-10-25T02:00:00Z", 2, "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
        {"2026-10-25T02:59:59Z", 2, "2026-10-25T00:59:59Z", "2026-10-25T01:59:59Z"},
        {"2026-10-25T03:00:00Z", 1, "2026-10-25T02:00:00Z", NULL                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t got[2];
        int n = zone_moments(&z, at(rows[i].local), got);
        if (n != rows[i].count || got[0] != at(rows[i].first) || (n == 2 && got[1] != at(rows[i].second)))
            fail_msg("%s: %d, %lld", rows[i].local, n, (long long)got[0]);
    }
}

/* An island that leaves out a whole day. */
static void a_day_is_left_out(void **s) {
    const int64_t change = at("2011-12-30T10:00:00Z");
    const int32_t offset = 14 * 3600;
    AUTO(buf_done) struct buf b = {0};
    AUTO(zone_done) struct zone z = {0};
    struct error e;
    int64_t got[2];
    zone_bytes_make(&b, -10 * 3600, &change, &offset, 1, "<+14>-14");
    assert_int_equal(zone_parse(b.s, b.len, &z, &e), 0);
    assert_int_equal(zone_moments(&z, at("2011-12-30T12:00:00Z"), got), 0);
    assert_int_equal(got[0], change);
    assert_int_equal(zone_moments(&z, at("2011-12-29T23:59:59Z"), got), 1);
    assert_int_equal(got[0], change - 1);
}

static void bad_bytes(void **s) {
    static const char *const rules[] = {"CET",
                                        "CE-1",
                                        "CET-1CEST",
                                        "CET-1CEST,M3.5.0",
                                        "CET-25",
                                        "CET-1 ",
                                        "<CET-1",
                                        "CET-1CEST,M13.5.0,1",
                                        "CET-1CEST,M3.6.0,1",
                                        "CET-1,3",
                                        "CET-1X,1,2",
                                        "CET-1CEST,1/168,2",
                                        "CET-1CEST,J0,2"};
    struct zone z;
    struct error e;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        AUTO(buf_done) struct buf b = {0};
        zone_bytes_make(&b, 0, NULL, NULL, 0, rules[i]);
        if (zone_parse(b.s, b.len, &z, &e) >= 0) fail_msg("%s was taken", rules[i]);
    }
    static const int64_t falling[] = {2000, 1000};
    static const int32_t offsets[] = {60, 120}, far[] = {60, 100000};
    AUTO(buf_done) struct buf b = {0}, c = {0};
    zone_bytes_make(&b, 0, falling, offsets, 2, "CET-1");
    assert_true(zone_parse(b.s, b.len, &z, &e) < 0);
    static const int64_t rising[] = {1000, 2000};
    zone_bytes_make(&c, 0, rising, far, 2, "CET-1");
    assert_true(zone_parse(c.s, c.len, &z, &e) < 0);
    buf_clear(&c);
    zone_bytes_make(&c, 0, rising, offsets, 2, "CET-1");
    for (size_t n = 0; n < c.len; n++) assert_true(zone_parse(c.s, n, &z, &e) < 0);
    assert_int_equal(zone_parse(c.s, c.len, &z, &e), 0);
    zone_done(&z);
}

static void names(void **s) {
    static const char *const good[] = {"UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5", "EST5EDT"};
    static const char *const bad[] = {"",       "/etc/passwd", "../passwd", "Europe//Berlin", "Europe/",
                                      "a/../b", "a b/c",       ".hidden",   "Europe/.x",      "-f"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) assert_true(zone_name_is_good(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (zone_name_is_good(bad[i])) fail_msg("%s", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_of_the_calendar),
        cmocka_unit_test(rules),
        cmocka_unit_test(a_table_comes_before_the_rule),
        cmocka_unit_test(moments_of_a_local_time),
        cmocka_unit_test(a_day_is_left_out),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
