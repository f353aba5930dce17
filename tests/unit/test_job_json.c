/* A job file: what it may say becomes a record, what it may not is named with its key. */
#include "tests/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/job_json.h"
#include "model/moment.h"
#include "model/size.h"

#define SECOND 1000000000LL
#define NOW (1763200000 * SECOND)

static int record(const char *text, struct buf *b, struct error *e) {
    buf_clear(b);
    return job_json_record(text, strlen(text), NOW, b, e);
}

static const char *word_at(const struct job_words *w, unsigned i) {
    const char *at = job_word_next(w, NULL);
    while (at && i--) at = job_word_next(w, at);
    return at ? at : "(none)";
}

static void everything(void **state) {
    static const char text[] =
        "{\"command\":[\"python\",\"train.py\"],\"image\":\"img:1\",\"mounts\":[\"/d:/d:ro\"],"
        "\"env\":{\"A\":\"1\",\"B\":2,\"C\":0.5},\"cwd\":\"/x\",\"gpus\":2,\"scope\":[0,3,\"GPU-77\"],"
        "\"memory\":\"40GiB\",\"priority\":-3,\"finish_by\":1763203600.25,\"time_limit\":\"1h30m\",\"retries\":2,"
        "\"after\":[17,\"18:any\"],\"sweep\":{\"lr\":[0.001,\"1e-4\"],\"n\":8},\"array\":\"%2\",\"labels\":{\"team\":"
        "\"a b\"},"
        "\"notify\":[\"terminal\"],\"name\":\"big\",\"pty\":false,\"over\":{\"memory\":\"end\",\"idle\":\"warn\"}}";
    AUTO(buf_done) struct buf b = {0}, json = {0}, again = {0};
    struct job_spec s;
    struct error e = {0};
    if (record(text, &b, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    assert_string_equal(s.name, "big");
    assert_string_equal(s.image, "img:1");
    assert_string_equal(s.cwd, "/x");
    assert_true(s.command.count == 2 && s.mounts.count == 1 && s.env.count == 3 && s.scope.count == 3);
    assert_string_equal(word_at(&s.env, 1), "B=2");
    assert_string_equal(word_at(&s.env, 2), "C=0.5");
    assert_string_equal(word_at(&s.scope, 1), "3");
    assert_string_equal(word_at(&s.scope, 2), "GPU-77");
    assert_string_equal(word_at(&s.after, 0), "17");
    assert_string_equal(word_at(&s.after, 1), "18:any");
    assert_string_equal(word_at(&s.sweep, 0), "lr=0.001,1e-4");
    assert_string_equal(word_at(&s.sweep, 1), "n=8");
    assert_string_equal(word_at(&s.labels, 0), "team=a b");
    assert_true(s.gpus == 2 && s.memory_bytes == 40ull << 30 && s.priority == -3 && s.retries == 2);
    assert_true(s.finish_by_ns == 1763203600 * SECOND + SECOND / 4 && s.time_limit_ns == 5400 * SECOND);
    assert_true(s.share_over == JOB_OVER_END && s.idle_over == JOB_OVER_WARN && !s.is_pty);
    job_json_spec(&json, &s); /* and back */
    if (record(json.s, &again, &e) < 0) fail_msg("%s: %s", e.text, json.s);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.s, b.s, b.len);
}

static void short_forms(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct job_spec s;
    struct error e = {0};
    assert_int_equal(record("{\"command\":\"python x.py | tee log\",\"gpu_ids\":[1,0],\"share\":null}", &b, &e), 0);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    assert_int_equal(s.command.count, 3);
    assert_string_equal(word_at(&s.command, 0), "sh");
    assert_string_equal(word_at(&s.command, 2), "python x.py | tee log");
    assert_string_equal(s.name, "python");
    assert_true(s.gpus == 2 && s.scope.count == 2 && s.priority == 0 && s.retries == 0);
    assert_int_equal(record("{\"command\":[\"a\"],\"deadline\":\"2h\",\"share\":1048576,\"after\":5}", &b, &e), 0);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    assert_true(s.finish_by_ns == NOW + 7200 * SECOND && s.share_bytes == 1 << 20);
    assert_string_equal(word_at(&s.after, 0), "5");
    assert_int_equal(record("{\"command\":[\"a\"],\"finish_by\":\"2025-11-15T11:00:00.5+01:00\"}", &b, &e), 0);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    assert_true(s.finish_by_ns == 1763200800 * SECOND + SECOND / 2);
}

static void refusals(void **state) {
    static const struct {
        const char *text, *starts;
    } rows[] = {
        {"",                                                                   "line"                                    },
        {"{\"command\":[\"a\"]} x",                                            "line"                                    },
        {"{\"command\":[\"a\"],\"command\":[\"b\"]}",                          "line"                                    },
        {"[]",                                                                 "a job is"                                },
        {"7",                                                                  "line"                                    },
        {"{}",                                                                 "command: "                               },
        {"{\"command\":[]}",                                                   "command: "                               },
        {"{\"command\":\"\"}",                                                 NULL                                      },
        {"{\"command\":7}",                                                    "command: "                               },
        {"{\"command\":[\"a\",7]}",                                            "command[1]: "                            },
        {"{\"command\":[\"a\"],\"gpu\":1}",                                    "gpu: "                                   },
        {"{\"command\":[\"a\"],\"zzz\":1}",                                    "zzz: "                                   },
        {"{\"command\":[\"a\"],\"gpus\":2.5}",                                 "gpus: "                                  },
        {"{\"command\":[\"a\"],\"gpus\":\"2\"}",                               "gpus: "                                  },
        {"{\"command\":[\"a\"],\"gpus\":0}",                                   "gpus: "                                  },
        {"{\"command\":[\"a\"],\"gpus\":99999999999}",                         "gpus: "                                  },
        {"{\"command\":[\"a\"],\"gpus\":3,\"gpu_ids\":[0,1]}",                 "gpus: "                                  },
        {"{\"command\":[\"a\"],\"gpu_ids\":[]}",                               "gpu_ids: "                               },
        {"{\"command\":[\"a\"],\"scope\":[1],\"gpu_ids\":[1]}",                "gpu_ids: "                               },
        {"{\"command\":[\"a\"],\"scope\":\"0\"}",                              "scope: "                                 },
        {"{\"command\":[\"a\"],\"scope\":[-1]}",                               "scope[0]: "                              },
        {"{\"command\":[\"a\"],\"scope\":[\"x\"]}",                            "scope: "                                 },
        {"{\"command\":[\"a\"],\"memory\":\"40\"}",                            "memory: \"40\""                          },
        {"{\"command\":[\"a\"],\"memory\":-1}",                                "memory: "                                },
        {"{\"command\":[\"a\"],\"memory\":1.5}",                               "memory: "                                },
        {"{\"command\":[\"a\"],\"share\":\"1GiB\",\"gpus\":2}",                "share: "                                 },
        {"{\"command\":[\"a\"],\"time_limit\":60}",                            "time_limit: "                            },
        {"{\"command\":[\"a\"],\"time_limit\":\"60\"}",                        "time_limit: \"60\""                      },
        {"{\"command\":[\"a\"],\"deadline\":\"soon\"}",                        "deadline: "                              },
        {"{\"command\":[\"a\"],\"deadline\":\"1h\",\"finish_by\":9999999999}", "finish_by: "                             },
        {"{\"command\":[\"a\"],\"finish_by\":5}",                              "finish_by: "                             },
        {"{\"command\":[\"a\"],\"finish_by\":\"tomorrow\"}",                   "finish_by: "                             },
        {"{\"command\":[\"a\"],\"finish_by\":\"2027-01-01T00:00\"}",           "finish_by: "                             },
        {"{\"command\":[\"a\"],\"finish_by\":true}",                           "finish_by: "                             },
        {"{\"command\":[\"a\"],\"env\":[]}",                                   "env: "                                   },
        {"{\"command\":[\"a\"],\"env\":{\"A\":[]}}",                           "env.A: "                                 },
        {"{\"command\":[\"a\"],\"env\":{\"A=B\":\"\"}}",                       "env.A=B: "                               },
        {"{\"command\":[\"a\"],\"env\":{\"1\":\"\"}}",                         "env: "                                   },
        {"{\"command\":[\"a\"],\"sweep\":{\"lr\":[]}}",                        "sweep.lr: "                              },
        {"{\"command\":[\"a\"],\"sweep\":{\"lr\":[\"1,2\"]}}",                 "sweep.lr: "                              },
        {"{\"command\":[\"a\"],\"sweep\":{\"lr\":[{}]}}",                      "sweep.lr: "                              },
        {"{\"command\":[\"a\"],\"labels\":{\"\":\"x\"}}",                      "labels: "                                },
        {"{\"command\":[\"a\"],\"over\":{\"memory\":\"kill\"}}",               "over.memory: "                           },
        {"{\"command\":[\"a\"],\"over\":{\"cpu\":\"end\"}}",                   "over.cpu: "                              },
        {"{\"command\":[\"a\"],\"over\":\"end\"}",                             "over: "                                  },
        {"{\"command\":[\"a\"],\"pty\":1}",                                    "pty: "                                   },
        {"{\"command\":[\"a\"],\"priority\":\"high\"}",                        "priority: "                              },
        {"{\"command\":[\"a\"],\"priority\":1000}",                            "priority: "                              },
        {"{\"command\":[\"a\"],\"after\":[0.5]}",                              "after[0]: "                              },
        {"{\"command\":[\"a\"],\"after\":[-4]}",                               "after[0]: "                              },
        {"{\"command\":[\"a\"],\"array\":5}",                                  "array: "                                 },
        {"{\"command\":[\"a\"],\"array\":\"a\"}",                              "array: "                                 },
        {"{\"command\":[\"a\"],\"notify\":[\"x\"]}",                           "notify: "                                },
        {"{\"command\":[\"a\"],\"mounts\":[\"/a:/b\"]}",                       "mounts: "                                },
        {"{\"command\":[\"a\"],\"gpu_ids\":[0,0]}",                            "gpu_ids: GPU 0"                          },
        {"{\"command\":[\"a\"],\"gpus\":\"two\"}",                             "gpus: not a whole number from 1 to 64"   },
        {"{\"command\":[\"a\\u0000\"]}",                                       "line 1: a text cannot have \\u0000 in it"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        int r = record(rows[i].text, &b, &e);
        if (!rows[i].starts) { /* an empty text for sh -c is odd but sound */
            assert_int_equal(r, 0);
            continue;
        }
        if (r >= 0) fail_msg("taken: %s", rows[i].text);
        if (strncmp(e.text, rows[i].starts, strlen(rows[i].starts)) != 0) fail_msg("%s: %s", rows[i].text, e.text);
        assert_int_equal(b.len, 0);
    }
    AUTO(buf_done) struct buf b = {0};
    struct error e = {0};
    assert_true(record("{\"command\":[\"a\"],\"gpu\":1}", &b, &e) < 0);
    assert_non_null(strstr(e.text, "\"gpus\"")); /* what was meant */
}

static void count(void *ctx, const void *bytes, size_t len) {
    struct job_spec s;
    struct error e;
    assert_int_equal(job_decode(bytes, len, &s, &e), 0);
    ++*(int *)ctx;
}

static int records(const char *text, int *seen, struct error *e) {
    *seen = 0;
    return job_json_records(text, strlen(text), NOW, count, seen, e);
}

static void several(void **state) {
    struct error e = {0};
    int seen;
    assert_int_equal(records("{\"command\":[\"a\"]}", &seen, &e), 1);
    assert_int_equal(seen, 1);
    assert_int_equal(records("[{\"command\":[\"a\"]},{\"command\":[\"b\"]}]", &seen, &e), 2);
    assert_int_equal(seen, 2);
    assert_int_equal(records("{\"jobs\":[{\"command\":[\"a\"]},{\"image\":\"b\"}]}", &seen, &e), 2);
    assert_true(records("{\"jobs\":[{\"command\":[\"a\"]},{\"gpus\":1}]}", &seen, &e) < 0);
    assert_int_equal(seen, 0);
    assert_int_equal(strncmp(e.text, "jobs[1]: command: ", 18), 0);
    assert_true(records("{\"jobs\":[]}", &seen, &e) < 0);
    assert_true(records("[]", &seen, &e) < 0);
    assert_true(records("{\"jobs\":[{\"command\":[\"a\"]}],\"gpus\":1}", &seen, &e) < 0);
    assert_int_equal(strncmp(e.text, "gpus: ", 6), 0);
}

static void circles(void **state) {
    static const struct {
        const char *text, *starts;
    } rows[] = {
        {"[{\"name\":\"a\",\"command\":[\"x\"],\"after\":[\"b:any\"]},{\"name\":\"b\",\"command\":[\"x\"],\"after\":["
         "\"a\"]}]",                                                              "jobs[0]: after: b:any waits for this job in its turn"},
        {"[{\"name\":\"a\",\"command\":[\"x\"],\"after\":[\"a\"]}]",                       "jobs[0]: after: a waits for this job"                },
        {"[{\"name\":\"a\",\"command\":[\"x\"]},{\"command\":[\"x\"],\"after\":[\"a\"]}]",
         "jobs[1]: after: a is of the same file"                                                                                                 },
        {"[{\"name\":\"7\",\"command\":[\"x\"]},{\"command\":[\"x\"],\"after\":[\"7\"]}]", NULL                                                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        int seen, r = records(rows[i].text, &seen, &e);
        if ((r < 0) != (rows[i].starts != NULL)) fail_msg("%s: %d", rows[i].text, r);
        if (rows[i].starts && strncmp(e.text, rows[i].starts, strlen(rows[i].starts)) != 0) fail_msg("%s", e.text);
    }
}

static void shown(void **state) {
    AUTO(buf_done) struct buf b = {0}, json = {0};
    struct job_spec s;
    struct error e = {0};
    assert_int_equal(
        record("{\"command\":[\"a\"],\"env\":{\"KEY\":\"secret\"},\"notify\":[\"webhook:http://x/secret\"]}", &b, &e),
        0);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    job_json_members(&json, &s);
    assert_null(strstr(json.s, "secret"));
    assert_non_null(strstr(json.s, "\"memory_bytes\":null"));
    assert_non_null(strstr(json.s, "\"finish_by\":null"));
    assert_non_null(strstr(json.s, "\"scope\":[]"));
}

static void sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } rows[] = {
        {"40GiB",                        40ull << 30},
        {"40G",                          40ull << 30},
        {"40 gib",                       40ull << 30},
        {"1.5GiB",                       3ull << 29 },
        {"40GB",                         40000000000},
        {"512MiB",                       512 << 20  },
        {"7B",                           7          },
        {"1024TiB",                      1ull << 50 },
        {"1025TiB",                      0          },
        {"40",                           0          },
        {"",                             0          },
        {"GiB",                          0          },
        {"-1GiB",                        0          },
        {"1e9B",                         0          },
        {"1.2.3G",                       0          },
        {".5GiB",                        0          },
        {"0GiB",                         0          },
        {"4XiB",                         0          },
        {"9999999999999999999999999GiB", 0          },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t got = 0, back = 0;
        struct error e = {0};
        char text[SIZE_TEXT];
        int r = size_parse(rows[i].text, &got, &e);
        if ((r >= 0) != (rows[i].want != 0) || got != rows[i].want) fail_msg("%s: %s", rows[i].text, e.text);
        if (r < 0) continue;
        size_text(got, text);
        assert_int_equal(size_parse(text, &back, &e), 0);
        assert_true(back == got);
    }
}

static void moments(void **state) {
    static const struct {
        const char *text;
        int64_t want_s; /* -1: refused */
    } rows[] = {
        {"1970-01-01T00:00Z",         0         },
        {"2026-11-15T10:00:00Z",      1794736800},
        {"2026-11-15 10:00:00Z",      1794736800},
        {"2026-11-15T11:00:00+01:00", 1794736800},
        {"2026-11-15T04:30:00-0530",  1794736800},
        {"2024-02-29T00:00:00Z",      1709164800},
        {"2023-02-29T00:00:00Z",      -1        },
        {"2100-02-29T00:00:00Z",      -1        },
        {"2026-11-15T10:00:00",       -1        },
        {"2026-11-15",                -1        },
        {"2026-13-15T10:00:00Z",      -1        },
        {"2026-11-15T24:00:00Z",      -1        },
        {"2026-11-15T10:00:00Zx",     -1        },
        {"1970-01-01T00:00+01:00",    -1        },
        {"",                          -1        },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t got = -SECOND;
        struct error e = {0};
        int r = moment_parse(rows[i].text, &got, &e);
        if ((r >= 0) != (rows[i].want_s >= 0) || got != rows[i].want_s * SECOND)
            fail_msg("%s: %lld %s", rows[i].text, (long long)(got / SECOND), e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything), cmocka_unit_test(short_forms), cmocka_unit_test(refusals),
        cmocka_unit_test(several),    cmocka_unit_test(circles),     cmocka_unit_test(shown),
        cmocka_unit_test(sizes),      cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
