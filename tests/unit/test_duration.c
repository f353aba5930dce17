/* Durations: what people write, what comes out, and what is refused. */
#include "model/duration.h"

#include <string.h>

#include "tests/test.h"

#define MS 1000000ll
#define S (1000 * MS)
#define M (60 * S)
#define H (60 * M)

static void good_ones(void **state) {
    static const struct {
        const char *text;
        int64_t want_ns;
        const char *again;
    } rows[] = {
        {"1ms",          1 * MS,                     "1ms"      },
        {"500ms",        500 * MS,                   "500ms"    },
        {"30s",          30 * S,                     "30s"      },
        {"0030s",        30 * S,                     "30s"      },
        {"2m",           2 * M,                      "2m"       },
        {"1h",           1 * H,                      "1h"       },
        {"1.5h",         90 * M,                     "1h30m"    },
        {"0.001s",       1 * MS,                     "1ms"      },
        {"1m30s",        90 * S,                     "1m30s"    },
        {"1h0m1ms",      H + MS,                     "1h1ms"    },
        {"1h2m3s4ms",    H + 2 * M + 3 * S + 4 * MS, "1h2m3s4ms"},
        {"90s",          90 * S,                     "1m30s"    },
        {"8784h",        DURATION_MOST_NS,           "366d"     },
        {"7d",           7 * 24 * H,                 "7d"       },
        {"1.5d",         36 * H,                     "1d12h"    },
        {"366d",         DURATION_MOST_NS,           "366d"     },
        {"2.25s",        2250 * MS,                  "2s250ms"  },
        {"1.123456789s", 1123456789,                 "1s123ms"  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        char again[DURATION_TEXT];
        int64_t ns = -1;
        int r = duration_parse(rows[i].text, &ns, &e);
        assert_int_equal(r, 0);
        assert_int_equal(ns, rows[i].want_ns);
        duration_text(ns, again);
        assert_string_equal(again, rows[i].again);
    }
}

static void bad_ones(void **state) {
    static const struct {
        const char *text, *because;
    } rows[] = {
        {"",                "not a length"  },
        {"30",              "without a unit"},
        {"1m30",            "without a unit"},
        {"s",               "not a length"  },
        {"-1s",             "not a length"  },
        {"+1s",             "not a length"  },
        {" 1s",             "not a length"  },
        {"1 s",             "a unit other"  },
        {"1s ",             "not a length"  },
        {"1e3s",            "a unit other"  },
        {"1D",              "a unit other"  },
        {"1w",              "a unit other"  },
        {"367d",            "not from 1ms"  },
        {"1S",              "a unit other"  },
        {"1min",            "a unit other"  },
        {"1sec",            "a unit other"  },
        {"1.s",             "not a length"  },
        {".5s",             "not a length"  },
        {"1..5s",           "not a length"  },
        {"1,5s",            "a unit other"  },
        {"30s1m",           "out of order"  },
        {"1s1s",            "out of order"  },
        {"0s",              "not from 1ms"  },
        {"0.9ms",           "not from 1ms"  },
        {"8785h",           "not from 1ms"  },
        {"8784h1ms",        "not from 1ms"  },
        {"99999999999999h", "more digits"   },
        {"999999999999h",   "not from 1ms"  },
        {"1.0000000001s",   "more digits"   },
        {"0.5ms500ms",      "out of order"  },
        {"0.000000001h",    "not from 1ms"  },
        {"soon",            "not a length"  },
        {"infs",            "not a length"  },
        {"0x10s",           "a unit other"  },
        {"1s;rm",           "not a length"  },
        {"\xff",            "not a length"  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        int64_t ns = -1;
        if (duration_parse(rows[i].text, &ns, &e) >= 0 || !strstr(e.text, rows[i].because))
            fail_msg("\"%s\": %lld, %s", rows[i].text, (long long)ns, e.text);
        assert_int_equal(ns, -1);
    }
}

static void what_is_shown_is_taken_back(void **state) {
    uint64_t x = 42;
    for (int i = 0; i < 20000; i++) {
        struct error e;
        char text[DURATION_TEXT];
        int64_t back;
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        int64_t ns = (int64_t)((x >> 8) % (uint64_t)(DURATION_MOST_NS / MS)) * MS + MS;
        duration_text(ns, text);
        assert_int_equal(duration_parse(text, &back, &e), 0);
        assert_int_equal(back, ns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(bad_ones),
        cmocka_unit_test(what_is_shown_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
