/* Log lines: one JSON object a line whatever the text, and nothing that steers a terminal. */
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "base/log.h"

/* Runs `act` with standard error going to `to`, and gives back what is read from `from`. */
static void capture(void (*act)(const char *), const char *text, int to, int from, struct buf *ret) {
    int old = dup(STDERR_FILENO);
    assert_true(dup2(to, STDERR_FILENO) >= 0);
    act(text);
    dup2(old, STDERR_FILENO);
    close(old);
    char bytes[8192];
    ssize_t n = read(from, bytes, sizeof bytes);
    buf_puts(ret, "");
    if (n > 0) buf_add(ret, bytes, (size_t)n);
}

static void say(const char *text) {
    log_open("tester", LOG_INFO);
    log_line(LOG_DEBUG, "not_said", -1, "%s", text);
    log_line(LOG_WARN, "an_event", 3, "%s", text);
}

static int collect(void *ctx, const struct json_leaf *leaf, struct error *e) {
    if (strcmp(leaf->path, "time") == 0)
        assert_int_equal(strlen(leaf->text), strlen("2024-01-01T00:00:00.000Z"));
    else
        buf_printf(ctx, "%s=%s;", leaf->path, leaf->text);
    return 0;
}

static void lines_are_json(void **state) {
    static char full[600], controls[600], wide[600];
    memset(full, '\\', sizeof full - 1);
    memset(controls, '\1', sizeof controls - 1);
    for (size_t i = 0; i + 3 < sizeof wide; i += 3) memcpy(wide + i, "\xe2\x82\xac", 3);
    static const struct {
        const char *name, *in, *want; /* want NULL: only that it is JSON and begins like the text */
    } rows[] = {
        {"plain",               "all is well",            "all is well"                            },
        {"empty",               "",                       ""                                       },
        {"quotes",              "\"a\\b\"",               "\"a\\b\""                               },
        {"a line break",        "a\nb\r\n",               "a\nb\r\n"                               },
        {"escape sequences",    "\033[2J\007",            "\033[2J\007"                            },
        {"not UTF-8",           "a\xff\xc3(b\x80",        "a\xef\xbf\xbd\xef\xbf\xbd(b\xef\xbf\xbd"},
        {"UTF-8",               "gr\xc3\xbc\xe2\x82\xac", "gr\xc3\xbc\xe2\x82\xac"                 },
        {"JSON inside",         "\",\"level\":\"x\"}",    "\",\"level\":\"x\"}"                    },
        {"percent signs",       "%s%n%d",                 "%s%n%d"                                 },
        {"more than fits",      full,                     NULL                                     },
        {"controls only",       controls,                 NULL                                     },
        {"cut inside a letter", wide,                     NULL                                     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf out = {0}, leaves = {0}, want = {0};
        struct error e = {0};
        int ends[2];
        assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
        capture(say, rows[i].in, ends[1], ends[0], &out);
        close(ends[0]), close(ends[1]);
        assert_true(out.len > 1 && out.s[out.len - 1] == '\n');
        assert_ptr_equal(strchr(out.s, '\n'), out.s + out.len - 1); /* one line: the debug one was not said */
        int r = json_walk(out.s, out.len, collect, &leaves, &e);
        if (r < 0) print_error("%s: %s: %s\n", rows[i].name, e.text, out.s);
        assert_int_equal(r, 0);
        buf_printf(&want, "level=warn;process=tester;event=an_event;gpu=3;text=%s%s", rows[i].want ? rows[i].want : "",
                   rows[i].want ? ";" : "");
        if (rows[i].want)
            assert_string_equal(leaves.s, want.s);
        else
            assert_memory_equal(leaves.s, want.s, want.len);
    }
}

static void a_terminal_is_not_steered(void **state) {
    AUTO(buf_done) struct buf out = {0};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    capture(say, "evil\033]0;title\007\033[2J\x7f\nnext gr\xc3\xbc", slave, master, &out);
    close(slave), close(master);
    assert_non_null(strstr(out.s, "evil?]0;title??[2J??next gr\xc3\xbc"));
    assert_non_null(strstr(out.s, "gpu 3: "));
    assert_non_null(strstr(out.s, "warn"));
    assert_null(strstr(out.s, "{\""));
    log_open("tester", LOG_INFO);
}

static void say_by_level(const char *text) {
    static const struct {
        enum log_level least, level;
    } rows[] = {
        {LOG_DEBUG, LOG_DEBUG},
        {LOG_INFO,  LOG_DEBUG},
        {LOG_WARN,  LOG_INFO },
        {LOG_ERROR, LOG_ERROR},
        {LOG_ERROR, LOG_WARN },
    };
    log_open("tester", LOG_INFO);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        log_set_level(rows[i].least);
        log_line(rows[i].level, "e", -1, "%zu", i);
    }
}

static void levels(void **state) {
    AUTO(buf_done) struct buf out = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    capture(say_by_level, "", ends[1], ends[0], &out);
    close(ends[0]), close(ends[1]);
    assert_non_null(strstr(out.s, "\"text\":\"0\""));
    assert_non_null(strstr(out.s, "\"text\":\"3\""));
    assert_null(strstr(out.s, "\"gpu\""));
    size_t lines = 0;
    for (const char *c = out.s; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_json),
        cmocka_unit_test(a_terminal_is_not_steered),
        cmocka_unit_test(levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
