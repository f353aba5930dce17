/* A job file: what it may say becomes a record, what it may not is named with its key. */
#include "tests/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/job_after.h"
#include "model/job_json.h"
#include "model/job_match.h"
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

/* What each job of a document waits for, as its record has it: "a: -1,17; b: ". */
static void waits(void *ctx, const void *bytes, size_t len) {
    struct buf *b = ctx;
    struct job_spec s;
    struct error e;
    assert_int_equal(job_decode(bytes, len, &s, &e), 0);
    buf_printf(b, "%s%s:", b->len ? "; " : "", s.name);
    for (const char *w = NULL; (w = job_word_next(&s.after, w));) buf_printf(b, " %s", w);
}

/* {name after} with commas, as a document: "a b:any,c" is job a after b:any and c. */
static void document(const char *const jobs[], struct buf *b) {
    buf_clear(b);
    for (size_t i = 0; jobs[i]; i++) {
        size_t n = strcspn(jobs[i], " ");
        buf_printf(b, "%s{\"name\":\"%.*s\",\"command\":[\"x\"],\"after\":[", i ? "," : "[", (int)n, jobs[i]);
        for (const char *at = jobs[i] + n; *at;) {
            size_t len = strcspn(at + 1, ",");
            buf_printf(b, "%s\"%.*s\"", at == jobs[i] + n ? "" : ",", (int)len, at + 1);
            at += 1 + len;
        }
        buf_puts(b, "]}");
    }
    buf_putc(b, ']');
}

static void pipelines(void **state) {
    static const struct {
        const char *jobs[6];
        const char *want, *refused; /* the beginning of the sentence */
    } rows[] = {
        {{"a", "b a"},                        "a:; b: -1",                         NULL                                                                         },
        {{"b a", "a"},                        "b: +1; a:",                         NULL                                                                         }, /* in any order */
        {{"a", "b a", "c a:any,b,17,18:any"}, "a:; b: -1; c: -2:any -1 17 18:any", NULL                                                                         },
        {{"a", "d b,c", "b a", "c a"},        "a:; d: +1 +2; b: -2; c: -3",        NULL                                                                         },
        {{"7", "b 7"},                        "7:; b: 7",                          NULL                                                                         }, /* a number is a number */
        {{"x:any", "b x:any:any"},            "x:any:; b: -1:any",                 NULL                                                                         },
        {{"a", "a", "b"},                     "a:; a:; b:",                        NULL                                                                         }, /* nobody means one of them */
        {{"a", "-1", "b -1"},                 "a:; -1:; b: -1",                    NULL                                                                         }, /* a name, however it looks */
        {{"a a"},                             NULL,                                "jobs[0]: after: \"a\" is this job itself"                                   },
        {{"b", "a a:any"},                    NULL,                                "jobs[1]: after: \"a\" is this job itself"                                   },
        {{"a b:any", "b a"},                  NULL,                                "jobs[0]: after: \"b\" waits for this job in its turn"                       },
        {{"x", "c b", "a c", "b a", "y a"},   NULL,                                "jobs[1]: after: \"b\" waits for this job in its turn"                       },
        {{"y b", "a b", "b a"},               NULL,                                "jobs[1]: after: \"b\" waits for this job in its turn"                       },
        {{"prepare", "b prepar"},             NULL,                                "jobs[1]: after: no job here is called \"prepar\"; did you mean \"prepare\"?"},
        {{"a", "b nothing-like-it"},          NULL,                                "jobs[1]: after: \"nothing-like-it\" is neither the number of a job"         },
        {{"a", "b -1"},                       NULL,                                "jobs[1]: after: \"-1\" is neither"                                          }, /* as a record has it: nobody else writes that */
        {{"a", "b +1:any"},                   NULL,                                "jobs[1]: after: \"+1:any\" is neither"                                      },
        {{"a", "a", "b a"},                   NULL,                                "jobs[2]: after: jobs[0] and jobs[1] are both called \"a\""                  },
        {{"a", "b a", "a"},                   NULL,                                "jobs[1]: after: jobs[0] and jobs[2] are both called \"a\""                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf text = {0}, got = {0};
        struct error e = {0};
        document(rows[i].jobs, &text);
        int r = job_json_records(text.s, text.len, NOW, waits, &got, &e);
        if ((r < 0) != (rows[i].refused != NULL)) fail_msg("%s: %s", text.s, e.text);
        if (r < 0 && strncmp(e.text, rows[i].refused, strlen(rows[i].refused)) != 0) fail_msg("%s: %s", text.s, e.text);
        if (r < 0)
            assert_int_equal(got.len, 0);
        else
            assert_string_equal(got.s, rows[i].want);
    }
    AUTO(buf_done) struct buf b = {0};
    struct error e = {0};
    assert_true(record("{\"name\":\"a\",\"command\":[\"x\"],\"after\":\"-1\"}", &b, &e) <
                0); /* one alone has no neighbours */
    assert_int_equal(strncmp(e.text, "after: \"-1\" is not the number of a job", 38), 0);
}

/* Ten thousand in a row, each behind the next; then the last behind the first. */
static void long_rows(void **state) {
    for (int is_circle = 0; is_circle < 2; is_circle++) {
        AUTO(buf_done) struct buf text = {0};
        struct error e = {0};
        int seen = 0, n = (int)JOB_JSON_JOBS_MAX;
        for (int i = 0; i < n; i++) {
            buf_printf(&text, "%s{\"name\":\"n%d\",\"command\":\"x\"", i ? "," : "[", i);
            if (i < n - 1 || is_circle) buf_printf(&text, ",\"after\":\"n%d\"", (i + 1) % n);
            buf_puts(&text, "}");
        }
        buf_putc(&text, ']');
        int r = job_json_records(text.s, text.len, NOW, count, &seen, &e);
        assert_int_equal(r, is_circle ? -EINVAL : n);
        if (is_circle) assert_int_equal(strncmp(e.text, "jobs[0]: after: \"n1\" waits", 26), 0);
    }
}

static void steps(void **state) {
    static const struct {
        const char *after[5];
        uint32_t step[5];
        const char *refused;
        size_t at;
    } rows[] = {
        {{"", "", ""},                    {1, 1, 1},       NULL,                                  0},
        {{"", "-1", "-1"},                {1, 2, 3},       NULL,                                  0},
        {{"+2", "", "-1"},                {3, 1, 2},       NULL,                                  0},
        {{"", "-1", "-2:any", "-1", "9"}, {1, 2, 2, 3, 1}, NULL,                                  0},
        {{"", "-2"},                      {0},             "after: \"-2\" is no place",           1},
        {{"+1"},                          {0},             "after: \"+1\" is no place",           0},
        {{"", "+1", "-1"},                {0},             "after: \"job 2\" waits for this job", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static const char *const names[] = {"job 0", "job 1", "job 2", "job 3", "job 4"};
        struct job_spec jobs[5] = {0};
        struct error e = {0};
        uint32_t step[5] = {0};
        size_t n = 0, at = 0;
        for (; n < 5 && rows[i].after[n]; n++) {
            const char *w = rows[i].after[n];
            jobs[n].name = names[n];
            if (*w) jobs[n].after = (struct job_words){w, strlen(w) + 1, 1};
        }
        int r = job_after_check(jobs, n, step, &at, &e);
        if ((r < 0) != (rows[i].refused != NULL)) fail_msg("row %zu: %s", i, e.text);
        if (r < 0 && (strncmp(e.text, rows[i].refused, strlen(rows[i].refused)) != 0 || at != rows[i].at))
            fail_msg("row %zu: %zu: %s", i, at, e.text);
        for (size_t k = 0; r >= 0 && k < n; k++) assert_int_equal(step[k], rows[i].step[k]);
    }
}

static void after_words(void **state) {
    static const struct {
        const char *word;
        bool is_good;
        const char *number; /* of job 100 */
    } rows[] = {
        {"17",                  true,  "17"     },
        {"17:any",              true,  "17:any" },
        {"-1",                  true,  "99"     },
        {"+2:any",              true,  "102:any"},
        {"-99999",              true,  "-99899" },
        {"0",                   false, NULL     },
        {"-0",                  false, NULL     },
        {"+01",                 false, NULL     },
        {"-100000",             false, NULL     },
        {"",                    false, NULL     },
        {"+",                   false, NULL     },
        {"-:any",               false, NULL     },
        {"17:",                 false, NULL     },
        {"17:anything",         false, NULL     },
        {"1234567890123456789", false, NULL     },
        {"--1",                 false, NULL     },
        {"name",                false, NULL     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf again = {0}, numbers = {0};
        struct job_after a;
        bool is_good = job_after_read(rows[i].word, &a);
        if (is_good != rows[i].is_good) fail_msg("%s", rows[i].word);
        if (!is_good) continue;
        job_after_put(&again, &a);
        assert_string_equal(again.s, rows[i].word);
        const struct job_spec s = {.after = job_words_of(&again)};
        job_after_numbers(&s, 100, &numbers);
        assert_string_equal(numbers.s, rows[i].number);
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

static void matches(void **state) {
    static const struct {
        const char *name, *labels;
        bool want;
    } rows[] = {
        {NULL,            NULL,             true },
        {"train-7",       NULL,             true },
        {"train",         NULL,             false},
        {"train*",        NULL,             true },
        {"*",             NULL,             true },
        {"*-?",           NULL,             true },
        {"*-??",          NULL,             false},
        {"t*n*7",         NULL,             true },
        {"t*x*7",         NULL,             false},
        {"train-7?",      NULL,             false},
        {"*r*a*i*n*-*7*", NULL,             true },
        {NULL,            "team=vision",    true },
        {NULL,            "team",           true },
        {NULL,            "tea",            false},
        {NULL,            "team=visio",     false},
        {NULL,            "team=",          false},
        {NULL,            "run=7,team",     true },
        {NULL,            "run=8,team",     false},
        {NULL,            "note=a\\,b\\\\", true },
        {"train-*",       "run",            true },
        {"other*",        "run",            false},
    };
    AUTO(buf_done) struct buf b = {0};
    struct job_spec s;
    struct error e = {0};
    assert_int_equal(
        record(
            "{\"command\":\"x\",\"name\":\"train-7\",\"labels\":{\"team\":\"vision\",\"run\":7,\"note\":\"a,b\\\\\"}}",
            &b, &e),
        0);
    assert_int_equal(job_decode(b.s, b.len, &s, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf words = {0};
        if (rows[i].labels) assert_int_equal(job_match_labels(rows[i].labels, &words, &e), 0);
        const struct job_match m = {rows[i].name, job_words_of(&words)};
        if (job_match(&m, &s) != rows[i].want) fail_msg("%s %s", rows[i].name, rows[i].labels);
    }
    static const char *const bad[] = {"", ",", "a,", ",a", "=b", "a=b,=c"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO(buf_done) struct buf words = {0};
        if (job_match_labels(bad[i], &words, &e) >= 0) fail_msg("%s was taken", bad[i]);
    }
    AUTO(buf_done) struct buf text = {0}, words = {0};
    job_match_put(&text, "note=a,b\\");
    job_match_put(&text, "team");
    assert_int_equal(job_match_labels(text.s, &words, &e), 0);
    const struct job_match both = {NULL, job_words_of(&words)};
    assert_true(job_match(&both, &s) && both.labels.count == 2);
}

/* A pattern of many stars takes no longer than it is long: it is looked at where commits wait. */
static void stars(void **state) {
    AUTO(buf_done) struct buf pattern = {0};
    char name[JOB_NAME_MAX];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 60; i++) buf_puts(&pattern, "*a");
    buf_puts(&pattern, "b");
    const struct job_spec s = {.name = name};
    const struct job_match m = {.name = pattern.s};
    for (int i = 0; i < 1000; i++) assert_false(job_match(&m, &s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything), cmocka_unit_test(short_forms), cmocka_unit_test(refusals),
        cmocka_unit_test(several),    cmocka_unit_test(pipelines),   cmocka_unit_test(long_rows),
        cmocka_unit_test(steps),      cmocka_unit_test(after_words), cmocka_unit_test(matches),
        cmocka_unit_test(stars),      cmocka_unit_test(shown),       cmocka_unit_test(sizes),
        cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
