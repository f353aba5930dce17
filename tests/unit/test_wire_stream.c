/* Frames of streams: what was said is what is heard, and what makes no sense is refused. */
#include "model/wire_stream.h"

#include <string.h>

#include "tests/test.h"

static struct wire_frame frame_of(const struct buf *b) {
    struct wire_frame f = {0};
    assert_int_equal(wire_frame(b->s, b->len, &f, NULL), b->len);
    return f;
}

static void opens(void **state) {
    struct wire_stream_open o =
                                {
                                    .id = 7,
                                    .kind = WIRE_STREAM_EXEC,
                                    .key = {17, 3, 2},
                                    .container = "0123456789abcdef",
                                    .port = 8888,
                                    .account = "ada",
                                    .is_admin = true,
                                    .rows = 24,
                                    .columns = 80,
                                    .argument = "sh"
    },
                            got;
    AUTO(buf_done) struct buf b = {0};
    wire_put_stream_open(&b, &o);
    struct wire_frame f = frame_of(&b);
    assert_int_equal(wire_get_stream_open(&f, &got, NULL), 0);
    assert_int_equal(got.id, 7);
    assert_int_equal(got.kind, WIRE_STREAM_EXEC);
    assert_int_equal(got.key.job, 17);
    assert_int_equal(got.key.element, 3);
    assert_int_equal(got.key.attempt, 2);
    assert_string_equal(got.container, o.container);
    assert_int_equal(got.port, 8888);
    assert_string_equal(got.account, "ada");
    assert_true(got.is_admin);
    assert_int_equal(got.rows << 16 | got.columns, 24 << 16 | 80);
    assert_string_equal(got.argument, "sh");
    o.id = 0; /* no stream has that number */
    buf_clear(&b);
    wire_put_stream_open(&b, &o);
    f = frame_of(&b);
    struct error e = {0};
    assert_true(wire_get_stream_open(&f, &got, &e) < 0 && e.text[0]);
}

static void says(void **state) {
    AUTO(buf_done) struct buf b = {0};
    const struct wire_stream_hello hello = {"alpha", "0.1"};
    struct wire_stream_hello heard;
    wire_put_stream_hello(&b, &hello);
    struct wire_frame f = frame_of(&b);
    assert_int_equal(wire_get_stream_hello(&f, &heard, NULL), 0);
    assert_string_equal(heard.node, "alpha");
    const struct wire_stream_opened opened = {9, -111, "it does not listen yet"};
    struct wire_stream_opened got;
    buf_clear(&b);
    wire_put_stream_opened(&b, &opened);
    f = frame_of(&b);
    assert_int_equal(wire_get_stream_opened(&f, &got, NULL), 0);
    assert_int_equal(got.result, -111);
    assert_string_equal(got.text, opened.text);
}

static void data(void **state) {
    static uint8_t bytes[WIRE_STREAM_DATA_MAX + 1];
    static const struct {
        size_t n;
        bool is_good;
    } rows[] = {
        {1,                        true },
        {WIRE_STREAM_DATA_MAX,     true },
        {0,                        false},
        {WIRE_STREAM_DATA_MAX + 1, false}
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        const struct wire_stream_data d = {5, bytes, rows[i].n};
        struct wire_stream_data got;
        wire_put_stream_data(&b, &d);
        struct wire_frame f = frame_of(&b);
        assert_int_equal(wire_get_stream_data(&f, &got, NULL) >= 0, rows[i].is_good);
        if (rows[i].is_good) assert_int_equal(got.len, rows[i].n);
    }
}

static void words(void **state) {
    static const struct {
        enum wire_type type;
        uint32_t id, value;
        bool is_good;
    } rows[] = {
        {WIRE_STREAM_WINDOW_MORE, 1, 1,                      true },
        {WIRE_STREAM_WINDOW_MORE, 1, WIRE_STREAM_WINDOW,     true },
        {WIRE_STREAM_WINDOW_MORE, 1, 0,                      false},
        {WIRE_STREAM_WINDOW_MORE, 1, WIRE_STREAM_WINDOW + 1, false},
        {WIRE_STREAM_END,         1, 0,                      true },
        {WIRE_STREAM_CLOSE,       1, 0,                      true },
        {WIRE_STREAM_SIZE,        1, 24 << 16 | 80,          true },
        {WIRE_STREAM_END,         0, 0,                      false},
        {WIRE_STREAM_DATA,        1, 0,                      false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        const struct wire_stream_word w = {rows[i].id, rows[i].value};
        struct wire_stream_word got;
        wire_put_stream_word(&b, rows[i].type, &w);
        struct wire_frame f = frame_of(&b);
        assert_int_equal(wire_get_stream_word(&f, &got, NULL) >= 0, rows[i].is_good);
        if (rows[i].is_good) assert_int_equal(got.value, rows[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(opens), cmocka_unit_test(says), cmocka_unit_test(data),
                                       cmocka_unit_test(words)};
    return cmocka_run_group_tests_name("wire_stream", tests, NULL, NULL);
}
