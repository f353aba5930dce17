/* What is written to somebody's terminal shows, and does nothing else. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "node/terminal.h"

static void lines(void **state) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"job 17 is done",        "job 17 is done"   },
        {"a\nb\r\tc",             "a?b??c"           },
        {"\033]0;title\a\033[2J", "?]0;title??[2J"   },
        {"\xc2\x9b"
         "2J",           "??2J"             }, /* the same in one character */
        {"Zo\xc3\xab trains",     "Zo\xc3\xab trains"},
        {"\xe2\x80\xaetxt.exe",   "???txt.exe"       }, /* would turn the rest round */
        {"broken \xc3 \xff\xfe",  "broken ? ??"      },
        {"\x7f",                  "?"                },
        {"",                      ""                 },
    };
    char got[200], want[200];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t n = terminal_line(rows[i].text, got, sizeof got);
        snprintf(want, sizeof want, "\r\n\a%s\r\n", rows[i].want);
        assert_string_equal(got, want);
        assert_int_equal(n, strlen(want));
    }
}

static void room(void **state) {
    char text[3000], got[64];
    for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xc3\xab", 3);
    size_t n = terminal_line(text, got, sizeof got);
    assert_true(n < sizeof got && n == strlen(got));
    assert_memory_equal(got + n - 4, "\xc3\xab\r\n", 4); /* no half character */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
