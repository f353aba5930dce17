/* JSON in: what a configuration file may look like, and every way in which it may not. */
#include "tests/test.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_read.h"

static int note(void *ctx, const struct json_leaf *leaf, struct error *e) {
    static const char letters[] = {
        [JSON_LEAF_STRING] = 's', [JSON_LEAF_INT] = 'i',  [JSON_LEAF_REAL] = 'r', [JSON_LEAF_BOOL] = 'b',
        [JSON_LEAF_NULL] = 'n',   [JSON_LEAF_LIST] = 'l', [JSON_LEAF_EMPTY] = 'e'};
    buf_printf(ctx, "%s=%c:%s;", leaf->path, letters[leaf->type], leaf->text);
    return 0;
}

static void leaves(void **state) {
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"{}",                                                                ""                         },
        {"{\"a\":1}",                                                         "a=i:1;"                   },
        {"{\"a\":{\"b\":{\"c\":true}},\"d\":null}",                           "a.b.c=b:true;d=n:null;"   },
        {"{\"a.b\":1.5}",                                                     "a.b=r:1.5;"               },
        {"{\"z\":\"x\",\"a\":\"\"}",                                          "z=s:x;a=s:;"              },
        {"{\"g\":[0,\"GPU-1\",2]}",                                           "g=l:0,GPU-1,2;"           },
        {"{\"g\":[]}",                                                        "g=l:;"                    },
        {"{\"g\":{}}",                                                        "g=e:{};"                  },
        {"{\"a\":{\"b\":{}},\"c\":1}",                                        "a.b=e:{};c=i:1;"          },
        {"{\"a\":-9223372036854775808}",                                      "a=i:-9223372036854775808;"},
        {"{\"a\":\"\\u00fc\"}",                                               "a=s:\xc3\xbc;"            },
        {"\n {\"a\" : 1e3}\t\n",                                              "a=r:1000;"                },
        {"{\"1\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":1}}}}}}}}", "1.2.3.4.5.6.7.8=i:1;"     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        buf_puts(&b, "");
        int r = json_walk(rows[i].in, strlen(rows[i].in), note, &b, &e);
        if (r < 0) print_error("%s: %s\n", rows[i].in, e.text);
        assert_int_equal(r, 0);
        assert_string_equal(b.s, rows[i].want);
    }
}

static void refusals(void **state) {
#define TEXT(s) (s), sizeof(s) - 1
    static const struct {
        const char *name, *in;
        size_t len;
        const char *says;
    } rows[] = {
        {"nothing",              TEXT(""),                                                                          "line 1"                    },
        {"a list",               TEXT("[1]"),                                                                       "one JSON object"           },
        {"a number",             TEXT("1"),                                                                         ""                          },
        {"duplicate",            TEXT("{\"a\":1,\"a\":2}"),                                                         "duplicate"                 },
        {"duplicate in a group", TEXT("{\"g\":{\"a\":1,\"a\":2}}"),                                                 "duplicate"                 },
        {"two spellings",        TEXT("{\"a\":{\"b\":1},\"a.b\":2}"),                                               "a.b: is given twice"       },
        {"two spellings, empty", TEXT("{\"a\":{\"b\":{}},\"a.b\":2}"),                                              "a.b: is given twice"       },
        {"empty key",            TEXT("{\"\":{\"wait_ms\":5}}"),                                                    "empty key"                 },
        {"empty key inside",     TEXT("{\"g\":{\"\":5}}"),                                                          "g: an empty key"           },
        {"trailing text",        TEXT("{\"a\":1} x"),                                                               "line 1"                    },
        {"two documents",        TEXT("{}\n{}"),                                                                    "line 2"                    },
        {"trailing comma",       TEXT("{\"a\":1,}"),                                                                "line 1"                    },
        {"single quotes",        TEXT("{'a':1}"),                                                                   "line 1"                    },
        {"a comment",            TEXT("{ // no\n}"),                                                                "line 1"                    },
        {"NaN",                  TEXT("{\"a\":NaN}"),                                                               "line 1"                    },
        {"number too large",     TEXT("{\"a\":99999999999999999999}"),                                              "big"                       },
        {"real too large",       TEXT("{\"a\":1e999}"),                                                             "real number overflow"      },
        {"not closed",           TEXT("{\"a\":1"),                                                                  "line 1"                    },
        {"NUL in a text",        TEXT("{\"a\":\"x\\u0000y\"}"),                                                     "\\u0000"                   },
        {"NUL in a key",         TEXT("{\"a\\u0000\":1}"),                                                          ""                          },
        {"NUL in the file",      TEXT("{\"a\":1}\0"),                                                               ""                          },
        {"NUL inside",           TEXT("{\"a\"\0:1}"),                                                               ""                          },
        {"bad UTF-8",            TEXT("{\"a\":\"\xff\"}"),                                                          "decode"                    },
        {"byte order mark",      TEXT("\xef\xbb\xbf{}"),                                                            "line 1"                    },
        {"object in a list",     TEXT("{\"g\":[{\"a\":1}]}"),                                                       "g: a list here holds plain"},
        {"list in a list",       TEXT("{\"g\":[[1]]}"),                                                             "g: a list here holds plain"},
        {"comma in an item",     TEXT("{\"g\":[\"0,1\"]}"),                                                         "g: an item of this list"   },
        {"nine deep",            TEXT("{\"1\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":{\"9\":1}}}}}}}}}"),
         "1.2.3.4.5.6.7.8: nested"                                                                                                              },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        int r = json_walk(rows[i].in, rows[i].len, note, &b, &e);
        if (r != -EINVAL || !strstr(e.text, rows[i].says)) print_error("%s: %d %s\n", rows[i].name, r, e.text);
        assert_int_equal(r, -EINVAL);
        assert_non_null(strstr(e.text, rows[i].says));
        assert_true(e.text[0]);
    }
}

static void floods(void **state) {
    AUTO(buf_done) struct buf deep = {0}, wide = {0}, sink = {0};
    struct error e = {0};
    for (int i = 0; i < 100000; i++) buf_puts(&deep, "{\"a\":");
    assert_int_equal(json_walk(deep.s, deep.len, note, &sink, &e), -EINVAL);
    buf_puts(&wide, "{");
    for (int i = 0; i <= JSON_LEAVES_MAX; i++) buf_printf(&wide, "%s\"k%d\":1", i ? "," : "", i);
    buf_puts(&wide, "}");
    assert_int_equal(json_walk(wide.s, wide.len, note, &sink, &e), -EINVAL);
    assert_non_null(strstr(e.text, "more than 4096 keys"));
}

static int stop(void *ctx, const struct json_leaf *leaf, struct error *e) {
    int *left = ctx;
    return --*left ? 0 : fail(e, -ENOENT, "stopped at %s", leaf->path);
}

static void a_refused_leaf_ends_the_walk(void **state) {
    struct error e = {0};
    int left = 2;
    assert_int_equal(json_walk(TEXT("{\"a\":1,\"b\":{\"c\":1},\"d\":1}"), stop, &left, &e), -ENOENT);
    assert_string_equal(e.text, "stopped at b.c");
}

static int name_and_text(void *ctx, const struct json_leaf *leaf, struct error *e) {
    buf_printf(ctx, "%s=%s;", leaf->path, leaf->text);
    return 0;
}

static void next_row(void *ctx) { buf_putc(ctx, '|'); }

static void lists_of_objects(void **state) {
    static const struct {
        const char *text, *want; /* NULL: refused */
        int rows;
    } rows[] = {
        {"{\"list\":[]}",                                       "",                    0},
        {"{\"list\":[{\"a\":1},{\"a\":2,\"b\":{\"c\":null}}]}", "|a=1;|a=2;b.c=null;",
         2                                                                              }, /* the same key in two rows */
        {"{\"more\":{\"a\":[[1]]},\"list\":[{}]}",              "|",                   1}, /* what stands beside it is passed over */
        {"{\"list\":[1]}",                                      NULL,                  0},
        {"{\"list\":{}}",                                       NULL,                  0},
        {"{}",                                                  NULL,                  0},
        {"[]",                                                  NULL,                  0},
        {"{\"list\":[{\"a\":1,\"a\":2}]}",                      NULL,                  0},
        {"{\"list\":[{\"a\":[{}]}]}",                           NULL,                  0},
        {"{\"list\":[{\"a\":1}",                                NULL,                  0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf got = {0};
        struct error e = {0};
        buf_puts(&got, "");
        int r = json_walk_list(rows[i].text, strlen(rows[i].text), "list", next_row, name_and_text, &got, &e);
        if (rows[i].want && (r != rows[i].rows || strcmp(got.s, rows[i].want) != 0))
            fail_msg("%s: %d %s (%s)", rows[i].text, r, got.s, e.text);
        if (!rows[i].want && (r != -EINVAL || !e.text[0])) fail_msg("%s: %d %s", rows[i].text, r, e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves),           cmocka_unit_test(refusals),
        cmocka_unit_test(floods),           cmocka_unit_test(a_refused_leaf_ends_the_walk),
        cmocka_unit_test(lists_of_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
