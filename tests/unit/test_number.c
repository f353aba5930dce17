/* Numbers as people expect them. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"
#include "model/metrics.h"

static void a_reading_has_the_decimals_of_its_scale(void **state) {
    static const struct {
        double value, scale;
        const char *want;
    } rows[] = {
        {78.1,               0.001, "78.1"            },
        {78100 * 0.001,      0.001, "78.1"            },
        {77978 * 1e-3,       0.001, "77.978"          },
        {34,                 1,     "34"              },
        {0,                  0.01,  "0"               },
        {-0.0,               0.001, "0"               },
        {-0.0001,            0.001, "0"               },
        {-7,                 1,     "-7"              },
        {0.57,               0.01,  "0.57"            },
        {100 * 0.01,         0.01,  "1"               },
        {7 * 0.01,           0.01,  "0.07"            },
        {1980e6,             1e6,   "1980000000"      },
        {150754820096.0,     1,     "150754820096"    },
        {1024.0 * 3,         1024,  "3072"            },
        {123456789 * 1e-9,   1e-9,  "0.123456789"     },
        {1e-6,               1e-6,  "0.000001"        },
        {0.5713,             0,     "0.5713"          },
        {1.0 / 3,            0,     "0.333333"        },
        {123456789.6,        0,     "123456790"       },
        {9007199254740991.0, 1,     "9007199254740991"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[64];
        number_text(rows[i].value, rows[i].scale, text, sizeof text);
        assert_string_equal(text, rows[i].want);
    }
    char text[64];
    number_text(NAN, 1, text, sizeof text);
    assert_string_equal(text, "null");
}

/* A whole number of steps comes back from its text as that number of steps, for every scale of the catalogue. */
static void nothing_is_lost(void **state) {
    for (int m = 0; m < METRIC_COUNT; m++) {
        for (long steps = 0; metrics[m].scale > 0 && steps < 2000000; steps = steps * 3 + 1) {
            char text[64];
            number_text((double)steps * metrics[m].scale, metrics[m].scale, text, sizeof text);
            assert_int_equal(lround(strtod(text, NULL) / metrics[m].scale), steps);
        }
    }
}

static void ages_and_bytes(void **state) {
    static const struct {
        int64_t ns;
        const char *want;
    } ages[] = {
        {-5,                   "0 ms"  },
        {0,                    "0 ms"  },
        {850 * NS_PER_MS,      "850 ms"},
        {NS_PER_S,             "1 s"   },
        {119 * NS_PER_S,       "119 s" },
        {120 * NS_PER_S,       "2 min" },
        {7200 * NS_PER_S,      "2 h"   },
        {86400 * 3 * NS_PER_S, "3 days"},
    };
    static const struct {
        double bytes;
        const char *want;
    } sizes[] = {
        {0,               "0 B"      },
        {1023,            "1023 B"   },
        {1024,            "1 KiB"    },
        {512.0 * 1048576, "512 MiB"  },
        {150754820096.0,  "140.4 GiB"}
    };
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(ages); i++) {
        number_age(ages[i].ns, text, sizeof text);
        assert_string_equal(text, ages[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        number_bytes(sizes[i].bytes, text, sizeof text);
        assert_string_equal(text, sizes[i].want);
    }
    number_time_utc(1700000000123456789, text, sizeof text);
    assert_string_equal(text, "2023-11-14T22:13:20.123Z");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reading_has_the_decimals_of_its_scale),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(ages_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
