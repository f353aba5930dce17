/* A repeating job's wish, and what becomes of its times: each once, whatever clocks and restarts do. */
#include "model/repeat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_json.h"
#include "tests/test.h"

#define NOW_NS (1794700000LL * 1000000000)
#define HOUR 3600

static int record(const char *repeat, struct buf *b, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    buf_clear(b);
    buf_printf(&text, "{\"command\":[\"train\"],%s}", repeat);
    return job_json_record(text.s, text.len, NOW_NS, b, e);
}

/* ---- the wish ---- */

static void there_and_back(void **s) {
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"\"repeat\":{\"cron\":\"0 3 * * *\",\"zone\":\"Europe/Berlin\"}",
         "{\"cron\":\"0 3 * * *\",\"zone\":\"Europe/Berlin\",\"late\":\"10m\",\"overlap\":\"skip\"}"},
        {"\"repeat\":{\"overlap\":\"queue\",\"late\":\"90s\",\"cron\":\"  0   3\\t* * mon \",\"zone\":null}",
         "{\"cron\":\"0 3 * * mon\",\"late\":\"1m30s\",\"overlap\":\"queue\"}"                      },
        {"\"repeat\":{\"interval\":\"R/2026-11-15T03:00:00Z/P1D\",\"overlap\":\"cancel\"}",
         "{\"interval\":\"R/2026-11-15T03:00:00Z/P1D\",\"late\":\"10m\",\"overlap\":\"cancel\"}"    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0}, again = {0}, json = {0}, shown = {0};
        struct job_spec spec;
        struct repeat_spec r;
        struct error e;
        if (record(rows[i].in, &b, &e) < 0) fail_msg("%s", e.text);
        if (job_decode(b.s, b.len, &spec, &e) < 0) fail_msg("%s", e.text);
        assert_int_equal(repeat_spec_read(&spec.repeat, &r, &e), 0);
        repeat_spec_json(&shown, &r);
        assert_string_equal(shown.s, rows[i].out);
        job_encode(&spec, &again);
        assert_true(again.len == b.len && memcmp(again.s, b.s, b.len) == 0);
        job_json_spec(&json, &spec);
        buf_clear(&again);
        if (job_json_record(json.s, json.len, NOW_NS, &again, &e) < 0) fail_msg("%s", e.text);
        assert_true(again.len == b.len && memcmp(again.s, b.s, b.len) == 0);
    }
}

/* One that changes another says so in its record, and nowhere else. */
static void an_edit(void **s) {
    static const char *const bad[] = {"edits=0", "edits=+7", "edits=07", "edits=7x", "edits=", "edit=7"};
    AUTO(buf_done) struct buf b = {0}, json = {0}, words = {0};
    struct job_spec spec;
    struct repeat_spec r;
    struct error e;
    if (record("\"repeat\":{\"cron\":\"@daily\",\"edits\":7}", &b, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(job_decode(b.s, b.len, &spec, &e), 0);
    assert_int_equal(repeat_spec_read(&spec.repeat, &r, &e), 0);
    assert_int_equal(r.edits, 7);
    repeat_spec_json(&json, &r);
    assert_null(strstr(json.s, "edits"));
    r.edits = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct repeat_spec ignored;
        buf_clear(&words);
        repeat_spec_write(&r, &words);
        job_word_put(&words, bad[i]);
        const struct job_words w = job_words_of(&words);
        if (repeat_spec_read(&w, &ignored, &e) != -EPROTO) fail_msg("%s was taken", bad[i]);
    }
}

static void what_is_refused(void **s) {
    static const struct {
        const char *in, *sentence;
    } rows[] = {
        {"\"repeat\":\"daily\"",                                                         "repeat: not an object"                                          },
        {"\"repeat\":{}",                                                                "repeat.cron: there is neither cron nor interval"                },
        {"\"repeat\":{\"cron\":\"0 0 30 2 *\"}",                                         "repeat.cron: \"0 0 30 2 *\" never comes: no year has such a day"},
        {"\"repeat\":{\"cron\":\"@daily\",\"interval\":\"R/2026-11-15T03:00:00Z/P1D\"}", "only one makes sense"                                           },
        {"\"repeat\":{\"interval\":\"R/2026-11-15T03:00:00Z/PT5S\"}",                    "more often than once a minute"                                  },
        {"\"repeat\":{\"cron\":\"@daily\",\"zone\":\"../../etc/passwd\"}",
         "repeat.zone: \"../../etc/passwd\" is no time"                                                                                                   },
        {"\"repeat\":{\"cron\":\"@daily\",\"late\":\"10\"}",                             "repeat.late: "                                                  },
        {"\"repeat\":{\"cron\":\"@daily\",\"late\":\"500ms\"}",                          "repeat.late: not from 1s to 366 days"                           },
        {"\"repeat\":{\"cron\":\"@daily\",\"late\":600}",                                "repeat.late: not a text in quotes"                              },
        {"\"repeat\":{\"cron\":\"@daily\",\"overlap\":\"wait\"}",
         "repeat.overlap: \"wait\" is neither skip, queue nor"                                                                                            },
        {"\"repeat\":{\"cron\":\"@daily\",\"edits\":-3}",                                "repeat.edits: is no repeat's number"                            },
        {"\"repeat\":{\"cron\":\"@daily\",\"edits\":\"3\"}",                             "repeat.edits: is no repeat's number"                            },
        {"\"repeat\":{\"crom\":\"@daily\"}",                                             "repeat.crom: there is no such key; did you mean \"cron\"?"      },
        {"\"repeat\":{\"cron\":\"@daily\"},\"after\":[17]",                              "after: does not go with repeat"                                 },
        {"\"repeat\":{\"cron\":\"@daily\"},\"deadline\":\"2h\"",                         "finish_by: does not go with repeat"                             },
        {"\"repeat\":{\"cron\":\"@daily\"},\"pty\":true",                                "pty: does not go with repeat"                                   },
        {"\"repeat\":{\"cron\":\"@daily\"},\"service\":{}",                              "service: does not go with repeat"                               },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e;
        if (record(rows[i].in, &b, &e) >= 0) fail_msg("%s was taken", rows[i].in);
        if (!strstr(e.text, rows[i].sentence)) fail_msg("%s: %s", rows[i].in, e.text);
    }
}

/* Words that say the same in another way are nobody's. */
static void only_one_way(void **s) {
    static const char *const rows[][4] = {
        {"cron=0 3 * * *",  "zone=",          "late=10m",  "overlap=skip"},
        {"cron=0 3  * * *", "zone=",          "late=10m",  "overlap=skip"},
        {"cron=0 3 * * *",  "zone=",          "late=600s", "overlap=skip"},
        {"cron=0 3 * * *",  "zone=",          "late=10m",  "overlap=SKIP"},
        {"zone=",           "cron=0 3 * * *", "late=10m",  "overlap=skip"},
        {"cron=",           "zone=",          "late=10m",  "overlap=skip"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct repeat_spec r;
        struct error e;
        for (int k = 0; k < 4; k++) job_word_put(&b, rows[i][k]);
        const struct job_words w = job_words_of(&b);
        int result = repeat_spec_read(&w, &r, &e);
        if ((result >= 0) != (i == 0)) fail_msg("row %zu: %d", i, result);
    }
}

/* ---- the step ---- */

static const struct zone utc;

static struct recur every(const char *cron) {
    struct recur r;
    struct error e;
    if (recur_parse(cron, "", &r, &e) < 0) fail_msg("%s", e.text);
    return r;
}

static struct repeat_step step(enum repeat_overlap overlap, int64_t mark, int64_t now, unsigned open, bool is_paused) {
    const struct repeat_spec spec = {"0 * * * *", "", "", 2LL * HOUR * 1000000000, overlap};
    const struct recur r = every(spec.cron);
    const struct repeat_now at = {mark, now, open, is_paused};
    struct repeat_step out;
    repeat_step(&spec, &r, &utc, &at, &out);
    return out;
}

/* Fates as letters. */
static const char *letters(const struct repeat_step *s, char ret[REPEAT_STEP_MAX + 2]) {
    for (size_t i = 0; i < s->count; i++) ret[i] = "RMSPH"[s->slot[i].fate];
    ret[s->count] = 0;
    return ret;
}

static void steps(void **s) {
    static const struct {
        enum repeat_overlap overlap;
        double mark_h, now_h;
        unsigned open;
        bool is_paused;
        const char *fates;
        double want_mark_h;
    } rows[] = {
        {REPEAT_SKIP,   10,   10.9, 0,  false, "",      10},
        {REPEAT_SKIP,   10,   11,   0,  false, "R",     11},
        {REPEAT_SKIP,   10,   11,   1,  false, "S",     11},
        {REPEAT_SKIP,   10,   13,   0,  false, "SSR",   13}, /* of several that are due the last */
        {REPEAT_SKIP,   10,   15.5, 0,  false, "MMMSR", 15}, /* later than two hours: missed */
        {REPEAT_SKIP,   10,   15.5, 2,  false, "MMMSS", 15},
        {REPEAT_CANCEL, 10,   15.5, 2,  false, "MMMSR", 15},
        {REPEAT_QUEUE,  10,   15.5, 2,  false, "MMMR",  14}, /* all of them, one a step */
        {REPEAT_QUEUE,  14,   15.5, 3,  false, "R",     15},
        {REPEAT_QUEUE,  14,   15.5, 16, false, "S",     15}, /* but not without end */
        {REPEAT_SKIP,   10,   13,   0,  true,  "PPP",   13},
        {REPEAT_SKIP,   15,   11,   0,  false, "",      15}, /* set back: nothing comes again */
        {REPEAT_SKIP,   10.5, 11,   0,  false, "R",     11},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char have[REPEAT_STEP_MAX + 2];
        struct repeat_step got = step(rows[i].overlap, (int64_t)(rows[i].mark_h * HOUR),
                                      (int64_t)(rows[i].now_h * HOUR), rows[i].open, rows[i].is_paused);
        if (strcmp(letters(&got, have), rows[i].fates) != 0 || got.mark_s != (int64_t)(rows[i].want_mark_h * HOUR))
            fail_msg("row %zu: %s up to %lld", i, have, (long long)got.mark_s);
    }
}

static void a_long_sleep(void **s) {
    struct repeat_step got = step(REPEAT_SKIP, 0, 500 * HOUR, 0, false);
    assert_int_equal(got.count, REPEAT_STEP_MAX + 1);
    assert_int_equal(got.slot[0].fate, REPEAT_MISSED);
    assert_int_equal(got.slot[0].count, 400);
    assert_int_equal(got.slot[0].at_s, 400 * HOUR);
    assert_int_equal(got.slot[REPEAT_STEP_MAX].fate, REPEAT_RUN);
    assert_int_equal(got.mark_s, 500 * HOUR);
    got = step(REPEAT_SKIP, 0, 7000000000, 0, false); /* two centuries: it comes to an end, and the last one runs */
    assert_int_equal(got.slot[got.count - 1].fate, REPEAT_RUN);
    assert_int_equal(got.mark_s, 7000000000 / HOUR * HOUR);
}

static void wrong_clocks(void **s) {
    assert_false(repeat_clock_was_wrong(1000, 2000));
    assert_false(repeat_clock_was_wrong(90000, 50000));
    assert_true(repeat_clock_was_wrong(200000, 50000));
}

/* Clocks that go, jump and are set back, servers that sleep: every time up to the last mark comes out once. */
static void random_lives(void **s) {
    for (unsigned seed = 1; seed <= 300; seed++) {
        static const char *const crons[] = {"*/7 * * * *", "0 * * * *", "30 2,3 * * *", "15 */2 * * 1-5"};
        srand(seed);
        const struct repeat_spec spec = {crons[seed % 4], "", "", (1 + rand() % 7200) * 1000000000LL,
                                         (enum repeat_overlap)(rand() % REPEAT_OVERLAPS)};
        const struct recur r = every(spec.cron);
        int64_t now = 1000000, mark = now, expected = recur_next(&r, &utc, mark), latest = now;
        for (int turn = 0; turn < 200; turn++) {
            int64_t jump = rand() % 10 == 0 ? rand() % 40000 - 20000 : rand() % 1200;
            now += jump;
            latest = now > latest ? now : latest;
            const struct repeat_now at = {mark, now, (unsigned)(rand() % 3), false};
            struct repeat_step out;
            repeat_step(&spec, &r, &utc, &at, &out);
            if (rand() % 5 == 0) continue; /* killed before the commit: nothing of it happened */
            for (size_t i = 0; i < out.count; i++) {
                if (out.slot[i].count == 1 && out.slot[i].at_s != expected) fail_msg("seed %u: out of order", seed);
                for (int64_t k = 1; k < out.slot[i].count; k++) expected = recur_next(&r, &utc, expected);
                if (out.slot[i].at_s != expected || expected > now) fail_msg("seed %u: not the next", seed);
                bool is_late = now - expected > spec.late_ns / 1000000000;
                if (is_late != (out.slot[i].fate == REPEAT_MISSED)) fail_msg("seed %u: lateness", seed);
                if (out.slot[i].fate == REPEAT_RUN && i + 1 != out.count) fail_msg("seed %u: runs early", seed);
                expected = recur_next(&r, &utc, expected);
            }
            mark = out.mark_s;
        }
        assert_true(mark <= latest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(an_edit),      cmocka_unit_test(what_is_refused),
        cmocka_unit_test(only_one_way),   cmocka_unit_test(steps),        cmocka_unit_test(a_long_sleep),
        cmocka_unit_test(wrong_clocks),   cmocka_unit_test(random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
