/* WebSocket frames: what RFC 6455 gives as examples, what it forbids, and the same messages however the bytes are cut. */
#include "net/websocket.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

static void accepts(void **state) {
    char text[WEBSOCKET_ACCEPT];
    websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", text); /* RFC 6455, 1.3 */
    assert_string_equal(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

/* A client's frame, with a mask. */
static void put(struct buf *b, int first, size_t length, const char *bytes, size_t n) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    buf_putc(b, (char)first);
    if (length < 126) {
        buf_putc(b, (char)(0x80 | length));
    } else if (length < 65536) {
        buf_putc(b, (char)0xfe);
        buf_putc(b, (char)(length >> 8));
        buf_putc(b, (char)length);
    } else {
        buf_putc(b, (char)0xff);
        for (int i = 7; i >= 0; i--) buf_putc(b, (char)((uint64_t)length >> (8 * i)));
    }
    buf_add(b, mask, 4);
    for (size_t i = 0; i < n; i++) buf_putc(b, (char)(bytes[i] ^ mask[i & 3]));
}

struct heard {
    struct buf text;
    int result, code;
};

static void hear(const struct buf *bytes, size_t step, struct heard *h) {
    struct websocket w = {.max = 70000};
    struct websocket_message m;
    struct error e = {0};
    *h = (struct heard){.code = 0};
    for (size_t at = 0; at < bytes->len && h->result >= 0;) {
        size_t taken, n = bytes->len - at < step ? bytes->len - at : step;
        h->result = websocket_take(&w, bytes->s + at, n, &taken, &m, &h->code, &e);
        assert_true(taken <= n);
        assert_true(h->result != 0 || taken == n);
        at += taken;
        if (h->result > 0) {
            buf_printf(&h->text, "%d:", m.opcode == WEBSOCKET_CLOSE ? m.code : (int)m.opcode);
            buf_add(&h->text, m.bytes, m.len > 40 ? 40 : m.len);
            buf_puts(&h->text, ";");
        }
    }
    if (h->result < 0) assert_true(e.text[0]);
    websocket_done(&w);
}

/* Rows of frames: first byte, length as it is told (0: as it is), bytes. */
static void frames(void **state) {
    static const struct {
        const char *name;
        struct {
            int first;
            const char *bytes;
            size_t n;
        } of[4];
        const char *want;
        int code; /* 0: it is good */
    } rows[] = {
        {"a text",                   {{0x81, "Hello", 5}},                                "1:Hello;",     0   },
        {"an empty one",             {{0x81, "", 0}},                                     "1:;",          0   },
        {"binary",                   {{0x82, "\0\1", 2}},                                 NULL,           0   },
        {"in parts",                 {{0x01, "Hel", 3}, {0x80, "lo", 2}},                 "1:Hello;",     0   },
        {"a ping between the parts", {{0x01, "Hel", 3}, {0x89, "x", 1}, {0x80, "lo", 2}}, "9:x;1:Hello;", 0   },
        {"a character in two parts", {{0x01, "\xc3", 1}, {0x80, "\xa9", 1}},              "1:\xc3\xa9;",  0   },
        {"two",                      {{0x81, "a", 1}, {0x81, "b", 1}},                    "1:a;1:b;",     0   },
        {"the end",
         {{0x88,
           "\x03\xe8"
           "bye",
           5}},
         "1000:bye;",                                                                                     0   },
        {"the end without a word",   {{0x88, "", 0}},                                     "1005:;",       0   },
        {"reserved bits",            {{0xc1, "a", 1}},                                    "",             1002},
        {"an unknown kind",          {{0x83, "a", 1}},                                    "",             1002},
        {"a ping in parts",          {{0x09, "a", 1}},                                    "",             1002},
        {"the rest of nothing",      {{0x80, "a", 1}},                                    "",             1002},
        {"a message within another", {{0x01, "a", 1}, {0x81, "b", 1}},                    "",             1002},
        {"no UTF-8",                 {{0x81, "\xff", 1}},                                 "",             1007},
        {"half a character",         {{0x81, "a\xc3", 2}},                                "",             1007},
        {"an end of one byte",       {{0x88, "a", 1}},                                    "",             1002},
        {"an end with 1005",         {{0x88, "\x03\xed", 2}},                             "",             1002},
        {"an end with bad words",    {{0x88, "\x03\xe8\xff", 3}},                         "",             1007},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        for (size_t k = 0; k < 4 && rows[i].of[k].first; k++)
            put(&b, rows[i].of[k].first, rows[i].of[k].n, rows[i].of[k].bytes, rows[i].of[k].n);
        for (size_t step = 1; step <= b.len; step++) {
            struct heard h;
            hear(&b, step, &h);
            if (rows[i].code ? h.result != -EPROTO || h.code != rows[i].code
                             : h.result < 0 || (rows[i].want && strcmp(h.text.s, rows[i].want) != 0))
                fail_msg("%s, cut every %zu: %d, code %d, %s", rows[i].name, step, h.result, h.code,
                         h.text.s ? h.text.s : "");
            buf_done(&h.text);
        }
    }
}

static void lengths(void **state) {
    static char large[70001];
    static const struct {
        size_t told;
        int result;
    } rows[] = {
        {125,             1     },
        {126,             1     },
        {65535,           1     },
        {65536,           1     },
        {70000,           1     },
        {70001,           -EFBIG},
        {(size_t)1 << 40, -EFBIG}
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct heard h;
        put(&b, 0x82, rows[i].told, large, rows[i].told < sizeof large ? rows[i].told : 0);
        hear(&b, 4096, &h);
        assert_int_equal(h.result, rows[i].result);
        if (rows[i].result < 0) assert_int_equal(h.code, WEBSOCKET_TOO_BIG);
        buf_done(&h.text);
    }
    /* a message may not grow beyond the bound by its parts either */
    AUTO(buf_done) struct buf b = {0};
    struct heard h;
    put(&b, 0x02, 65536, large, 65536);
    put(&b, 0x80, 65536, large, 65536);
    hear(&b, 4096, &h);
    assert_int_equal(h.result, -EFBIG);
    buf_done(&h.text);
    /* no mask; a length in more bytes than it needs; a ping that is too long */
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {"\x81\x01"
         "a",                       3 },
        {"\x82\xfe\0\x7d....",               8 },
        {"\x82\xff\0\0\0\0\0\0\x7f\xff....", 14},
        {"\x89\xfe\0\x7e....",               8 }
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct buf one = {.s = (char *)(uintptr_t)bad[i].bytes, .len = bad[i].n};
        hear(&one, 1, &h);
        assert_int_equal(h.result, -EPROTO);
        assert_int_equal(h.code, WEBSOCKET_PROTOCOL);
    }
}

static void puts_frames(void **state) {
    static char large[70000];
    static const struct {
        size_t n, head;
    } rows[] = {
        {0,     2 },
        {125,   2 },
        {126,   4 },
        {65535, 4 },
        {65536, 10},
        {70000, 10}
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        websocket_put(&b, WEBSOCKET_BINARY, large, rows[i].n);
        assert_int_equal(b.len, rows[i].head + rows[i].n);
        assert_int_equal((unsigned char)b.s[0], 0x82);
        assert_int_equal((unsigned char)b.s[1], rows[i].n < 126 ? rows[i].n : rows[i].n < 65536 ? 126 : 127);
    }
    char reason[201] = "";
    AUTO(buf_done) struct buf b = {0};
    for (int i = 0; i < 100; i++) memcpy(reason + 2 * i, "\xc3\xa9", 2);
    websocket_put_close(&b, WEBSOCKET_POLICY, reason);
    assert_int_equal(b.len, 2 + 124); /* a code and 61 whole characters */
    assert_int_equal((unsigned char)b.s[2] << 8 | (unsigned char)b.s[3], WEBSOCKET_POLICY);
}

static void asked(void **state) {
#define GOOD "Host: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
    static const struct {
        const char *head;
        bool is_good;
    } rows[] = {
        {"GET / HTTP/1.1\r\n" GOOD KEY VERSION "\r\n",                              true },
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n",  false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n" KEY VERSION "\r\n", false},
        {"POST / HTTP/1.1\r\n" GOOD KEY VERSION "\r\n",                             false},
        {"GET / HTTP/1.1\r\n" GOOD VERSION "\r\n",                                  false},
        {"GET / HTTP/1.1\r\n" GOOD "Sec-WebSocket-Key: short\r\n" VERSION "\r\n",   false},
        {"GET / HTTP/1.1\r\n" GOOD KEY "Sec-WebSocket-Version: 8\r\n\r\n",          false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_head h;
        struct error e = {0};
        char bytes[512];
        strcpy(bytes, rows[i].head);
        assert_int_equal(http_head_parse(bytes, strlen(bytes), &h, &e), 0);
        assert_int_equal(websocket_asked(&h, &e) >= 0, rows[i].is_good);
        assert_int_equal(e.text[0] == 0, rows[i].is_good);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),     cmocka_unit_test(frames), cmocka_unit_test(lengths),
        cmocka_unit_test(puts_frames), cmocka_unit_test(asked),
    };
    return cmocka_run_group_tests_name("websocket", tests, NULL, NULL);
}
