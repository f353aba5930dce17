/* The walk over JSON: what is told, in which order, and what is refused. */
#include "base/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tests/test.h"

static void note(void *ctx, const struct json_scan_value *v) {
    static const char marks[] = "snTFN{[";
    struct buf *b = ctx;
    for (unsigned i = 0; i < v->depth && i < JSON_SCAN_KEYS; i++) buf_printf(b, "%s/", *v->key[i] ? v->key[i] : "-");
    buf_printf(b, "%c%s%s ", marks[v->type], v->text, v->is_cut ? "~" : "");
}

static void told(void **state) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{}",                                                        "{ "                                     },
        {" [ ] ",                                                     "[ "                                     },
        {"1",                                                         "n1 "                                    },
        {"\"a\"",                                                     "sa "                                    },
        {"{\"a\":1,\"b\":[true,null,{\"c\":\"d\"}]}",                 "{ a/n1 b/[ b/-/T b/-/N b/-/{ b/-/c/sd " },
        {"[[],[],{}]",                                                "[ -/[ -/[ -/{ "                         },
        {"{\"x.y\":{\"\":2}}",                                        "{ x.y/{ x.y/-/n2 "                      },
        {"{\"a\":1,\"a\":2}",                                         "{ a/n1 a/n2 "                           },
        {"\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",                   "sA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 "},
        {"\"\\ud83d\"",                                               "s\xef\xbf\xbd "                         },
        {"\"\\ud83dx\\udc00\"",                                       "s\xef\xbf\xbdx\xef\xbf\xbd "            },
        {"\"\\ud83d\\u0041\"",                                        "s\xef\xbf\xbd"
                               "A "                                              },
        {"\"\\\"\\\\\\/\"",                                           "s\"\\/ "                                },
        {"[-0,0.5,1e9,-1.25E-3]",                                     "[ -/n-0 -/n0.5 -/n1e9 -/n-1.25E-3 "     },
        {"[1,2]\r\n\t",                                               "[ -/n1 -/n2 "                           },
        {"{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":1}}}}}}}",
         "{ a/{ a/b/{ a/b/c/{ a/b/c/d/{ a/b/c/d/e/{ a/b/c/d/e/f/{ a/b/c/d/e/f/n1 "                             },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        int r = json_scan(rows[i].text, strlen(rows[i].text), note, &b, &e);
        if (r < 0 || strcmp(b.s, rows[i].want) != 0) fail_msg("%s: %d %s, told %s", rows[i].text, r, e.text, b.s);
    }
}

static void refused(void **state) {
    static const char *const rows[] = {
        "",
        " ",
        "{",
        "[",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "[,1]",
        "{,}",
        "}",
        "]",
        "[}",
        "{]",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "tru",
        "nul",
        "True",
        "[1]x",
        "{}{}",
        "'a'",
        "[1]//",
        "\xef\xbb\xbf{}",
        "NaN",
        "[\"a\" \"b\"]",
        "{\"a\" 1}",
        "{1:2}",
        "\"\\",
        "\"\\ud83d\\u\"",
        "--1",
        "1-",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        if (json_scan(rows[i], strlen(rows[i]), note, &b, &e) >= 0) fail_msg("%s was taken", rows[i]);
        assert_true(strncmp(e.text, "not JSON", 8) == 0);
    }
}

static void nesting_has_an_end(void **state) {
    char text[256];
    for (int depth = JSON_SCAN_DEPTH; depth <= JSON_SCAN_DEPTH + 1; depth++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        int r = json_scan(text, 2 * (size_t)depth, note, &b, &e);
        assert_int_equal(r >= 0, depth == JSON_SCAN_DEPTH);
    }
}

/* A long key must not equal a name that it begins with, and a long text is cut between its pieces. */
static void long_ones_are_cut(void **state) {
    AUTO(buf_done) struct buf text = {0}, b = {0};
    struct error e;
    buf_puts(&text, "{\"");
    for (int i = 0; i < 200; i++) buf_putc(&text, 'k');
    buf_puts(&text, "\":\"");
    for (int i = 0; i < 400; i++) buf_puts(&text, "\\u20ac");
    buf_puts(&text, "\"}");
    assert_int_equal(json_scan(text.s, text.len, note, &b, &e), 0);
    const char *slash = strchr(b.s, '/');
    assert_non_null(slash);
    assert_true(slash - b.s - 2 > JSON_SCAN_KEY);
    assert_int_equal(b.s[b.len - 2], '~');
    size_t len = b.len - 2 - (size_t)(slash + 2 - b.s);
    assert_int_equal(len % 3, 0);
    assert_true(len > JSON_SCAN_TEXT - 3 && len <= JSON_SCAN_TEXT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told),
        cmocka_unit_test(refused),
        cmocka_unit_test(nesting_has_an_end),
        cmocka_unit_test(long_ones_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
