/* The flags of a job as its JSON, the sentences about those that are wrong, and moments as people type them. */
#include "client/job_flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/when.h"
#include "tests/test.h"

enum { WORDS_MAX = 32 };
#define NOW_S 1763200000ll /* 2025-11-15 09:46:40 UTC, a Saturday */

static const struct job_flags_here here = {.cwd = "/home/ada", .shell = "/bin/zsh", .now_ns = NOW_S * NS_PER_S};

static int split(char *text, char **argv) {
    int n = 0;
    for (char *one; (one = strsep(&text, " "));) argv[n++] = one;
    argv[n] = NULL;
    return n;
}

/* What `gpumgr run WORDS` makes of its words. */
static int read_words(const char *typed, struct job_flags *f, struct buf *ret, struct error *e) {
    char text[512], *argv[WORDS_MAX];
    struct flag rows[JOB_FLAGS_MAX + 2];
    struct flags flags;
    size_t count = 0;
    *f = (struct job_flags){0};
    job_flags_rows(f, rows, &count);
    snprintf(text, sizeof text, "run%s%s", *typed ? " " : "", typed);
    int r = flags_parse(split(text, argv), argv, rows, count, FLAGS_COMMAND, &flags, e);
    if (r >= 0 && f->file) return job_flags_over(f, flags.command, flags.command_count, &here, ret, e);
    return r < 0 ? r : job_flags_json(f, flags.command, flags.command_count, &here, ret, e);
}

static void become_json(void **state) {
    static const struct {
        const char *typed, *want;
    } rows[] = {
        {"-- python train.py --gpus 9",                        "{\"command\":[\"python\",\"train.py\",\"--gpus\",\"9\"]}"          },
        {"python train.py --gpus 9",                           "{\"command\":[\"python\",\"train.py\",\"--gpus\",\"9\"]}"          },
        {"-- -- x",                                            "{\"command\":[\"--\",\"x\"]}"                                      },
        {"--gpus 2 -- a",                                      "{\"command\":[\"a\"],\"gpus\":2}"                                  },
        {"--gpu=0,3 a",                                        "{\"command\":[\"a\"],\"gpu_ids\":[0,3]}"                           },
        {"--gpu 0-2,GPU-1a-2b --gpu 7 a",                      "{\"command\":[\"a\"],\"gpu_ids\":[0,1,2,\"GPU-1a-2b\",7]}"         },
        {"--gpus 2 --of 0-3 a",                                "{\"command\":[\"a\"],\"gpus\":2,\"scope\":[0,1,2,3]}"              },
        {"--memory 40GiB --priority -5 a",                     "{\"command\":[\"a\"],\"memory\":\"40GiB\",\"priority\":-5}"        },
        {"--share 10GiB --over memory=end a",
         "{\"command\":[\"a\"],\"share\":\"10GiB\",\"over\":{\"memory\":\"end\"}}"                                                 },
        {"--deadline 2h --time-limit 1h30m a",                 "{\"command\":[\"a\"],\"deadline\":\"2h\",\"time_limit\":\"1h30m\"}"},
        {"--time_limit 1h --retries 3 a",                      "{\"command\":[\"a\"],\"time_limit\":\"1h\",\"retries\":3}"         },
        {"--finish-by 1763203600 a",                           "{\"command\":[\"a\"],\"finish_by\":1763203600}"                    },
        {"--finish-by 10:00 a",                                "{\"command\":[\"a\"],\"finish_by\":1763200800}"                    },
        {"--after 17,18:any --after 9 a",                      "{\"command\":[\"a\"],\"after\":[\"17\",\"18:any\",\"9\"]}"         },
        {"--array 1-100%8 a",                                  "{\"command\":[\"a\"],\"array\":\"1-100%8\"}"                       },
        {"--sweep lr=1e-3,1e-4 --sweep seed=1 a",
         "{\"command\":[\"a\"],\"sweep\":{\"lr\":[\"1e-3\",\"1e-4\"],\"seed\":[\"1\"]}}"                                           },
        {"--label team=vision --label x= a",                   "{\"command\":[\"a\"],\"labels\":{\"team\":\"vision\",\"x\":\"\"}}" },
        {"--env A=b=c,d a",                                    "{\"command\":[\"a\"],\"env\":{\"A\":\"b=c,d\"}}"                   },
        {"--cwd runs a",                                       "{\"command\":[\"a\"],\"cwd\":\"/home/ada/runs\"}"                  },
        {"--cwd /data a",                                      "{\"command\":[\"a\"],\"cwd\":\"/data\"}"                           },
        {"--image img:1",                                      "{\"image\":\"img:1\"}"                                             },
        {"--image img:1 --mount /a:/b --mount /c:/d:ro -- -v",
         "{\"command\":[\"-v\"],\"image\":\"img:1\",\"mounts\":[\"/a:/b\",\"/c:/d:ro\"]}"                                          },
        {"--notify terminal --notify mail:a@b a",              "{\"command\":[\"a\"],\"notify\":[\"terminal\",\"mail:a@b\"]}"      },
        {"--pty",                                              "{\"command\":[\"/bin/zsh\"],\"pty\":true}"                         },
        {"--pty --image img",                                  "{\"image\":\"img\",\"pty\":true}"                                  },
        {"--pty --name dbg -- gdb x",                          "{\"command\":[\"gdb\",\"x\"],\"name\":\"dbg\",\"pty\":true}"       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf got = {0};
        struct job_flags f;
        struct error e = {0};
        if (read_words(rows[i].typed, &f, &got, &e) < 0) fail_msg("%s: %s", rows[i].typed, e.text);
        if (!got.len || strcmp(got.s, rows[i].want) != 0) fail_msg("%s\n  became %s", rows[i].typed, got.s);
    }
}

static void are_refused(void **state) {
    static const struct {
        const char *typed, *because;
    } rows[] = {
        {"",                                  "there is no command"                               },
        {"--gpus 2",                          "there is no command"                               },
        {"--gpus 2 --",                       "there is no command"                               },
        {"--gpus two a",                      "--gpus: \"two\" is not a whole number from 1 to 64"},
        {"--gpus 0 a",                        "--gpus: \"0\""                                     },
        {"--gpus 1.5 a",                      "--gpus: \"1.5\""                                   },
        {"--gpus 99999999999999999999 a",     "--gpus:"                                           },
        {"--gpus 1 --gpus 2 a",               "--gpus: given twice"                               },
        {"--gpu , a",                         "--gpu: \",\" names no GPU"                         },
        {"--gpu= a",                          "--gpu: \"\" names no GPU"                          },
        {"--gpu 3-1 a",                       "--gpu: \"3-1\" is no range"                        },
        {"--gpu 0-9999 a",                    "--gpu: \"0-9999\" is no range"                     },
        {"--of 99999 a",                      "--of: \"99999\" names no GPU"                      },
        {"--gpu 0 --of 1 a",                  "--gpu and --of: only one"                          },
        {"--gpu 0 --gpus 1 a",                "--gpu and --gpus: only one"                        },
        {"--deadline 1h --finish-by 10:00 a", "--deadline and --finish-by: only one"              },
        {"--finish-by soon a",                "--finish-by: \"soon\" is no moment"                },
        {"--finish-by 1763199999 a",          "--finish-by: 1763199999 is over already"           },
        {"--priority 101 a",                  "--priority: \"101\""                               },
        {"--retries -1 a",                    "--retries: \"-1\""                                 },
        {"--env A a",                         "--env: \"A\" is not NAME=VALUE"                    },
        {"--env =b a",                        "--env: \"=b\" is not NAME=VALUE"                   },
        {"--env A=1 --env A=2 a",             "--env: A is given twice"                           },
        {"--sweep lr a",                      "--sweep: \"lr\" is not NAME=VALUE,VALUE"           },
        {"--name",                            "--name needs a value"                              },
        {"--gups 2 a",                        "did you mean --gpus"                               },
        {"-g 2 a",                            "no such flag as -g"                                },
        {"--pty=1 a",                         "--pty takes no value"                              },
        {"-- a \xff",                         "the command's word 2 is not UTF-8"                 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf got = {0};
        struct job_flags f;
        struct error e = {0};
        if (read_words(rows[i].typed, &f, &got, &e) >= 0) fail_msg("%s: taken as %s", rows[i].typed, got.s);
        if (!strstr(e.text, rows[i].because)) fail_msg("%s: %s", rows[i].typed, e.text);
        assert_int_equal(got.len, 0);
    }
}

static void stand_above_a_file(void **state) {
    static const struct {
        const char *typed, *file, *want;
    } rows[] = {
        {"--file x",                       "{\"gpus\": 1}",                       "{\"gpus\": 1}"                                },
        {"--file x --gpus 4",              "{\"gpus\":1,\"name\":\"a\"}",         "{\"gpus\":4,\"name\":\"a\"}"                  },
        {"--file x --env B=2 --label x=y", "{\"env\":{\"A\":\"1\",\"B\":\"0\"}}",
         "{\"env\":{\"A\":\"1\",\"B\":\"2\"},\"labels\":{\"x\":\"y\"}}"                                                          },
        {"--file x --name n -- b c",       "[{\"command\":\"a\"},{\"gpus\":2}]",
         "[{\"command\":[\"b\",\"c\"],\"name\":\"n\"},{\"gpus\":2,\"command\":[\"b\",\"c\"],\"name\":\"n\"}]"                    },
        {"--file x --pty",                 "{\"jobs\":[{\"command\":\"a\"}]}",    "{\"jobs\":[{\"command\":\"a\",\"pty\":true}]}"},
        {"--file x --gpu 0,3",             "{\"gpus\":2,\"scope\":[1]}",          "{\"gpu_ids\":[0,3]}"                          },
        {"--file x --gpus 3",              "{\"gpu_ids\":[1]}",                   "{\"gpus\":3}"                                 },
        {"--file x --deadline 1h",         "{\"finish_by\":1}",                   "{\"deadline\":\"1h\"}"                        },
        {"--file x --gpus 3",              "[7]",                                 "[7]"                                          },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf got = {0};
        struct job_flags f;
        struct error e = {0};
        buf_puts(&got, rows[i].file);
        if (read_words(rows[i].typed, &f, &got, &e) < 0) fail_msg("%s: %s", rows[i].typed, e.text);
        assert_string_equal(got.s, rows[i].want);
    }
}

static void sentences_name_the_flag(void **state) {
    static const struct {
        const char *typed, *said, *want;
    } rows[] = {
        {"--memory x a",      "memory: \"x\" is no size",                "--memory: \"x\" is no size"            },
        {"--of 0 --gpus 2 a", "scope: names 1 GPU, but gpus asks for 2", "--of: names 1 GPU, but gpus asks for 2"},
        {"--gpu 0,0 a",       "scope: GPU 0 is there twice",             "--gpu: GPU 0 is there twice"           },
        {"--gpu 0,0 a",       "gpu_ids: GPU 0 is there twice",           "--gpu: GPU 0 is there twice"           },
        {"--label a=b a",     "labels: \"a\" is not",                    "--label: \"a\" is not"                 },
        {"--env A=b a",       "env.A: is set by the queue",              "--env: is set by the queue"            },
        {"--time-limit 0s a", "time_limit: 0s",                          "--time-limit: 0s"                      },
        {"a",                 "there are 8 GPUs: 9 are too many",        "there are 8 GPUs: 9 are too many"      },
        {"a",                 "memory",                                  "memory"                                },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf got = {0};
        struct job_flags f;
        struct error e = {0};
        assert_int_equal(read_words(rows[i].typed, &f, &got, &e), 0);
        fail(&e, -EINVAL, "%s", rows[i].said);
        job_flags_rename(&f, &e);
        assert_string_equal(e.text, rows[i].want);
        assert_int_equal(e.code, -EINVAL);
    }
}

static void moments(void **state) {
    static const struct {
        const char *text;
        int64_t want_s; /* 0: refused */
    } rows[] = {
        {"09:46",                     NOW_S - 40 + 86400}, /* over today: tomorrow */
        {"09:47",                     NOW_S + 20        },
        {"9:47:01",                   NOW_S + 21        },
        {"tomorrow 09:47",            NOW_S + 20 + 86400},
        {"tomorrow 00:00",            1763251200        },
        {"2025-11-16 00:00",          1763251200        },
        {"2025-11-16T00:00:30",       1763251230        },
        {"2025-11-16T00:00:30Z",      1763251230        },
        {"2025-11-16T02:00:30+02:00", 1763251230        },
        {"2025-11-15 19:00-05:00",    1763251200        },
        {"1763251200",                1763251200        },
        {"2020-01-01 00:00",          1577836800        }, /* over, and that is for others to say */
        {"24:00",                     0                 },
        {"12:60",                     0                 },
        {"12:",                       0                 },
        {"tomorrow",                  0                 },
        {"2025-11-31 00:00",          0                 },
        {"2025-13-01 00:00",          0                 },
        {"2025-11-16",                0                 },
        {"2025-11-16 00:00 please",   0                 },
        {"2025-11-16T00:00+99:00",    0                 },
        {"17632512001234",            0                 },
        {"",                          0                 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t got = 0;
        struct error e = {0};
        int r = when_parse("finish-by", rows[i].text, here.now_ns, &got, &e);
        if ((r == 0) != (rows[i].want_s != 0) || got != rows[i].want_s * NS_PER_S)
            fail_msg("%s: %d, %lld %s", rows[i].text, r, (long long)(got / NS_PER_S), e.text);
    }
}

static void moments_as_text(void **state) {
    static const struct {
        int64_t at_s;
        const char *want;
    } rows[] = {
        {NOW_S + 60,         "09:47"           },
        {NOW_S + 86400,      "tomorrow 09:46"  },
        {NOW_S + 2 * 86400,  "Mon 17 Nov 09:46"},
        {NOW_S + 60 * 86400, "2026-01-14 09:46"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[WHEN_TEXT];
        when_text(rows[i].at_s * NS_PER_S, here.now_ns, text);
        assert_string_equal(text, rows[i].want);
    }
}

int main(void) {
    setenv("TZ", "UTC0", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(become_json),
        cmocka_unit_test(are_refused),
        cmocka_unit_test(stand_above_a_file),
        cmocka_unit_test(sentences_name_the_flag),
        cmocka_unit_test(moments),
        cmocka_unit_test(moments_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
