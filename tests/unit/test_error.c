/* Errors: one sentence, one line, whatever went into it. */
#include "tests/test.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void sentences(void **state) {
    struct error e = {0};
    assert_int_equal(fail(&e, -ENOENT, "job %s: no such job", "j1"), -ENOENT);
    assert_int_equal(e.code, -ENOENT);
    assert_string_equal(e.text, "job j1: no such job");

    assert_int_equal(fail_in(&e, -EINVAL, "load %s", "x.json"), -EINVAL);
    assert_int_equal(e.code, -EINVAL);
    assert_string_equal(e.text, "load x.json: job j1: no such job");

    assert_int_equal(fail_errno(&e, ENOENT, "/nowhere"), -ENOENT);
    assert_string_equal(e.text, "/nowhere: No such file or directory");
}

static void nobody_listens(void **state) {
    assert_int_equal(fail(NULL, -EIO, "x"), -EIO);
    assert_int_equal(fail_in(NULL, -EIO, "x"), -EIO);
    assert_int_equal(fail_errno(NULL, EIO, "x"), -EIO);
}

static void long_sentences_are_cut(void **state) {
    struct error e = {0};
    char huge[2000];
    memset(huge, 'a', sizeof huge);
    huge[sizeof huge - 1] = 0;
    assert_int_equal(fail(&e, -EIO, "%s", huge), -EIO);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    assert_int_equal(fail_in(&e, -EIO, "fact"), -EIO);
    assert_memory_equal(e.text, "fact: aaa", 9);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    assert_int_equal(fail_in(&e, -EIO, "%s", huge), -EIO);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    assert_int_equal(fail_errno(&e, EIO, "%s", huge), -EIO);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

static void foreign_bytes_stay_on_the_line(void **state) {
    struct error e = {0};
    assert_int_equal(fail(&e, -EIO, "a\nb\033[2Jc\177d\te"), -EIO);
    assert_string_equal(e.text, "a?b?[2Jc?d?e");
    assert_int_equal(fail_in(&e, -EIO, "x\ry"), -EIO);
    assert_string_equal(e.text, "x?y: a?b?[2Jc?d?e");
    assert_int_equal(fail(&e, -EIO, "gr\xc3\xbc\xc3\x9f"), -EIO);
    assert_string_equal(e.text, "gr\xc3\xbc\xc3\x9f");
}

static void exit_codes(void **state) {
    static const struct {
        int code, want;
    } rows[] = {
        {-EINVAL,  2},
        {-ENOENT,  2},
        {-ERANGE,  2},
        {-EPERM,   2},
        {-EACCES,  2},
        {-ENOTDIR, 2},
        {-EISDIR,  2},
        {-EBUSY,   2},
        {-EEXIST,  2},
        {-EIO,     1},
        {-EPROTO,  1},
        {-ENOMEM,  1},
        {0,        1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_int_equal(error_exit_code(rows[i].code), rows[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(foreign_bytes_stay_on_the_line),
        cmocka_unit_test(exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
