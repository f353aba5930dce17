/* Where defaults, file, environment and flags meet: who wins, what is kept of where it came from, what is refused. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "client/settings_load.h"
#include "tests/unit/scratch.h"

#define COMPLAIN(...) (print_error(__VA_ARGS__), assert_true(0))

static char dir[64], file[96];

static int set_up(void **state) {
    static const char *const ours[] = {"GPUMGR_WAIT_MS", "GPUMGR_DIR", "GPUMGR_CONFIG", "GPUMGR_GPUS",
                                       "GPUMGR_GPU_LIBRARY"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) unsetenv(ours[i]);
    scratch_make(dir, "/tmp");
    snprintf(file, sizeof file, "%s/gpumgr.json", dir);
    return 0;
}

static int tear_down(void **state) {
    scratch_remove(dir);
    return 0;
}

static void write_file(const char *text) {
    struct error e = {0};
    assert_int_equal(file_write(file, 0644, text, strlen(text), false, &e), 0);
}

/* A command line of up to seven words. */
static int load(struct loaded *l, struct error *e, const char *const *words) {
    char *argv[9] = {(char *)(uintptr_t) "up"};
    int argc = 1;
    struct flags flags;
    for (; words && words[argc - 1] && argc < 8; argc++) argv[argc] = (char *)(uintptr_t)words[argc - 1];
    int r = flags_parse(argc, argv, NULL, 0, FLAGS_SETTINGS, &flags, e);
    return r < 0 ? r : settings_load(&flags, LOAD_STRICT, l, e);
}
#define LOAD(l, e, ...) load((l), (e), (const char *const[]){__VA_ARGS__, NULL})

static size_t place(const char *key) {
    const struct option *o = option_find(settings_table, settings_count, key);
    assert_non_null(o);
    return (size_t)(o - settings_table);
}

static void later_ones_win(void **state) {
    struct loaded l;
    struct error e = {0};
    size_t at = place("wait_ms");

    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    assert_int_equal(l.values.wait_ms, 1000);
    assert_int_equal(l.of[at].origin, ORIGIN_DEFAULT);

    write_file("{\"wait_ms\": 200, \"guard\": {\"hot_c\": 71.5}, \"gpus\": [0, 3]}");
    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    assert_int_equal(l.values.wait_ms, 200);
    assert_int_equal(l.of[at].origin, ORIGIN_FILE);
    assert_string_equal(l.of[at].from, file);
    assert_string_equal(l.file, file);
    assert_true(l.values.hot_c == 71.5);
    assert_string_equal(l.values.gpus, "0,3");

    setenv("GPUMGR_WAIT_MS", "300", 1);
    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    assert_int_equal(l.values.wait_ms, 300);
    assert_string_equal(l.of[at].from, "GPUMGR_WAIT_MS");

    assert_int_equal(LOAD(&l, &e, "--dir", dir, "--wait-ms=400"), 0);
    assert_int_equal(l.values.wait_ms, 400);
    assert_int_equal(l.of[at].origin, ORIGIN_FLAG);
    assert_string_equal(l.of[place("guard.hot_c")].from, file);
}

static void ways_to_write_a_flag(void **state) {
    static const struct {
        const char *words[4];
        const char *key, *want;
    } rows[] = {
        {{"--wait_ms", "20"},          "wait_ms",     "20"        },
        {{"--wait-ms", "20"},          "wait_ms",     "20"        },
        {{"--wait_ms=20"},             "wait_ms",     "20"        },
        {{"--guard.hot_c", "80"},      "guard.hot_c", "80"        },
        {{"--guard-hot-c", "80.5"},    "guard.hot_c", "80.5"      },
        {{"--guard.hot_c", "auto"},    "guard.hot_c", "auto"      },
        {{"--sim_costs"},              "sim_costs",   "true"      },
        {{"--sim-costs", "false"},     "sim_costs",   "false"     },
        {{"--sim-costs=yes"},          "sim_costs",   "true"      },
        {{"--gpu-library", "libx.so"}, "gpu_library", "libx.so"   },
        {{"--gpu-library", "/a/b.so"}, "gpu_library", "/a/b.so"   },
        {{"--sim", "1", "--sim", "2"}, "sim",         "2"         },
        {{"--listen", "[::1]:7000"},   "listen",      "[::1]:7000"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l;
        struct error e = {0};
        char text[1100];
        const char *words[8] = {"--dir", dir};
        for (int w = 0; w < 4 && rows[i].words[w]; w++) words[2 + w] = rows[i].words[w];
        if (load(&l, &e, words) < 0) COMPLAIN("row %zu: %s", i, e.text);
        option_text(option_find(settings_table, settings_count, rows[i].key), &l.values, text, sizeof text);
        assert_string_equal(text, rows[i].want);
    }
}

static void paths_are_made_absolute(void **state) {
    struct loaded l;
    struct error e = {0};
    char want[200], cwd[100];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(LOAD(&l, &e, "--dir", dir, "--gpu-library", "./lib.so"), 0);
    snprintf(want, sizeof want, "%s/./lib.so", cwd);
    assert_string_equal(l.values.gpu_library, want);
    write_file("{\"gpu_library\": \"sub/lib.so\"}"); /* in a file: from where the file lies */
    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    snprintf(want, sizeof want, "%s/sub/lib.so", dir);
    assert_string_equal(l.values.gpu_library, want);
}

static void a_group_may_be_empty(void **state) {
    static const struct {
        const char *text, *says; /* NULL: taken */
    } rows[] = {
        {"{}",                                NULL                       },
        {"{\"guard\": {}}",                   NULL                       },
        {"{\"guard\": {}, \"sampler\": {}}",  NULL                       },
        {"{\"guard\": {}, \"wait_ms\": 200}", NULL                       },
        {"{\"gaurd\": {}}",                   "no such key as \"gaurd\"" },
        {"{\"guar\": {}}",                    "no such key as \"guar\""  },
        {"{\"guard.\": {}}",                  "no such key as \"guard.\""},
        {"{\"guard\": {\"hot\": {}}}",        "guard.hot_c"              },
        {"{\"wait_ms\": {}}",                 "an empty group"           },
        {"{\"guard\": {\"hot_c\": {}}}",      "an empty group"           },
        {"{\"guard\": {}, \"guard\": {}}",    "duplicate"                },
        {"{\"guard\": []}",                   "no such key as \"guard\"" },
        {"{\"guard\": null}",                 "no such key as \"guard\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l;
        struct error e = {0};
        write_file(rows[i].text);
        int r = LOAD(&l, &e, "--dir", dir);
        if ((r == 0) != !rows[i].says || (r < 0 && !strstr(e.text, rows[i].says)))
            COMPLAIN("%s: %d %s", rows[i].text, r, e.text);
    }
}

static void bad_files(void **state) {
    static const struct {
        const char *text, *says[3];
    } rows[] = {
        {"{\"wait_ms\": \"100\"}",             {"wait_ms", "a text", "from 10 to 60000"}                       },
        {"{\"wait_ms\": 100.5}",               {"wait_ms", "fraction", "from 10 to 60000"}                     },
        {"{\"wait_ms\": null}",                {"wait_ms", "null", "from 10 to 60000"}                         },
        {"{\"wait_ms\": 9}",                   {"wait_ms", "\"9\"", "from 10 to 60000"}                        },
        {"{\"wait_ms\": 1e300}",               {"wait_ms", "fraction", "from 10 to 60000"}                     },
        {"{\"wait_ms\": {\"x\": 1}}",          {"no such key", "wait_ms.x", "wait_ms"}                         },
        {"{\"wait\": 100}",                    {"no such key", "\"wait\"", "gpumgr config"}                    },
        {"{\"wait_sm\": 100}",                 {"no such key", "wait_sm", "did you mean wait_ms (a whole"}     },
        {"{\"guard\": {\"hot\": 80}}",         {"no such key", "guard.hot", "did you mean guard.hot_c (a temp"}},
        {"{\"guard\": {\"hot_c\": 200}}",      {"guard.hot_c", "from 30 to 110", "auto"}                       },
        {"{\"guard\": {\"mode\": \"on\"}}",    {"guard.mode", "\"on\"", "auto|observe|off"}                    },
        {"{\"gpus\": [0, \"x\"]}",             {"gpus", "\"0,x\"", "indices and UUIDs"}                        },
        {"{\"gpus\": [[0]]}",                  {"gpus", "plain values", ""}                                    },
        {"{\"gpus\": []}",                     {"gpus", "indices", ""}                                         },
        {"{\"config\": \"x\"}",                {"config", "cannot name", ""}                                   },
        {"{\"dir\": \"/x\"}",                  {"dir", "cannot choose", ""}                                    },
        {"{\"wait_ms\": 50, \"wait_ms\": 60}", {"duplicate", "wait_ms", ""}                                    },
        {"{\"wait_ms\": 50",                   {"line 1", "", ""}                                              },
        {"[]",                                 {"one JSON object", "", ""}                                     },
        {"",                                   {"line", "", ""}                                                },
        {"{\"sampler\": {\"lost_ms\": 1000}}", {"sampler.lost_ms", "sampler.answer_ms (2000)", "600000"}       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l;
        struct error e = {0};
        write_file(rows[i].text);
        assert_int_equal(LOAD(&l, &e, "--dir", dir), -EINVAL);
        bool names_all = strstr(e.text, file) && !strchr(e.text, '\n');
        for (int s = 0; s < 3; s++) names_all &= strstr(e.text, rows[i].says[s] ? rows[i].says[s] : "") != NULL;
        if (!names_all) COMPLAIN("row %zu: %s", i, e.text);
    }
}

static void bad_flags(void **state) {
    static const struct {
        const char *words[4], *says;
    } rows[] = {
        {{"--wait_ms", "5"},       "flag --wait_ms: wait_ms: \"5\" is not a whole number from 10 to 60000"},
        {{"--wait_ms"},            "--wait_ms needs a value"                                              },
        {{"--wait_m", "50"},       "did you mean --wait_ms (a whole number from 10 to 60000)?"            },
        {{"--zzzzzzzz"},           "--help lists them"                                                    },
        {{"-x"},                   "no such flag as -x"                                                   },
        {{"--config", "/no/such"}, "config: /no/such: No such file"                                       },
        {{"--config", "/tmp"},     "config: /tmp: is a directory"                                         },
        {{"--sim", "0x4"},         "sim: \"0x4\" is not"                                                  },
        {{"--sim", ""},            "sim: \"\" is not"                                                     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l;
        struct error e = {0};
        const char *words[8] = {"--dir", dir};
        for (int w = 0; w < 4 && rows[i].words[w]; w++) words[2 + w] = rows[i].words[w];
        assert_int_equal(load(&l, &e, words), -EINVAL);
        if (!strstr(e.text, rows[i].says)) COMPLAIN("row %zu: %s", i, e.text);
    }
}

static void variables(void **state) {
    struct loaded l;
    struct error e = {0};
    setenv("GPUMGR_WAIT_MS", "abc", 1);
    assert_int_equal(LOAD(&l, &e, "--dir", dir), -EINVAL);
    assert_string_equal(e.text, "variable GPUMGR_WAIT_MS: wait_ms: \"abc\" is not a whole number from 10 to 60000");
    unsetenv("GPUMGR_WAIT_MS");

    setenv("GPUMGR_WAITMS", "5", 1); /* a slip is worth a word, no more */
    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    assert_non_null(strstr(l.warning, "GPUMGR_WAIT_MS"));
    unsetenv("GPUMGR_WAITMS");

    setenv("GPUMGR_BUILD", "/x", 1);
    assert_int_equal(LOAD(&l, &e, "--dir", dir), 0);
    assert_string_equal(l.warning, "");
    unsetenv("GPUMGR_BUILD");
}

/* Looking at GPUs must not depend on a file that someone is just editing. */
static void a_broken_file_is_a_warning_for_viewers(void **state) {
    struct loaded l;
    struct error e = {0};
    struct flags flags;
    char *argv[] = {(char *)(uintptr_t) "status", (char *)(uintptr_t) "--dir", dir, (char *)(uintptr_t) "--wait_ms=77"};
    write_file("{\"wait_ms\": 200, \"oops\": 1}");
    assert_int_equal(flags_parse(4, argv, NULL, 0, FLAGS_SETTINGS, &flags, &e), 0);
    assert_int_equal(settings_load(&flags, LOAD_LOOSE, &l, &e), 0);
    assert_non_null(strstr(l.warning, "oops"));
    assert_int_equal(l.values.wait_ms, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(later_ones_win, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ways_to_write_a_flag, set_up, tear_down),
        cmocka_unit_test_setup_teardown(paths_are_made_absolute, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_group_may_be_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_flags, set_up, tear_down),
        cmocka_unit_test_setup_teardown(variables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_file_is_a_warning_for_viewers, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
