/* Answers, whole and in every pair of pieces: what the body is, where it ends, and what is refused. */
#include "net/http_reader.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

#define MAX 64

static const struct {
    const char *text, *body;
    int status;
    bool is_whole, keeps;
    const char *rest; /* what is not of this answer */
} good[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",                                             "hello",                                                            200, true,  true,  ""    },
    {"HTTP/1.1 200 OK\r\ncontent-length:5  \r\n\r\nhelloHTTP",                                        "hello",                                                            200, true,  true,  "HTTP"},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",                                                     "",                                                                 200, true,  true,  ""    },
    {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",                    "{}",                                                               404, true,  false, ""    },
    {"HTTP/1.1 204 No Content\r\n\r\nx",                                                              "",                                                                 204, true,  true,  "x"   },
    {"HTTP/1.0 200 OK\r\n\r\nto the end",                                                             "to the end",                                                       200, false, false, ""    },
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",                       "a",                                                                200, true,  true,  ""    },
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789",
     200,                                                                                                                                                                      true,  true,  ""    },
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",                             "abc",                                                              200, false, true,  ""    },
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",                                "",                                                                 200, true,  true,  ""    },
    {"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n"
     "0123456789012345678901234567890123456789012345678901234567890123",                         "0123456789012345678901234567890123456789012345678901234567890123", 200, true,  true,  ""    },
};

static void good_ones(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        size_t len = strlen(good[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            AUTO(buf_done) struct buf body = {0};
            AUTO(http_reader_done) struct http_reader r = {0};
            struct error e = {0};
            long a = http_reader_take(&r, good[i].text, cut, MAX, &body, &e);
            assert_true(a >= 0);
            bool is_early = r.stage == HTTP_READER_WHOLE;
            long b = is_early ? 0 : http_reader_take(&r, good[i].text + cut, len - cut, MAX, &body, &e);
            if (b < 0) fail_msg("%s, cut at %zu: %s", good[i].text, cut, e.text);
            assert_int_equal(r.status, good[i].status);
            assert_int_equal(r.stage == HTTP_READER_WHOLE, good[i].is_whole);
            assert_int_equal(r.keeps_alive, good[i].keeps);
            assert_string_equal(body.s ? body.s : "", good[i].body);
            assert_string_equal(good[i].text + a + b, good[i].rest);
            bool ends = good[i].is_whole || strstr(good[i].text, "to the end");
            assert_int_equal(http_reader_end(&r, &e) == 0, ends);
        }
    }
}

static void bad_ones(void **state) {
    static const struct {
        const char *text;
        int want;
    } rows[] = {
        {"SSH-2.0-OpenSSH_9\r\n\r\n",                                                           -EPROTO    },
        {"HTTP/2 200 OK\r\n\r\n",                                                               -EPROTO    },
        {"HTTP/1.1 20 OK\r\n\r\n",                                                              -EPROTO    },
        {"HTTP/1.1 2000 OK\r\n\r\n",                                                            -EPROTO    },
        {"HTTP/1.1 100 Continue\r\n\r\n",                                                       -EPROTO    },
        {"HTTP/1.1 999 x\r\n\r\n",                                                              -EPROTO    },
        {"\r\n\r\n",                                                                            -EPROTO    },
        {"HTTP/1.1 200 OK\n\n",                                                                 -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",              -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",                                       -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n",                                      -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",                     -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",                                          -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\nx",                                      -EFBIG     },
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EINVAL    },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",                                  -EOPNOTSUPP},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", -EOPNOTSUPP},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",                         -EINVAL    },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n",                         -EFBIG     },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",                 -EFBIG     },
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",                       -EINVAL    },
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",                                                 -EINVAL    },
        {"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",                                               -EINVAL    },
        {"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",                                          -EINVAL    },
        {"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",                                  -EINVAL    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf body = {0};
        AUTO(http_reader_done) struct http_reader r = {0};
        struct error e = {0};
        long got = http_reader_take(&r, rows[i].text, strlen(rows[i].text), MAX, &body, &e);
        if (got != rows[i].want) fail_msg("%s: %ld %s", rows[i].text, got, e.text);
        assert_true(e.text[0]);
    }
}

/* Heads and bodies without an end stop at their limits, whatever the pieces. */
static void endless_ones(void **state) {
    static const char *const starts[] = {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 "};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        AUTO(buf_done) struct buf body = {0};
        AUTO(http_reader_done) struct http_reader r = {0};
        struct error e = {0};
        char more[1000];
        memset(more, 'a', sizeof more);
        long got = http_reader_take(&r, starts[i], strlen(starts[i]), 100000, &body, &e);
        int pieces = 0;
        for (; got >= 0 && pieces < 1000; pieces++) got = http_reader_take(&r, more, sizeof more, 100000, &body, &e);
        assert_true(got == -EFBIG || got == -E2BIG);
        assert_true(body.len <= 100000 && r.head.len <= HTTP_HEAD_MAX + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(bad_ones),
        cmocka_unit_test(endless_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
