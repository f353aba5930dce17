/* The request parser: what is taken, and what each kind of ambiguity is refused with. */
#include "net/http_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define HOST "Host: x\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST

static int parse(const char *text, struct http_head *h, char *room, size_t size, struct error *e) {
    size_t len = strlen(text), at = 0;
    assert_true(len < size);
    memcpy(room, text, len + 1);
    long end = http_head_find(room, len, &at, e);
    if (end < 0) return (int)end;
    if (end == 0) return -EAGAIN;
    return http_head_parse(room, (size_t)end, h, e);
}

static void heads(void **state) {
    static const struct {
        const char *name, *text;
        int want;
    } rows[] = {
        {"plain",                      GET "\r\n",                                                                                     0               },
        {"lower-case host",            "GET / HTTP/1.1\r\nhost: x:7000\r\n\r\n",                                                       0               },
        {"version 1.0 without a host", "GET /metrics HTTP/1.0\r\n\r\n",                                                                0               },
        {"a body",                     "POST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n",                                        0               },
        {"chunked",                    "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n",                               0               },
        {"half",                       "GET / HTTP/1.1\r\nHos",                                                                        -EAGAIN         },
        {"no empty line",              GET,                                                                                            -EAGAIN         },
        {"both lengths",               "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",           -EINVAL         },
        {"two lengths",                "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",                    -EINVAL         },
        {"lengths in a list",          "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n",                                      -EINVAL         },
        {"a signed length",            "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n",                                        -EINVAL         },
        {"a negative length",          "POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n",                                        -EINVAL         },
        {"an empty length",            "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n",                                           -EINVAL         },
        {"a hexadecimal length",       "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n",                                       -EINVAL         },
        {"a huge length",              "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n",                   -EFBIG          },
        {"two codings",                "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",                          -EOPNOTSUPP     },
        {"coding twice",               "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
         -EINVAL                                                                                                                                       },
        {"coding in 1.0",              "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",                                        -EINVAL         },
        {"no host",                    "GET / HTTP/1.1\r\n\r\n",                                                                       -EINVAL         },
        {"two hosts",                  "GET / HTTP/1.1\r\n" HOST HOST "\r\n",                                                          -EINVAL         },
        {"a host with a path",         "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",                                                          -EINVAL         },
        {"folded",                     GET "A: b\r\n c\r\n\r\n",                                                                       -EINVAL         },
        {"folded by a tab",            GET "A: b\r\n\tc\r\n\r\n",                                                                      -EINVAL         },
        {"a blank before the colon",   GET "A : b\r\n\r\n",                                                                            -EINVAL         },
        {"no name",                    GET ": b\r\n\r\n",                                                                              -EINVAL         },
        {"no colon",                   GET "abc\r\n\r\n",                                                                              -EINVAL         },
        {"a bare line feed",           "GET / HTTP/1.1\nHost: x\n\n",                                                                  -EINVAL         },
        {"a bare carriage return",     GET "A: b\rc\r\n\r\n",                                                                          -EINVAL         },
        {"a control character",        GET "A: b\001c\r\n\r\n",                                                                        -EINVAL         },
        {"a byte above 127",           GET "A: b\xffz\r\n\r\n",                                                                        -EINVAL         },
        {"delete",                     GET "A: b\x7f\r\n\r\n",                                                                         -EINVAL         },
        {"absolute form",              "GET http://x/ HTTP/1.1\r\n" HOST "\r\n",                                                       -EINVAL         },
        {"asterisk form",              "GET * HTTP/1.1\r\n" HOST "\r\n",                                                               -EINVAL         },
        {"authority form",             "GET x:80 HTTP/1.1\r\n" HOST "\r\n",                                                            -EINVAL         },
        {"a fragment",                 "GET /#a HTTP/1.1\r\n" HOST "\r\n",                                                             -EINVAL         },
        {"a raw byte in the path",     "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n",                                                       -EINVAL         },
        {"an encoded slash",           "GET /a%2Fb HTTP/1.1\r\n" HOST "\r\n",                                                          -EINVAL         },
        {"an encoded NUL",             "GET /a%00b HTTP/1.1\r\n" HOST "\r\n",                                                          -EINVAL         },
        {"half an escape",             "GET /a%4 HTTP/1.1\r\n" HOST "\r\n",                                                            -EINVAL         },
        {"no escape",                  "GET /a%zz HTTP/1.1\r\n" HOST "\r\n",                                                           -EINVAL         },
        {"not UTF-8",                  "GET /a%ff HTTP/1.1\r\n" HOST "\r\n",                                                           -EINVAL         },
        {"dots",                       "GET /a/../b HTTP/1.1\r\n" HOST "\r\n",                                                         -EINVAL         },
        {"encoded dots",               "GET /a/%2e%2e/b HTTP/1.1\r\n" HOST "\r\n",                                                     -EINVAL         },
        {"dots at the end",            "GET /a/.. HTTP/1.1\r\n" HOST "\r\n",                                                           -EINVAL         },
        {"two blanks",                 "GET  / HTTP/1.1\r\n" HOST "\r\n",                                                              -EINVAL         },
        {"a blank at the end",         "GET / HTTP/1.1 \r\n" HOST "\r\n",                                                              -EINVAL         },
        {"no version",                 "GET /\r\n" HOST "\r\n",                                                                        -EINVAL         },
        {"another protocol",           "GET / ICY/1.1\r\n" HOST "\r\n",                                                                -EINVAL         },
        {"version 2",                  "PRI * HTTP/2.0\r\n\r\n",                                                                       -EPROTONOSUPPORT},
        {"an unknown method",          "BREW / HTTP/1.1\r\n" HOST "\r\n",                                                              -ENOSYS         },
        {"a lower-case method",        "get / HTTP/1.1\r\n" HOST "\r\n",                                                               -ENOSYS         },
        {"no method",                  " / HTTP/1.1\r\n" HOST "\r\n",                                                                  -EINVAL         },
        {"an expectation",             GET "Expect: tea\r\n\r\n",                                                                      -EDOM           },
        {"an empty line first",        "\r\n" GET "\r\n",                                                                              -EINVAL         },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char room[1024];
        struct http_head h;
        struct error e = {0};
        int r = parse(rows[i].text, &h, room, sizeof room, &e);
        if (r != rows[i].want) print_error("%s: %d, not %d: %s\n", rows[i].name, r, rows[i].want, e.text);
        assert_int_equal(r, rows[i].want);
        assert_true(r == 0 || r == -EAGAIN || e.text[0]);
    }
}

static void meanings(void **state) {
    char room[1024];
    struct http_head h;
    struct error e;
    assert_int_equal(
        parse("PUT /gr%C3%BCn/a?x=1&y=%20 HTTP/1.1\r\nHOST: x\r\nX-A:   b c \t\r\nX-B:\r\nContent-Length: 012\r\n"
              "Expect: 100-continue\r\nConnection: Keep-Alive, Close\r\n\r\n",
              &h, room, sizeof room, &e),
        0);
    assert_int_equal(h.method, HTTP_PUT);
    assert_string_equal(h.path, "/gr\xc3\xbcn/a");
    assert_string_equal(h.query, "x=1&y=%20");
    assert_int_equal(h.length, 12);
    assert_true(h.expects_continue);
    assert_false(h.keeps_alive);
    assert_string_equal(http_field(&h, "x-a"), "b c");
    assert_string_equal(http_field(&h, "x-b"), "");
    assert_null(http_field(&h, "x-c"));
    assert_int_equal(h.count, 6);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &h, room, sizeof room, &e), 0);
    assert_true(h.keeps_alive);
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &h, room, sizeof room, &e), 0);
    assert_false(h.keeps_alive);
}

static void limits(void **state) {
    AUTO(buf_done) struct buf text = {0};
    struct http_head h;
    struct error e;
    size_t at = 0;
    buf_puts(&text, GET);
    for (int i = 0; i < HTTP_FIELDS_MAX; i++) buf_printf(&text, "A%d: b\r\n", i);
    buf_puts(&text, "\r\n");
    long end = http_head_find(text.s, text.len, &at, &e);
    assert_int_equal(end, text.len);
    assert_int_equal(http_head_parse(text.s, text.len, &h, &e), -E2BIG);

    buf_clear(&text);
    buf_puts(&text, GET "A: ");
    while (text.len < HTTP_HEAD_MAX + 10) buf_putc(&text, 'a');
    at = 0;
    assert_int_equal(http_head_find(text.s, HTTP_HEAD_MAX - 1, &at, &e), 0);
    assert_int_equal(http_head_find(text.s, text.len, &at, &e), -E2BIG);
}

/* A head that comes byte by byte is found at the same place, and each byte is looked at once. */
static void pieces(void **state) {
    static const char text[] = GET "A: b\r\n\r\nGET";
    struct error e;
    size_t at = 0, whole = sizeof text - 4;
    for (size_t n = 0; n < whole; n++) {
        assert_int_equal(http_head_find(text, n, &at, &e), 0);
        assert_true(at + 1 >= n);
    }
    assert_int_equal(http_head_find(text, sizeof text - 1, &at, &e), whole);
}

static void chunks(void **state) {
    static const struct {
        const char *name, *text, *body;
        long want; /* bytes taken, or a negative errno */
    } rows[] = {
        {"two",                     "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET",     "abc0123456789", 28     },
        {"none",                    "0\r\n\r\n",                                       "",              5      },
        {"zeros before",            "0003\r\nabc\r\n0\r\n\r\n",                        "abc",           16     },
        {"half",                    "3\r\nab",                                         "ab",            5      },
        {"an extension",            "3;a=b\r\nabc\r\n0\r\n\r\n",                       NULL,            -EINVAL},
        {"no size",                 "\r\nabc\r\n0\r\n\r\n",                            NULL,            -EINVAL},
        {"a sign",                  "+3\r\nabc\r\n0\r\n\r\n",                          NULL,            -EINVAL},
        {"a prefix",                "0x3\r\nabc\r\n0\r\n\r\n",                         NULL,            -EINVAL},
        {"a blank",                 " 3\r\nabc\r\n0\r\n\r\n",                          NULL,            -EINVAL},
        {"a bare line feed",        "3\nabc\r\n0\r\n\r\n",                             NULL,            -EINVAL},
        {"too short",               "3\r\nabcd\r\n0\r\n\r\n",                          NULL,            -EINVAL},
        {"a trailer",               "0\r\nA: b\r\n\r\n",                               NULL,            -EINVAL},
        {"too many digits",         "000000003\r\nabc\r\n0\r\n\r\n",                   NULL,            -EFBIG },
        {"over the limit",          "21\r\nabc",                                       NULL,            -EFBIG },
        {"all of it, and one more", "20\r\n01234567890123456789012345678901\r\n1\r\n", NULL,            -EFBIG },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t step = 1; step <= strlen(rows[i].text); step++) {
            AUTO(buf_done) struct buf body = {0};
            struct http_chunks c = {0};
            struct error e;
            long taken = 0, r = 0;
            buf_puts(&body, "");
            for (size_t at = 0; at < strlen(rows[i].text) && r >= 0 && c.state != HTTP_CHUNKS_END; at += step) {
                size_t n = strlen(rows[i].text) - at;
                r = http_chunks_take(&c, rows[i].text + at, n < step ? n : step, 32, &body, &e);
                taken += r;
            }
            if (r < 0) taken = r;
            if (taken != rows[i].want) print_error("%s by %zu: %ld\n", rows[i].name, step, taken);
            assert_int_equal(taken, rows[i].want);
            if (rows[i].body) assert_string_equal(body.s, rows[i].body);
        }
    }
}

static void queries(void **state) {
    AUTO(buf_done) struct buf name = {0}, value = {0};
    struct error e;
    const char *at = "a=1+2&&b&c=%26%3D&=x";
    static const char *const want[][2] = {
        {"a", "1 2"},
        {"b", ""   },
        {"c", "&=" },
        {"",  "x"  }
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(http_query_next(&at, &name, &value, &e), 1);
        assert_string_equal(name.s, want[i][0]);
        assert_string_equal(value.s, want[i][1]);
    }
    assert_int_equal(http_query_next(&at, &name, &value, &e), 0);
    at = "a=%f";
    assert_int_equal(http_query_next(&at, &name, &value, &e), -EINVAL);
    at = "a=%c3";
    assert_int_equal(http_query_next(&at, &name, &value, &e), -EINVAL);
}

/* Nothing of what lay in memory before. */
static void empty_values(void **state) {
    static const char *const rows[] = {"node=", "node", "=", "node=&x"};
    struct error e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *dirt[16];
        for (size_t k = 0; k < ARRAY_LEN(dirt); k++)
            dirt[k] = strdup("0123456789012345678901234567890123456789012345678901234567");
        for (size_t k = 0; k < ARRAY_LEN(dirt); k++) free(dirt[k]);
        AUTO(buf_done) struct buf name = {0}, value = {0};
        const char *at = rows[i];
        assert_int_equal(http_query_next(&at, &name, &value, &e), 1);
        assert_int_equal(strlen(name.s), name.len);
        assert_string_equal(value.s, "");
    }
}

static void lists(void **state) {
    assert_true(http_list_has("gzip, deflate, br", "gzip"));
    assert_true(http_list_has("br;q=1.0 , GZIP;q=0.5", "gzip"));
    assert_false(http_list_has("gzip;q=0", "gzip"));
    assert_false(http_list_has("gzip;q=0.0, br", "gzip"));
    assert_false(http_list_has("x-gzip", "gzip"));
    assert_false(http_list_has("", "gzip"));
    assert_false(http_list_has(NULL, "gzip"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),  cmocka_unit_test(meanings), cmocka_unit_test(limits), cmocka_unit_test(pieces),
        cmocka_unit_test(chunks), cmocka_unit_test(queries),  cmocka_unit_test(lists),  cmocka_unit_test(empty_values),
    };
    return cmocka_run_group_tests_name("http_parse", tests, NULL, NULL);
}
