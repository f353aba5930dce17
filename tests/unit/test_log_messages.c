/* A container's log, cut into pieces of every size: what it wrote comes out, and once, however often its engine ends the answer. */
#include "node/log_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "tests/test.h"

#define T0 "2026-11-15T20:22:33.000000001Z "
#define T1 "2026-11-15T20:22:33.000000002Z "
#define T2 "2026-11-15T21:22:33.000000003+01:00 "

static const struct message {
    const char *stamp, *text;
} messages[] = {
    {T0, "one\n"             },
    {T0, "two\n"             },
    {T0, "two\n"             },
    {T1, "2026-11-15 three\n"},
    {T1, "\n"                },
    {T1, T0 "said so\n"      }, /* what looks like a time is the container's own word */
    {T2, "four\r\n"          },
    {T2, "five\n"            },
};

static void add(struct buf *b, const struct message *m, bool is_tty) {
    size_t n = strlen(m->stamp) + strlen(m->text);
    const char head[8] = {1, 0, 0, 0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    if (!is_tty) buf_add(b, head, sizeof head);
    buf_puts(b, m->stamp);
    buf_puts(b, m->text);
}

static void take_in_pieces(struct log_messages *m, const struct buf *from, size_t at, size_t piece, struct buf *ret) {
    for (; at < from->len; at += piece) {
        size_t n = from->len - at < piece ? from->len - at : piece;
        log_messages_take(m, from->s + at, n, ret);
    }
}

static void want_all(struct buf *ret) {
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) buf_puts(ret, messages[i].text);
}

static void pieces(void **state) {
    AUTO(buf_done) struct buf want = {0};
    want_all(&want);
    for (int is_tty = 0; is_tty < 2; is_tty++)
        for (size_t piece = 1; piece < 100; piece++) {
            AUTO(buf_done) struct buf raw = {0}, got = {0};
            struct log_messages m = {.is_tty = is_tty};
            for (size_t i = 0; i < ARRAY_LEN(messages); i++) add(&raw, &messages[i], is_tty);
            take_in_pieces(&m, &raw, 0, piece, &got);
            assert_string_equal(got.s, want.s);
            assert_true(m.has_news && m.newest_ns % NS_PER_S == 3);
        }
}

/* The answer ends after any byte; the next one is what has the newest time, or a newer one. */
static void ended_anywhere(void **state) {
    AUTO(buf_done) struct buf want = {0};
    want_all(&want);
    for (int is_tty = 0; is_tty < 2; is_tty++) {
        AUTO(buf_done) struct buf raw = {0};
        for (size_t i = 0; i < ARRAY_LEN(messages); i++) add(&raw, &messages[i], is_tty);
        for (size_t end = 0; end <= raw.len; end++) {
            AUTO(buf_done) struct buf got = {0}, rest = {0};
            struct log_messages m = {.is_tty = is_tty};
            log_messages_take(&m, raw.s, end, &got);
            size_t from = m.newest_ns == 0 ? 0 : m.newest_ns % NS_PER_S == 1 ? 0 : m.newest_ns % NS_PER_S == 2 ? 3 : 6;
            log_messages_again(&m);
            assert_false(m.has_news);
            for (size_t i = from; i < ARRAY_LEN(messages); i++) add(&rest, &messages[i], is_tty);
            take_in_pieces(&m, &rest, 0, 7, &got);
            if (strcmp(got.s, want.s) != 0)
                fail_msg("after %zu bytes%s: %s", end, is_tty ? " of a terminal" : "", got.s);
            log_messages_again(&m); /* and nothing more */
            AUTO(buf_done) struct buf last = {0};
            for (size_t i = 6; i < ARRAY_LEN(messages); i++) add(&last, &messages[i], is_tty);
            size_t before = got.len;
            take_in_pieces(&m, &last, 0, 64, &got);
            assert_true(got.len == before && !m.has_news);
        }
    }
}

/* A line without an end is many messages. */
static void long_lines(void **state) {
    for (int is_tty = 0; is_tty < 2; is_tty++) {
        AUTO(buf_done) struct buf raw = {0}, want = {0}, got = {0};
        struct log_messages m = {.is_tty = is_tty};
        char *text = malloc(16385);
        memset(text, 'x', 16384);
        text[16384] = 0;
        for (int i = 0; i < 3; i++) {
            add(&raw, &(struct message){i ? T1 : T0, text}, is_tty);
            buf_puts(&want, text);
        }
        add(&raw, &(struct message){T2, "end\n"}, is_tty);
        buf_puts(&want, "end\n");
        take_in_pieces(&m, &raw, 0, 1000, &got);
        assert_string_equal(got.s, want.s);
        free(text);
    }
}

static void without_times(void **state) {
    AUTO(buf_done) struct buf raw = {0}, got = {0};
    struct log_messages m = {.is_tty = true};
    buf_puts(&raw, "no time\nnor here: a word that is longer than any time may ever "
                   "be\nabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
    take_in_pieces(&m, &raw, 0, 5, &got);
    assert_string_equal(got.s, raw.s);
    assert_int_equal(m.newest_ns, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces), cmocka_unit_test(ended_anywhere),
                                       cmocka_unit_test(long_lines), cmocka_unit_test(without_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
