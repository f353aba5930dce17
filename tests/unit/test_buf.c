/* The buffer: always terminated, grows by itself, the zero value is empty. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static void written_to_means_terminated(void **state) {
    struct buf b = {0};
    buf_puts(&b, "");
    assert_string_equal(b.s, "");
    buf_done(&b);
    buf_printf(&b, "%s", "");
    assert_non_null(b.s);
    assert_string_equal(b.s, "");
    buf_done(&b);
    buf_add(&b, NULL, 0);
    assert_string_equal(b.s, "");
    buf_done(&b);
    buf_reserve(&b, 0);
    assert_string_equal(b.s, "");
    buf_done(&b);
    buf_done(&b);
    assert_null(b.s);
}

static void grows_over_every_boundary(void **state) {
    for (size_t step = 1; step < 140; step += 7) {
        AUTO(buf_done) struct buf b = {0};
        char piece[140];
        memset(piece, 'x', sizeof piece);
        for (size_t n = 0; n < 600; n += step) {
            assert_int_equal(b.len, n);
            buf_add(&b, piece, step);
            assert_true(b.cap > b.len);
            assert_int_equal(b.s[b.len], 0);
            assert_int_equal(strlen(b.s), b.len);
        }
    }
}

static void formats_at_every_length(void **state) {
    char text[300];
    for (int n = 0; n < 299; n++) {
        AUTO(buf_done) struct buf b = {0};
        memset(text, 'y', (size_t)n);
        text[n] = 0;
        buf_putc(&b, '<');
        buf_printf(&b, "%s|%d", text, n);
        char want[400];
        snprintf(want, sizeof want, "<%s|%d", text, n);
        assert_string_equal(b.s, want);
        assert_int_equal(b.len, strlen(want));
    }
}

static void clears_and_keeps_bytes(void **state) {
    AUTO(buf_done) struct buf b = {0};
    buf_clear(&b);
    assert_null(b.s);
    buf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.s, "a\0b", 4);
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.s, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_to_means_terminated),
        cmocka_unit_test(grows_over_every_boundary),
        cmocka_unit_test(formats_at_every_length),
        cmocka_unit_test(clears_and_keeps_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
