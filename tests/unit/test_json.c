/* JSON out: escapes, bad UTF-8, numbers that read back, commas. */
#include "tests/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define BAD "\xef\xbf\xbd"

static void strings(void **state) {
    static const struct {
        const char *name, *in, *want;
    } rows[] = {
        {"plain",                   "abc",              "\"abc\""                         },
        {"empty",                   "",                 "\"\""                            },
        {"quote and backslash",     "a\"b\\c",          "\"a\\\"b\\\\c\""                 },
        {"controls",                "\n\t\x01\x1f",     "\"\\u000a\\u0009\\u0001\\u001f\""},
        {"delete is allowed",       "\x7f",             "\"\x7f\""                        },
        {"two bytes",               "\xc3\xbc",         "\"\xc3\xbc\""                    },
        {"three bytes",             "\xe2\x82\xac",     "\"\xe2\x82\xac\""                },
        {"four bytes",              "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""            },
        {"last code point",         "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""            },
        {"past the last",           "\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""         },
        {"lone continuation",       "a\x80z",           "\"a" BAD "z\""                   },
        {"overlong slash",          "\xc0\xaf",         "\"" BAD BAD "\""                 },
        {"overlong three",          "\xe0\x80\xaf",     "\"" BAD BAD BAD "\""             },
        {"overlong four",           "\xf0\x80\x80\xaf", "\"" BAD BAD BAD BAD "\""         },
        {"surrogate",               "\xed\xa0\x80",     "\"" BAD BAD BAD "\""             },
        {"cut after one of two",    "x\xc3",            "\"x" BAD "\""                    },
        {"cut after two of three",  "x\xe2\x82",        "\"x" BAD BAD "\""                },
        {"cut after three of four", "x\xf0\x9f\x98",    "\"x" BAD BAD BAD "\""            },
        {"cut by a quote",          "\xe2\"",           "\"" BAD "\\\"\""                 },
        {"0xff",                    "\xff\xfe",         "\"" BAD BAD "\""                 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        json_str(&b, rows[i].in);
        if (strcmp(b.s, rows[i].want) != 0) print_error("row %s\n", rows[i].name);
        assert_string_equal(b.s, rows[i].want);
    }
}

static void numbers(void **state) {
    static const struct {
        double v;
        const char *want;
    } rows[] = {
        {0,              "0"                  },
        {34,             "34"                 },
        {78.1,           "78.1"               },
        {0.1,            "0.1"                },
        {-1.5,           "-1.5"               },
        {1e21,           "1e+21"              },
        {1e-7,           "0.0000001"          },
        {1e-10,          "1e-10"              },
        {151000000000.0, "151000000000"       },
        {NAN,            "null"               },
        {INFINITY,       "null"               },
        {-INFINITY,      "null"               },
        {0.1 + 0.2,      "0.30000000000000004"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        json_num(&b, rows[i].v);
        assert_string_equal(b.s, rows[i].want);
    }
}

static void numbers_read_back(void **state) {
    static const double edges[] = {0.0,
                                   -0.0,
                                   DBL_MIN,
                                   DBL_MAX,
                                   -DBL_MAX,
                                   DBL_EPSILON,
                                   4.9406564584124654e-324,
                                   9007199254740991.0,
                                   9007199254740993.0,
                                   1.0 / 3,
                                   2.0 / 3,
                                   1e22,
                                   1e23};
    uint64_t seed = 88172645463325252ull;
    for (size_t i = 0; i < 20000; i++) {
        double v;
        if (i < ARRAY_LEN(edges)) {
            v = edges[i];
        } else {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            memcpy(&v, &seed, sizeof v);
            if (!isfinite(v)) continue;
        }
        AUTO(buf_done) struct buf b = {0};
        json_num(&b, v);
        double back = strtod(b.s, NULL);
        assert_memory_equal(&back, &v, sizeof v);
        assert_int_equal(strspn(b.s, "-0123456789.e+"), b.len);
    }
}

static void integers(void **state) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '[');
    json_int(&b, INT64_MIN);
    json_int(&b, INT64_MAX);
    json_uint(&b, UINT64_MAX);
    json_close(&b, ']');
    assert_string_equal(b.s, "[-9223372036854775808,9223372036854775807,18446744073709551615]");
}

static void commas(void **state) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_pair_str(&b, "a:", "b,");
    json_key(&b, "list[");
    json_open(&b, '[');
    json_open(&b, '{');
    json_close(&b, '}');
    json_open(&b, '[');
    json_close(&b, ']');
    json_num(&b, 1);
    json_bool(&b, true);
    json_nil(&b);
    json_str(&b, "{");
    json_str(&b, "\n");
    json_close(&b, ']');
    json_pair_num(&b, "n", 0.5);
    json_pair_int(&b, "i", -1);
    json_pair_bool(&b, "f", false);
    json_close(&b, '}');
    buf_putc(&b, '\n');
    json_open(&b, '{');
    json_close(&b, '}');
    assert_string_equal(b.s, "{\"a:\":\"b,\",\"list[\":[{},[],1,true,null,\"{\",\"\\u000a\"],\"n\":0.5,\"i\":-1,"
                             "\"f\":false}\n{}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),  cmocka_unit_test(numbers), cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(integers), cmocka_unit_test(commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
