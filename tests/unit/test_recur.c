/* Times that come again. tests/system/test_recur.py holds the same code against an independent reckoning; here is what people
 * write, what is refused, and the two nights of the year. */
#include "model/recur.h"

#include <stdio.h>
#include <string.h>

#include "model/moment.h"
#include "tests/test.h"
#include "tests/unit/zone_bytes.h"

static struct zone berlin;

static int set_up(void **s) {
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    zone_bytes_make(&b, 0, NULL, NULL, 0, "CET-1CEST,M3.5.0,M10.5.0/3");
    return zone_parse(b.s, b.len, &berlin, &e);
}

static int tear_down(void **s) {
    zone_done(&berlin);
    return 0;
}

static int64_t at(const char *text) {
    int64_t ns;
    struct error e;
    if (moment_parse(text, &ns, &e) < 0) fail_msg("%s", e.text);
    return ns / 1000000000;
}

struct row {
    const char *text, *after, *want[4]; /* the next ones, in order; "": there is none any more */
};

static void hold(const struct row *rows, size_t count, bool is_cron, const struct zone *z) {
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        struct recur r;
        struct error e;
        if (recur_parse(is_cron ? row->text : "", is_cron ? NULL : row->text, &r, &e) < 0) fail_msg("%s", e.text);
        int64_t t = at(row->after);
        for (int k = 0; k < 4 && row->want[k]; k++) {
            t = recur_next(&r, z, t);
            int64_t want = *row->want[k] ? at(row->want[k]) : RECUR_NEVER;
            if (t != want) fail_msg("%s after %s: %lld, not %s", row->text, row->after, (long long)t, row->want[k]);
        }
    }
}

static void crons(void **s) {
    static const struct row rows[] = {
        {"0 3 * * *",             "2026-11-15T12:00:00Z", {"2026-11-16T03:00:00Z", "2026-11-17T03:00:00Z"}                        },
        {"0 3 * * *",             "2026-11-15T03:00:00Z", {"2026-11-16T03:00:00Z"}                                                },
        {"0 3 * * *",             "2026-11-15T02:59:59Z", {"2026-11-15T03:00:00Z"}                                                },
        {"*/20 9-10 * * mon-fri", "2026-11-13T10:30:00Z", {"2026-11-13T10:40:00Z", "2026-11-16T09:00:00Z"}                        },
        {"0 0 13 * fri",          "2026-11-15T00:00:00Z", {"2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"}                        }, /* either day */
        {"0 0 */2 * fri",         "2026-11-15T00:00:00Z", {"2026-11-27T00:00:00Z", "2026-12-11T00:00:00Z"}                        }, /* both */
        {"0 0 31 * *",
         "2026-11-15T00:00:00Z",                          {"2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z"}},
        {"0 0 29 2 *",            "2096-03-01T00:00:00Z", {"2104-02-29T00:00:00Z"}                                                },
        {"59 23 31 DEC 0-7",      "2026-11-15T00:00:00Z", {"2026-12-01T23:59:00Z"}                                                },
        {"  0   3\t* * 7",        "2026-11-15T12:00:00Z", {"2026-11-22T03:00:00Z"}                                                },
        {"@daily",                "2026-11-15T12:00:00Z", {"2026-11-16T00:00:00Z"}                                                },
        {"@yearly",               "2199-02-01T00:00:00Z", {""}                                                                    },
        {"0,30 8,20 1,15 * *",    "2026-11-15T08:00:00Z", {"2026-11-15T08:30:00Z", "2026-11-15T20:00:00Z"}                        },
    };
    hold(rows, ARRAY_LEN(rows), true, NULL);
}

static void the_two_nights(void **s) {
    static const struct row rows[] = {
  /* spring: 02:00 to 02:59 is left out on 29 March 2026 */
        {"30 2 * * *",
         "2026-03-28T00:00:00Z",                    {"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"}},
        {"0,20,40 2 * * *",
         "2026-03-28T22:00:00Z",                    {"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}                                                }, /* once for all */
        {"30 * * * *",      "2026-03-29T00:00:00Z", {"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}                                                },
        {"0 */2 * * *",     "2026-03-28T23:30:00Z", {"2026-03-29T02:00:00Z", "2026-03-29T04:00:00Z"}                                                },
        {"0 3 * * *",       "2026-03-29T00:00:00Z", {"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}                                                },
 /* autumn: it comes twice on 25 October 2026 */
        {"30 2 * * *",      "2026-10-24T12:00:00Z", {"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}                                                },
        {"30 2 * * *",      "2026-10-25T01:10:00Z", {"2026-10-26T01:30:00Z"}                                                                        }, /* between the two: it was */
        {"30 * * * *",
         "2026-10-25T00:00:00Z",                    {"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}                        },
        {"*/30 2 * * *",
         "2026-10-24T23:00:00Z",                    {"2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"}},
        {"0 1-3 * * *",
         "2026-10-24T22:00:00Z",                    {"2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-26T00:00:00Z"}},
    };
    hold(rows, ARRAY_LEN(rows), true, &berlin);
}

static void intervals(void **s) {
    static const struct row rows[] = {
        {"R3/2026-11-15T03:00:00+01:00/PT12H",
         "2026-01-01T00:00:00Z",                                           {"2026-11-15T02:00:00Z", "2026-11-15T14:00:00Z", "2026-11-16T02:00:00Z", ""}},
        {"R/2026-01-31T12:00:00Z/P1M",
         "2026-01-31T12:00:00Z",                                           {"2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z", "2026-04-30T12:00:00Z"}    },
        {"R/2024-02-29T00:00:00Z/P1Y",
         "2026-01-01T00:00:00Z",                                           {"2026-02-28T00:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"}    },
        {"R2/2026-11-15T03:00Z/2026-11-16T03:00Z",
         "2026-01-01T00:00:00Z",                                           {"2026-11-15T03:00:00Z", "2026-11-16T03:00:00Z", ""}                        },
        {"R2/PT12H/2026-11-16T00:00:00Z",          "2026-01-01T00:00:00Z", {"2026-11-15T00:00:00Z", "2026-11-15T12:00:00Z", ""}                        },
        {"R/P1M/2026-12-31T00:00:00Z",             "2026-10-01T00:00:00Z", {"2026-10-31T00:00:00Z", "2026-11-30T00:00:00Z", ""}                        },
        {"R-1/2026-11-15T00:00:00Z/P1W",           "2026-11-22T00:00:00Z", {"2026-11-29T00:00:00Z"}                                                    },
        {"R/20261115T033000+0130/P1D",             "2026-11-15T00:00:00Z", {"2026-11-15T02:00:00Z"}                                                    },
        {"R/20261115T0330Z/P1D",                   "2026-11-15T00:00:00Z", {"2026-11-15T03:30:00Z"}                                                    },
        {"R/20261116/P1W",                         "2026-11-15T00:00:00Z", {"2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"}                            },
        {"R/2026-11-16/P1W",                       "2026-11-15T00:00:00Z", {"2026-11-16T00:00:00Z"}                                                    },
        {"R/2026-11-15 00:00z/P1D",                "2026-11-15T00:00:00Z", {"2026-11-16T00:00:00Z"}                                                    },
        {"R/2026-11-15T00:00:30Z/PT60S",           "2100-01-01T00:00:00Z", {"2100-01-01T00:00:30Z", "2100-01-01T00:01:30Z"}                            },
        {"R1/2026-11-15T00:00:00Z/P100Y",          "2026-11-15T00:00:00Z", {""}                                                                        },
        {"R5/2020-01-01T00:00:00Z/P1D",            "2026-11-15T00:00:00Z", {""}                                                                        },
    };
    static const struct row zoned[] = {
        {"R/2026-03-28T02:30:00/P1D",
         "2026-03-28T00:00:00Z",                                    {"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
        {"R/2026-03-28T02:30:00/PT24H",
         "2026-03-28T00:00:00Z",                                    {"2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T01:30:00Z"}},
        {"R/2026-10-24T12:00:00+02:00/P1D", "2026-10-24T00:00:00Z", {"2026-10-24T10:00:00Z", "2026-10-25T11:00:00Z"}                        },
    };
    hold(rows, ARRAY_LEN(rows), false, NULL);
    hold(zoned, ARRAY_LEN(zoned), false, &berlin);
}

static void what_is_refused(void **s) {
    static const struct {
        const char *cron, *interval, *sentence;
    } rows[] = {
        {"0 0 30 2 *",     "",                                            "cron: \"0 0 30 2 *\" never comes: no year has such a day"},
        {"0 0 31 4,6 *",   "",                                            "never comes"                                             },
        {"0 0 31 feb */2", "",                                            "never comes"                                             },
        {"* * * * * *",    "",                                            "nothing repeats by the second"                           },
        {"* * * *",        "",                                            "4 of five fields"                                        },
        {"",               "",                                            "neither cron nor interval"                               },
        {"60 * * * *",     "",                                            "minute \"60\" is not from 0 to 59"                       },
        {"0 24 * * *",     "",                                            "hour \"24\" is not from 0 to 23"                         },
        {"0 0 0 * *",      "",                                            "day of the month \"0\" is not from 1 to 31"              },
        {"0 0 * foo *",    "",                                            "month \"foo\" cannot be read"                            },
        {"0 0 * * 8",      "",                                            "day of the week \"8\" is not from 0 to 7"                },
        {"0 0 L * *",      "",                                            "day of the month \"L\" cannot be read"                   },
        {"0 0 * * mon#2",  "",                                            "cannot be read"                                          },
        {"0 22-2 * * *",   "",                                            "its end comes before its beginning"                      },
        {"5/15 * * * *",   "",                                            "a step needs a range, as in 5-59/15"                     },
        {"*/0 * * * *",    "",                                            "a step is from 1 to 59"                                  },
        {"1, * * * *",     "",                                            "cannot be read"                                          },
        {"@reboot",        "",                                            "there is @hourly"                                        },
        {"0 3 * * *",      "R/2026-11-15T03:00:00Z/PT1H",                 "only one makes sense"                                    },
        {"",               "R/2026-11-15T03:00:00Z/PT59S",                "nothing repeats more often than once a minute"           },
        {"",               "R/2026-11-15T03:00:00Z/P0D",                  "once a minute"                                           },
        {"",               "R0/2026-11-15T03:00:00Z/PT1H",                "from 1 to"                                               },
        {"",               "5/2026-11-15T03:00:00Z/PT1H",                 "it begins with R"                                        },
        {"",               "R/PT1H",                                      "is no repeating interval"                                },
        {"",               "R/PT1H/PT1H",                                 "a beginning or an end"                                   },
        {"",               "R/2026-11-15T03:00:00Z/PT0.5H",               "is no duration"                                          },
        {"",               "R/2026-11-15T03:00:00Z/PT",                   "is no duration"                                          },
        {"",               "R/2026-11-15T03:00:00Z/P1H",                  "is no duration"                                          },
        {"",               "R/2026-11-15T03:00:00Z/P1D1M",                "is no duration"                                          },
        {"",               "R/2026-11-15T03:00:00Z/P101Y",                "longer than 100 years"                                   },
        {"",               "R/2026-11-31/P1D",                            "\"2026-11-31\" is no point in time"                      },
        {"",               "R/20261115T03000Z/P1D",                       "no point in time"                                        },
        {"",               "R/2026-11-31T03:00:00Z/P1D",                  "no point in time"                                        },
        {"",               "R/2026-11-15T03:00:00Z/2026-11-15T02:00:00Z", "before its beginning"                                    },
        {"",               "R/2026-11-15T03:00:00Z/2026-11-16T02:00:00",  "neither has"                                             },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct recur r;
        struct error e;
        if (recur_parse(rows[i].cron, rows[i].interval, &r, &e) >= 0)
            fail_msg("%s%s was taken", rows[i].cron, rows[i].interval);
        if (!strstr(e.text, rows[i].sentence)) fail_msg("%s%s: %s", rows[i].cron, rows[i].interval, e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(crons), cmocka_unit_test(the_two_nights),
                                       cmocka_unit_test(intervals), cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
