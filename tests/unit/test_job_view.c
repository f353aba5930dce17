/* Jobs as people see them: numbers, the line while one waits, how it ended, exit codes, rows of tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/completion.h"
#include "client/job_id.h"
#include "client/job_line.h"
#include "client/job_table.h"
#include "client/jobs.h"
#include "client/text.h"
#include "tests/test.h"

#define NOW_S 1763200000ll /* 09:46:40 UTC */

static void numbers_of_jobs(void **state) {
    static const struct {
        const char *word;
        int64_t job, element; /* job 0: refused */
    } rows[] = {
        {"17",                   17, -1},
        {"17.3",                 17, 3 },
        {"17.0",                 17, 0 },
        {"0",                    0,  0 },
        {"",                     0,  0 },
        {"17.",                  0,  0 },
        {".3",                   0,  0 },
        {"-1",                   0,  0 },
        {"17.3.1",               0,  0 },
        {"job17",                0,  0 },
        {"99999999999999999999", 0,  0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_id id = {0};
        struct error e = {0};
        char text[JOB_ID_TEXT];
        int r = job_id_parse(rows[i].word, &id, &e);
        if ((r == 0) != (rows[i].job != 0)) fail_msg("%s: %d", rows[i].word, r);
        if (r < 0) continue;
        assert_true(id.job == rows[i].job && id.element == rows[i].element);
        job_id_text(&id, text);
        assert_string_equal(text, rows[i].word);
    }
}

static struct json_tree *tree(const char *text) {
    struct json_tree *root;
    struct error e = {0};
    if (json_tree_parse(text, strlen(text), &root, &e) < 0) fail_msg("%s: %s", text, e.text);
    return root;
}

static void lines(void **state) {
    static const struct {
        const char *json, *waiting, *ended; /* NULL: not looked at */
        int exit;
    } rows[] = {
        {"{\"id\":17,\"state\":\"waiting\",\"place\":2,\"why\":\"GPU 0 is held by bob's job "
         "15.\",\"starts_at\":1763200720,"
         "\"sooner\":\"now with 1 GPU instead of 2\"}",                                                  "job 17 waits, place 2, starts about 09:58 (in 12 min): GPU 0 is held by bob's job 15; sooner: now with 1 GPU "
         "instead of 2",                                                                  NULL,                                                                                125},
        {"{\"id\":17,\"state\":\"waiting\",\"place\":null,\"why\":null,\"starts_at\":null,\"sooner\":null}",
         "job 17 waits",                                                                                                                                  NULL,                                                                                125},
        {"{\"id\":17,\"state\":\"waiting\",\"starts_at\":1763200001}",                                            "job 17 waits, starts any moment",      NULL,                                                                                125},
        {"{\"id\":17,\"state\":\"held\",\"why\":\"job 16 has not ended\"}",                                       "job 17 is held: job 16 has not ended",
         NULL,                                                                                                                                                                                                                                 125},
        {"{\"id\":17,\"state\":\"running\",\"gpu_names\":[\"0\",\"1\"]}",                                         "",                                     NULL,                                                                                125},
        {"{\"id\":17,\"state\":\"done\",\"exit_code\":0,\"started\":1763199280,\"ended\":1763200000,"
         "\"gpu_names\":[\"0\",\"1\"],\"insight\":\"GPU 23 % busy\"}",                                   "",                                     "job 17: done after 12 min on GPU 0,1: GPU 23 % busy",                               0  },
        {"{\"id\":17,\"state\":\"failed\",\"exit_code\":3,\"started\":1763199998,\"ended\":1763200000}",          "",
         "job 17: failed (exit code 3) after 2 s",                                                                                                                                                                                             3  },
        {"{\"id\":17,\"state\":\"failed\",\"exit_code\":null,\"signal\":9}",                                      "",                                     "job 17: failed (signal 9, Killed)",
         137                                                                                                                                                                                                                                      },
        {"{\"id\":17,\"state\":\"failed\",\"exit_code\":null,\"signal\":null,\"text\":\"python: no such file\"}", "",
         "job 17: failed: python: no such file",                                                                                                                                                                                               125},
        {"{\"id\":17,\"state\":\"exit unknown\",\"reason\":\"was ended because the process that watched it was "
         "killed\"}",                                                                                    "",                                     "job 17: exit unknown: it was ended because the process that watched it was killed", 125},
        {"{\"id\":17,\"state\":\"done\",\"elements\":{\"total\":9,\"done\":9}}",                                  "",                                     "job 17: done, 9 of 9 ended well",
         0                                                                                                                                                                                                                                        },
        {"{\"id\":17,\"state\":\"failed\",\"elements\":{\"total\":9,\"done\":7,\"failed\":1,\"timeout\":1}}",     "",
         "job 17: failed, 7 of 9 ended well",                                                                                                                                                                                                  1  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf waiting = {0}, ended = {0};
        const struct job_id id = {17, -1};
        struct job_news n;
        struct json_tree *root = tree(rows[i].json);
        assert_true(job_news_read(root, -1, &n));
        job_line_waiting(&id, &n, NOW_S * NS_PER_S, &waiting);
        if (strcmp(waiting.len ? waiting.s : "", rows[i].waiting) != 0)
            fail_msg("%s\n  says %s", rows[i].json, waiting.s);
        job_line_ended(&id, &n, &ended);
        if (rows[i].ended && strcmp(ended.s, rows[i].ended) != 0) fail_msg("%s\n  says %s", rows[i].json, ended.s);
        assert_int_equal(n.is_over, rows[i].ended != NULL);
        assert_int_equal(job_news_exit(&n), rows[i].exit);
        json_tree_free(root);
    }
    struct job_news n;
    struct json_tree *none = tree("{\"jobs\":[]}");
    assert_false(job_news_read(none, -1, &n));
    json_tree_free(none);
}

/* Of an array: what is said of one number is that of its last try. */
static void elements(void **state) {
    static const char document[] =
        "{\"id\":17,\"state\":\"running\",\"elements\":{\"total\":4,\"running\":1,"
        "\"failed\":1,\"waiting\":2},\"runs\":["
        "{\"id\":17,\"element\":1,\"attempt\":1,\"state\":\"failed\",\"exit_code\":3},"
        "{\"id\":17,\"element\":2,\"attempt\":2,\"state\":\"running\",\"gpu_names\":[\"1\"]},"
        "{\"id\":17,\"element\":2,\"attempt\":1,\"state\":\"failed\",\"exit_code\":9}]}";
    static const struct {
        int64_t element;
        const char *state;
        bool is_over;
        int exit;
    } rows[] = {
        {-1, "running", false, 1            },
        {1,  "failed",  true,  3            },
        {2,  "running", false, JOB_EXIT_NONE},
        {3,  "waiting", false, JOB_EXIT_NONE},
    };
    struct json_tree *root = tree(document);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_news n;
        assert_true(job_news_read(root, rows[i].element, &n));
        assert_string_equal(n.state, rows[i].state);
        assert_int_equal(n.is_over, rows[i].is_over);
        assert_int_equal(job_news_exit(&n), rows[i].exit);
    }
    json_tree_free(root);
}

static void cells(void **state) {
    static const struct {
        const struct job_cell *cell;
        const char *json, *want;
    } rows[] = {
        {&job_cell_id,       "{\"id\":17,\"element\":null}",                                        "17"                 },
        {&job_cell_id,       "{\"id\":17,\"element\":3}",                                           "17.3"               },
        {&job_cell_id,       "{\"id\":17,\"element\":null,\"elements\":{\"total\":100}}",           "17[100]"            },
        {&job_cell_wants,    "{\"gpus\":2,\"scope\":[]}",                                           "2"                  },
        {&job_cell_wants,    "{\"gpus\":2,\"scope\":[0,3]}",                                        "GPU 0,3"            },
        {&job_cell_wants,    "{\"gpus\":2,\"scope\":[\"0\",\"1\",\"3\"]}",                          "2 of 0,1,3"         },
        {&job_cell_wants,    "{\"gpus\":2,\"memory_bytes\":42949672960}",                           "2 x 40GiB"          },
        {&job_cell_wants,    "{\"gpus\":1,\"share_bytes\":10737418240}",                            "10GiB of one"       },
        {&job_cell_took,     "{\"started\":1763192000,\"ended\":1763199860}",                       "2h11m"              },
        {&job_cell_took,     "{\"started\":1763199990,\"ended\":null}",                             "10s"                },
        {&job_cell_took,     "{\"started\":null,\"ended\":null}",                                   ""                   },
        {&job_cell_left,     "{\"started\":1763199900,\"ended\":null,\"time_limit_s\":3600}",       "58m20s"             },
        {&job_cell_left,     "{\"started\":1763199900,\"ended\":1763199999,\"time_limit_s\":3600}", ""                   },
        {&job_cell_exit,     "{\"exit_code\":0,\"signal\":null}",                                   "0"                  },
        {&job_cell_exit,     "{\"exit_code\":null,\"signal\":15}",                                  "TERM"               },
        {&job_cell_exit,     "{\"exit_code\":null,\"signal\":null}",                                ""                   },
        {&job_cell_starts,   "{\"starts_at\":1763200720}",                                          "09:58"              },
        {&job_cell_starts,   "{\"starts_at\":1763199999}",                                          "now"                },
        {&job_cell_starts,   "{\"state\":\"held\",\"starts_at\":null}",                             ""                   },
        {&job_cell_starts,   "{\"starts_at\":null}",                                                "not known"          },
        {&job_cell_command,  "{\"command\":[\"python\",\"train.py\",\"a\\nb\"],\"image\":null}",    "python train.py a b"},
        {&job_cell_priority, "{\"priority\":0}",                                                    ""                   },
        {&job_cell_priority, "{\"priority\":-5}",                                                   "-5"                 },
        {&job_cell_busy,     "{\"gpu_utilization_ratio\":0.234}",                                   "23%"                },
        {&job_cell_busy,     "{\"gpu_utilization_ratio\":null}",                                    ""                   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct table_cell c = {0};
        struct json_tree *root = tree(rows[i].json);
        rows[i].cell->put(root, NOW_S * NS_PER_S, &c);
        if (strcmp(c.text, rows[i].want) != 0) fail_msg("%s is %s", rows[i].json, c.text);
        json_tree_free(root);
    }
}

/* Nothing is cut off, no line is wider, and every further one stands below the first. */
static void texts_are_wrapped(void **state) {
    static const struct {
        const char *text, *want;
        int width, indent;
    } rows[] = {
        {"",                        "\n",                             20, 4},
        {"short",                   "short\n",                        20, 4},
        {"exactly ten",             "exactly ten\n",                  11, 4},
        {"one more word",           "one more\n    word\n",           11, 4},
        {"a blank at the  edge",    "a blank at\n  the  edge\n",      10, 2},
        {"averylongwordindeed end", "averylongw\n ordindeed\n end\n", 10, 1},
        {"größer für März",     "größer für\n März\n",        10, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf out = {0};
        text_wrap(&out, rows[i].text, rows[i].width, rows[i].indent);
        assert_string_equal(out.s, rows[i].want);
    }
}

/* Whatever the width, no line is wider, and the reason stands below its job. */
/* Much of what is printed was written by other users. */
static void nothing_that_a_terminal_obeys(void **state) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"/data/\303\244 b",           "/data/\303\244 b"          }, /* a letter of two bytes */
        {"a\033]0;x\007b",             "a?]0;x?b"                  },
        {"a\302\2332Jb",               "a?2Jb"                     }, /* a CSI of eight bits, in UTF-8 */
        {"a\342\200\256b\r\177",       "a?b??"                     },
        {"a\377\233b",                 "a??b"                      },
        {"\360\237\230\200 \302\240x", "\360\237\230\200 \302\240x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf pad = {0}, cut = {0}, wrap = {0};
        text_pad(&pad, rows[i].text, 0);
        text_cut(&cut, rows[i].text, 40);
        text_wrap(&wrap, rows[i].text, 40, 0);
        assert_string_equal(pad.s, rows[i].want);
        assert_string_equal(cut.s, rows[i].want);
        wrap.s[wrap.len - 1] = 0;
        assert_string_equal(wrap.s, rows[i].want);
    }
}

static void tables_fit(void **state) {
    static const struct job_cell *const columns[] = {&job_cell_place, &job_cell_id,     &job_cell_state,
                                                     &job_cell_user,  &job_cell_name,   &job_cell_wants,
                                                     &job_cell_age,   &job_cell_starts, &job_cell_command};
    struct json_tree *root = tree(
        "[{\"id\":123456,\"state\":\"waiting\",\"user\":\"a-long-user-name\",\"name\":\"pretraining-of-something.py\","
        "\"gpus\":8,\"scope\":[0,1,2,3,4,5,6,7,8],\"place\":1,\"submitted\":1763100000,"
        "\"starts_at\":1763300000,\"why\":\"GPU 0 is held by bob's job 15\",\"sooner\":\"now with 1 GPU\","
        "\"command\":[\"python\",\"a/very/long/path/to/some/pretraining-of-something.py\",\"--x\"]}]");
    for (int width = 40; width <= 200; width++) {
        AUTO(buf_done) struct buf out = {0};
        const struct screen screen = {.width = width};
        job_table(root, NULL, columns, ARRAY_LEN(columns), job_below, &screen, &out);
        assert_non_null(strstr(out.s, "\n    GPU 0 is held"));
        assert_null(strchr(strstr(out.s, "    GPU 0 is held"), '~')); /* wrapped, never cut */
        for (char *at = out.s, *line; (line = strsep(&at, "\n"));)
            if ((int)strlen(line) > width) fail_msg("%d columns: %s", width, line);
    }
    json_tree_free(root);
}

static void flags_of_help_texts(void **state) {
    static const char help[] = "usage: x [--not-here]\n\n  --watch [SECONDS]  again: every\n  --gpus N   so many\n"
                               "  --json     as JSON\n  --over WHAT=DO  more\n       --no-flag\n  --long-flag\n";
    static const struct {
        const char *name, *value, *text;
        bool may_lack;
    } want[] = {
        {"--watch",     "SECONDS", "again: every", true },
        {"--gpus",      "N",       "so many",      false},
        {"--json",      "",        "as JSON",      false},
        {"--over",      "WHAT=DO", "more",         false},
        {"--long-flag", "",        "",             false},
    };
    const char *at = help;
    struct completion_flag f;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_true(completion_next(&at, &f));
        assert_string_equal(f.name, want[i].name);
        assert_string_equal(f.value, want[i].value);
        assert_string_equal(f.text, want[i].text);
        assert_int_equal(f.value_may_lack, want[i].may_lack);
    }
    assert_false(completion_next(&at, &f));
}

int main(void) {
    setenv("TZ", "UTC0", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_jobs),   cmocka_unit_test(lines),
        cmocka_unit_test(elements),          cmocka_unit_test(cells),
        cmocka_unit_test(texts_are_wrapped), cmocka_unit_test(nothing_that_a_terminal_obeys),
        cmocka_unit_test(tables_fit),        cmocka_unit_test(flags_of_help_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
