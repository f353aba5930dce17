/* The parts of the support archive: what a tar must look like, and what must not be in it. */
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/redact.h"
#include "client/ustar.h"

static void a_tar_is_laid_out_as_posix_says(void **state) {
    AUTO(buf_done) struct buf tar = {0};
    struct error e = {0};
    char body[513];
    memset(body, 'x', sizeof body);
    assert_int_equal(ustar_add(&tar, "a/first.txt", "hello", 5, 1700000000, &e), 0);
    assert_int_equal(ustar_add(&tar, "a/second", body, sizeof body, 0, &e), 0);
    assert_int_equal(ustar_add(&tar, "a/empty", "", 0, 0, &e), 0);
    ustar_end(&tar);
    assert_int_equal(tar.len, 512 * (2 + 3 + 1 + 2));
    assert_string_equal(tar.s, "a/first.txt");
    assert_string_equal(tar.s + 100, "0000644");
    assert_string_equal(tar.s + 124, "00000000005");
    assert_string_equal(tar.s + 136, "14524770400");
    assert_memory_equal(tar.s + 257, "ustar\00000", 8);
    assert_memory_equal(tar.s + 512, "hello\0\0", 7);
    assert_string_equal(tar.s + 1024, "a/second");

    unsigned sum = 0, said;
    for (int i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? ' ' : (unsigned char)tar.s[i];
    assert_int_equal(sscanf(tar.s + 148, "%o", &said), 1);
    assert_int_equal(said, sum);

    char long_name[120];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_int_equal(ustar_add(&tar, long_name, "", 0, 0, &e), -ENAMETOOLONG);
}

static void what_names_someone_is_taken_out(void **state) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"on node17 by alice",          "on <host name> by <user name>"  },
        {"node17.example.org",          "<host name>.example.org"        },
        {"node171 malice alice2",       "node171 malice alice2"          },
        {"/home"
         "/alice/x and /home"
         "/bob/y",             "<home path>/x and <home path>/y"},
        {"serial \"1654321000001\"",    "serial \"<serial number>\""     },
        {"https://u:secret@h/x",        "https://<credential>@h/x"       },
        {"https://h/x@y",               "https://h/x@y"                  },
        {"plain text stays, GPU-7 too", "plain text stays, GPU-7 too"    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf out = {0};
        struct redact r = {0};
        redact_add(&r, "node17", "host name");
        redact_add(&r, "/home/alice", "home path");
        redact_add(&r, "alice", "user name");
        redact_add(&r, "1654321000001", "serial number");
        redact_add(&r, "ab", "too short to be taken");
        redact_text(&r, rows[i].text, &out);
        assert_string_equal(out.s, rows[i].want);
    }
}

static void uuids_can_still_be_told_apart(void **state) {
    AUTO(buf_done) struct buf a = {0}, b = {0}, again = {0}, said = {0};
    struct redact r = {0};
    redact_text(&r, "GPU-3b9858bc-1e28-f643-0024-bbf5091ef839", &a);
    redact_text(&r, "MIG-3b9858bc-1e28-f643-0024-bbf5091ef839", &b);
    redact_text(&r, "GPU-3b9858bc-1e28-f643-0024-bbf5091ef839", &again);
    assert_int_equal(a.len, 12);
    assert_null(strstr(a.s, "3b9858bc"));
    assert_string_equal(a.s, again.s);
    assert_string_not_equal(a.s, b.s);
    redact_summary(&r, &said);
    assert_string_equal(said.s, "3 UUIDs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tar_is_laid_out_as_posix_says),
        cmocka_unit_test(what_names_someone_is_taken_out),
        cmocka_unit_test(uuids_can_still_be_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
