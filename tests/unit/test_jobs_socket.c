/* What callers and the node say about jobs: what goes in comes out, what is cut or lies about its sizes is refused. */
#include "model/jobs_socket.h"

#include <errno.h>
#include <string.h>

#include "model/wire_code.h"
#include "tests/test.h"

static struct wire_frame only_frame(const struct buf *b) {
    struct wire_frame f = {0};
    struct error e;
    assert_int_equal(wire_frame(b->s, b->len, &f, &e), b->len);
    return f;
}

static const char environment[] = "HOME=/home/ada\0LANG=C\0EMPTY=";

static void some_submit(struct buf *b) {
    const struct jobs_submit s = {
        .request = 1ull << 63,
        .umask = 027,
        .cwd = "/home/ada/a b",
        .environment = {.s = environment, .len = sizeof environment, .count = 3},
        .count = 2
    };
    size_t from = jobs_begin_submit(b, &s);
    jobs_add_submit(b, "one", 3);
    jobs_add_submit(b, "second", 6);
    wire_end(b, from);
}

static void submit_comes_out(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct jobs_submit got;
    struct error e;
    const uint8_t *record;
    size_t len;
    some_submit(&b);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(jobs_get_submit(&f, &got, &e), 0);
    assert_true(got.request == 1ull << 63);
    assert_int_equal(got.umask, 027);
    assert_string_equal(got.cwd, "/home/ada/a b");
    assert_int_equal(got.environment.count, 3);
    assert_memory_equal(got.environment.s, environment, sizeof environment);
    assert_true(jobs_next_submit(&got, &record, &len));
    assert_memory_equal(record, "one", len);
    assert_true(jobs_next_submit(&got, &record, &len));
    assert_memory_equal(record, "second", len);
    assert_false(jobs_next_submit(&got, &record, &len));
}

static void cut_submit_is_refused(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct jobs_submit got;
    struct error e;
    some_submit(&b);
    struct wire_frame f = only_frame(&b);
    for (size_t n = 0; n < f.len; n++) {
        struct wire_frame cut = {.type = f.type, .version = f.version, .body = f.body, .len = n};
        assert_int_equal(jobs_get_submit(&cut, &got, &e), -EPROTO);
    }
    f.version = 2;
    assert_int_equal(jobs_get_submit(&f, &got, &e), -EPROTO);
}

static void lies_about_words(void **state) {
    static const struct {
        const char *name, *words;
        size_t len;
        unsigned count;
    } rows[] = {
        {"more than there are",   "A=1",      3 + 1, 2},
        {"fewer than there are",  "A=1\0B=2", 8,     1},
        {"the last has no end",   "A=1\0B=2", 7,     2},
        {"words without a count", "A=1",      4,     0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct jobs_submit got, s = {
                                    .cwd = "/", .environment = {rows[i].words, rows[i].len, rows[i].count}
        };
        struct error e;
        wire_end(&b, jobs_begin_submit(&b, &s));
        struct wire_frame f = only_frame(&b);
        if (jobs_get_submit(&f, &got, &e) != -EPROTO) fail_msg("%s: taken", rows[i].name);
    }
}

static void others_come_out(void **state) {
    AUTO(buf_done) struct buf b = {0};
    const struct jobs_follow follow = {7, 1ll << 40, 99, true, 3, 1ull << 41};
    const struct jobs_signal term = {8, 17, 2, 15};
    struct jobs_follow got_follow = {0};
    struct jobs_signal got_signal = {0};
    struct error e;
    jobs_put_follow(&b, &follow);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(jobs_get_follow(&f, &got_follow, &e), 0);
    assert_true(got_follow.request == 7 && got_follow.job == 1ll << 40 && got_follow.element == 99);
    assert_true(got_follow.has_log && got_follow.attempt == 3 && got_follow.offset == 1ull << 41);
    f.len--;
    assert_int_equal(jobs_get_follow(&f, &got_follow, &e), -EPROTO);
    buf_clear(&b);
    jobs_put_signal(&b, &term);
    f = only_frame(&b);
    assert_int_equal(jobs_get_signal(&f, &got_signal, &e), 0);
    assert_true(got_signal.request == 8 && got_signal.job == 17 && got_signal.element == 2 && got_signal.number == 15);
    buf_clear(&b);
    jobs_put_signal(&b, &(struct jobs_signal){.number = 65});
    f = only_frame(&b);
    assert_int_equal(jobs_get_signal(&f, &got_signal, &e), -EPROTO);
}

static void terminal_records(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct jobs_pty got;
    struct error e;
    jobs_put_pty(&b, &(struct jobs_pty){.kind = JOBS_PTY_BYTES, .bytes = (const uint8_t *)"ls\r", .len = 3});
    jobs_put_pty(&b, &(struct jobs_pty){.kind = JOBS_PTY_SIZE, .rows = 24, .columns = 132});
    for (size_t n = 0; n < 7; n++) assert_int_equal(jobs_get_pty(b.s, n, &got, &e), 0);
    assert_int_equal(jobs_get_pty(b.s, b.len, &got, &e), 7);
    assert_memory_equal(got.bytes, "ls\r", got.len);
    assert_int_equal(jobs_get_pty(b.s + 7, b.len - 7, &got, &e), 8);
    assert_true(got.kind == JOBS_PTY_SIZE && got.rows == 24 && got.columns == 132);
    assert_int_equal(jobs_get_pty("\2\0\0\0", 4, &got, &e), -EPROTO);
    assert_int_equal(jobs_get_pty("\0\0\1\x10", 4, &got, &e), -EPROTO);
    assert_int_equal(jobs_get_pty("\1\0\5\0", 4, &got, &e), -EPROTO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_comes_out), cmocka_unit_test(cut_submit_is_refused), cmocka_unit_test(lies_about_words),
        cmocka_unit_test(others_come_out),  cmocka_unit_test(terminal_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
