/* A job's record, its rules, its elements and its states. */
#include "tests/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"

/* Words of a literal, "a\0b": its own end ends the last. */
#define WORDS(literal)                                                                                                 \
    { .s = (literal), .len = sizeof(literal), .count = words_in(literal, sizeof(literal)) }

static unsigned words_in(const char *s, size_t n) {
    unsigned count = 0;
    for (size_t i = 0; i < n; i++) count += s[i] == 0;
    return count;
}

static struct job_spec plain(void) {
    return (struct job_spec){
        .name = "train", .command = WORDS("python\0train.py"), .image = "", .cwd = "", .gpus = 1, .array = ""};
}

static struct job_spec full(void) {
    return (struct job_spec){
        .name = "größer",
        .command = WORDS("python\0train.py\0--lr={lr}\0\0--seed={index}"),
        .image = "registry.example/train:1",
        .mounts = WORDS("/data:/data:ro\0/scratch:/out"),
        .env = WORDS("A=1\0EMPTY="),
        .cwd = "/home/x",
        .gpus = 2,
        .scope = WORDS("0\0GPU-1234-5678\0MIG-77"),
        .memory_bytes = 40ull << 30,
        .share_over = JOB_OVER_END,
        .idle_over = JOB_OVER_END,
        .priority = -5,
        .finish_by_ns = 1ll << 60,
        .time_limit_ns = 7200000000000ll,
        .retries = 3,
        .after = WORDS("17\0"
                       "18:any"),
        .array = "%4",
        .sweep = WORDS("lr=1e-3,1e-4\0wd=0,0.1,0.2"),
        .labels = WORDS("team=vision"),
        .notify = WORDS("terminal\0mail:a@b.example\0webhook:https://h.example/x\0command:say done"),
    };
}

static void same_words(const struct job_words *a, const struct job_words *b) {
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->len, b->len);
    if (a->len) assert_memory_equal(a->s, b->s, a->len);
}

static void round_trip(void **state) {
    AUTO(buf_done) struct buf b = {0}, again = {0};
    struct job_spec s = full(), got;
    struct error e = {0};
    if (job_check(&s, 5, &e) < 0) fail_msg("%s", e.text);
    job_encode(&s, &b);
    if (job_decode(b.s, b.len, &got, &e) < 0) fail_msg("%s", e.text);
    job_encode(&got, &again);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.s, b.s, b.len);
    assert_string_equal(got.name, s.name);
    assert_string_equal(got.image, s.image);
    assert_string_equal(got.cwd, s.cwd);
    assert_string_equal(got.array, s.array);
    same_words(&got.command, &s.command);
    same_words(&got.mounts, &s.mounts);
    same_words(&got.env, &s.env);
    same_words(&got.scope, &s.scope);
    same_words(&got.after, &s.after);
    same_words(&got.sweep, &s.sweep);
    same_words(&got.labels, &s.labels);
    same_words(&got.notify, &s.notify);
    assert_true(got.gpus == 2 && got.memory_bytes == 40ull << 30 && got.share_bytes == 0 && got.priority == -5);
    assert_true(got.share_over == JOB_OVER_END && got.idle_over == JOB_OVER_END && !got.is_pty && got.retries == 3);
    assert_true(got.finish_by_ns == 1ll << 60 && got.time_limit_ns == 7200000000000ll);
}

/* Each in memory of just its size, so that a look beyond it is an error of the sanitizer. */
static int decode_copy(const char *bytes, size_t n) {
    struct job_spec got;
    struct error e = {0};
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    int r = job_decode(copy, n, &got, &e);
    if (r < 0 && !e.text[0]) fail_msg("refused without a sentence");
    free(copy);
    return r;
}

static void cut_and_swollen(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct job_spec s = full();
    job_encode(&s, &b);
    for (size_t n = 0; n < b.len; n++)
        if (decode_copy(b.s, n) >= 0) fail_msg("cut to %zu bytes it was taken", n);
    buf_putc(&b, 0);
    assert_true(decode_copy(b.s, b.len) < 0);
}

/* Whatever is changed: it is refused, or it is the record of something that says the same again. */
static void garbage(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct job_spec s = full(), got;
    struct error e;
    uint64_t seed = 88172645463325252ull;
    int taken = 0;
    job_encode(&s, &b);
    for (int i = 0; i < 20000; i++) {
        AUTO(buf_done) struct buf bad = {0}, again = {0};
        buf_add(&bad, b.s, b.len);
        for (int k = 0; k < 3; k++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            bad.s[seed % bad.len] = (char)(seed >> 32);
        }
        if (job_decode(bad.s, bad.len, &got, &e) < 0) continue;
        taken++;
        job_encode(&got, &again);
        assert_int_equal(again.len, bad.len);
        assert_memory_equal(again.s, bad.s, bad.len);
    }
    assert_true(taken > 0);
}

static void refusals(void **state) {
#define ROWS(X)                                                                                                        \
    X("name", s.name = "")                                                                                             \
    X("name", s.name = "a\nb")                                                                                         \
    X("name", s.name = "\xff")                                                                                         \
    X("name", s.name = "a\xc2\x9b"                                                                                     \
                       "2J")                                                                                           \
    X("name", s.name = "a\xe2\x80\xae"                                                                                 \
                       "b")                                                                                            \
    X("command", s.command = (struct job_words){0})                                                                    \
    X("command", s.command = (struct job_words)WORDS(""))                                                              \
    X("image", s.image = "a b")                                                                                        \
    X("image", s.image = "--privileged")                                                                               \
    X("mounts", s.mounts = (struct job_words)WORDS("/a:/b"))                                                           \
    X("mounts", s.image = "i"; s.mounts = (struct job_words)WORDS("a:/b"))                                             \
    X("mounts", s.image = "i"; s.mounts = (struct job_words)WORDS("/a:/b:exec"))                                       \
    X("mounts", s.image = "i"; s.mounts = (struct job_words)WORDS("/a:/"))                                             \
    X("mounts", s.image = "i"; s.mounts = (struct job_words)WORDS("/a:/..:ro"))                                        \
    X("env", s.env = (struct job_words)WORDS("=1"))                                                                    \
    X("env", s.env = (struct job_words)WORDS("A"))                                                                     \
    X("env", s.env = (struct job_words)WORDS("A=1\0CUDA_VISIBLE_DEVICES=0"))                                           \
    X("cwd", s.cwd = "here")                                                                                           \
    X("gpus", s.gpus = 0)                                                                                              \
    X("gpus", s.gpus = JOB_GPUS_MAX + 1)                                                                               \
    X("scope", s.gpus = 2; s.scope = (struct job_words)WORDS("3"))                                                     \
    X("scope", s.scope = (struct job_words)WORDS("-1"))                                                                \
    X("scope", s.scope = (struct job_words)WORDS("3\0"                                                                 \
                                                 "4\0"                                                                 \
                                                 "3"))                                                                 \
    X("scope", s.scope = (struct job_words)WORDS("GPU-"))                                                              \
    X("memory", s.memory_bytes = UINT64_MAX)                                                                           \
    X("share", s.gpus = 2; s.share_bytes = 1)                                                                          \
    X("share", s.share_bytes = UINT64_MAX)                                                                             \
    X("priority", s.priority = 101)                                                                                    \
    X("priority", s.priority = -101)                                                                                   \
    X("finish_by", s.finish_by_ns = 999)                                                                               \
    X("finish_by", s.finish_by_ns = -1)                                                                                \
    X("time_limit", s.time_limit_ns = -1)                                                                              \
    X("time_limit", s.time_limit_ns = INT64_MAX)                                                                       \
    X("retries", s.retries = -1)                                                                                       \
    X("retries", s.retries = 101)                                                                                      \
    X("after", s.after = (struct job_words)WORDS("0"))                                                                 \
    X("after", s.after = (struct job_words)WORDS("x"))                                                                 \
    X("after", s.after = (struct job_words)WORDS("7:ok"))                                                              \
    X("array", s.array = "1-")                                                                                         \
    X("array", s.array = "%3")                                                                                         \
    X("array", s.array = "1-4%0")                                                                                      \
    X("array", s.array = "5,3")                                                                                        \
    X("array", s.array = "1-5,5")                                                                                      \
    X("array", s.array = "1-100001")                                                                                   \
    X("array", s.array = "1-9:0")                                                                                      \
    X("array", s.array = "1,")                                                                                         \
    X("array", s.array = "1-9 ")                                                                                       \
    X("array", s.array = "1-3"; s.sweep = (struct job_words)WORDS("a=1"))                                              \
    X("sweep", s.sweep = (struct job_words)WORDS("a"))                                                                 \
    X("sweep", s.sweep = (struct job_words)WORDS("a=1,,2"))                                                            \
    X("sweep", s.sweep = (struct job_words)WORDS("a="))                                                                \
    X("sweep", s.sweep = (struct job_words)WORDS("a=1\0a=2"))                                                          \
    X("sweep", s.sweep = (struct job_words)WORDS("index=1"))                                                           \
    X("sweep", s.sweep = (struct job_words)WORDS("CUDA_VISIBLE_DEVICES=1"))                                            \
    X("labels", s.labels = (struct job_words)WORDS("=x"))                                                              \
    X("notify", s.notify = (struct job_words)WORDS("phone"))                                                           \
    X("notify", s.notify = (struct job_words)WORDS("mail:nobody"))                                                     \
    X("notify", s.notify = (struct job_words)WORDS("webhook:file:///etc"))                                             \
    X("pty", s.is_pty = true; s.image = "i")                                                                           \
    X("pty", s.is_pty = true; s.array = "1-2")
#define TRY(key, change)                                                                                               \
    {                                                                                                                  \
        struct job_spec s = plain();                                                                                   \
        struct error e = {0};                                                                                          \
        change;                                                                                                        \
        if (job_check(&s, 1000, &e) >= 0) fail_msg("taken: %s", #change);                                              \
        if (strncmp(e.text, key ": ", strlen(key) + 2) != 0) fail_msg("%s: %s", #change, e.text);                      \
    }
    ROWS(TRY)
    struct job_spec s = plain();
    struct error e;
    assert_int_equal(job_check(&s, 1000, &e), 0);
    s.finish_by_ns = 999;
    assert_int_equal(job_check(&s, 0, &e), 0); /* a record does not turn bad with time */
}

static void names(void **state) {
    static const struct {
        const char *image, *want;
        struct job_words command;
    } rows[] = {
        {"",                     "train.py",   {"python3.11\0-u\0/home/x/train.py", 30, 3}     },
        {"",                     "train.py",   {"env\0-u\0PATH\0A=b\0python3\0train.py", 33, 6}},
        {"",                     "run.sh",     {"bash\0./run.sh", 14, 2}                       },
        {"",
         "sleep",                              {"/bin/sleep\0"
          "9",
          13, 2}                                                              },
        {"",                     "python",     {"python", 7, 1}                                },
        {"",                     "nvidia-smi", {"sh\0-c\0nvidia-smi | tail", 24, 3}            },
        {"r.example/a/train:v1", "train",      {NULL, 0, 0}                                    },
        {"",                     "job",        {" ", 2, 1}                                     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[JOB_NAME_MAX];
        struct job_spec s = plain();
        s.image = rows[i].image;
        s.command = rows[i].command;
        job_name_make(&s, name);
        assert_string_equal(name, rows[i].want);
    }
}

static void arrays(void **state) {
    static const struct {
        const char *array;
        unsigned count, at_once;
        int64_t first, last;
    } rows[] = {
        {"",              1,      0, 0, 0     },
        {"7",             1,      0, 7, 7     },
        {"1-100%8",       100,    8, 1, 100   },
        {"0-90:10",       10,     0, 0, 90    },
        {"0-95:10",       10,     0, 0, 90    },
        {"0,3,10-20:5%2", 5,      2, 0, 20    },
        {"1-100000",      100000, 0, 1, 100000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec s = plain();
        struct error e;
        unsigned count, at_once;
        s.array = rows[i].array;
        assert_int_equal(job_elements(&s, &count, &at_once, &e), 0);
        assert_int_equal(count, rows[i].count);
        assert_int_equal(at_once, rows[i].at_once);
        assert_int_equal(job_element_number(&s, 0), rows[i].first);
        assert_int_equal(job_element_number(&s, count - 1), rows[i].last);
        assert_int_equal(job_element_number(&s, count), -1);
        for (unsigned k = 0; k < count; k += 1 + count / 50)
            assert_int_equal(job_element_find(&s, job_element_number(&s, k)), k);
        assert_int_equal(job_element_find(&s, rows[i].last + 1), -1);
    }
    struct job_spec s = plain();
    s.array = "0,3,10-20:5";
    assert_int_equal(job_element_find(&s, 12), -1);
    assert_int_equal(job_element_find(&s, 15), 3);
}

static const char *word_at(const struct job_words *w, unsigned i) {
    const char *at = job_word_next(w, NULL);
    while (at && i--) at = job_word_next(w, at);
    return at ? at : "(none)";
}

static void elements(void **state) {
    struct job_spec s = full(), one;
    struct error e;
    unsigned count, at_once;
    s.env = (struct job_words)WORDS("A=1\0lr=7\0GPUMGR_ARRAY_INDEX=9");
    assert_int_equal(job_elements(&s, &count, &at_once, &e), 0);
    assert_true(count == 6 && at_once == 4);
    AUTO(buf_done) struct buf b = {0};
    assert_int_equal(job_element(&s, 4, &b, &e), 0); /* 1e-4 and 0.1 */
    assert_int_equal(job_decode(b.s, b.len, &one, &e), 0);
    assert_string_equal(word_at(&one.command, 2), "--lr=1e-4");
    assert_string_equal(word_at(&one.command, 3), "");
    assert_string_equal(word_at(&one.command, 4), "--seed=5");
    assert_int_equal(one.env.count, 4);
    assert_string_equal(word_at(&one.env, 0), "A=1");
    assert_string_equal(word_at(&one.env, 1), "GPUMGR_ARRAY_INDEX=5");
    assert_string_equal(word_at(&one.env, 2), "lr=1e-4");
    assert_string_equal(word_at(&one.env, 3), "wd=0.1");
    assert_true(one.sweep.count == 0 && one.array[0] == 0);
    assert_int_equal(job_elements(&one, &count, &at_once, &e), 0);
    assert_int_equal(count, 1);
    assert_true(job_element(&s, 6, &b, &e) < 0);

    struct job_spec array = plain();
    array.command = (struct job_words)WORDS("run\0{index}{index}\0{other}\0{\0}{index\0a{{index}}");
    array.array = "10-12";
    buf_clear(&b);
    assert_int_equal(job_element(&array, 1, &b, &e), 0);
    assert_int_equal(job_decode(b.s, b.len, &one, &e), 0);
    assert_string_equal(word_at(&one.command, 1), "1111");
    assert_string_equal(word_at(&one.command, 2), "{other}");
    assert_string_equal(word_at(&one.command, 3), "{");
    assert_string_equal(word_at(&one.command, 4), "}{index");
    assert_string_equal(word_at(&one.command, 5), "a{11}");

    struct job_spec one_only = plain();
    buf_clear(&b);
    assert_int_equal(job_element(&one_only, 0, &b, &e), 0);
    AUTO(buf_done) struct buf same = {0};
    job_encode(&one_only, &same);
    assert_int_equal(b.len, same.len); /* a plain job is its own element */
    assert_memory_equal(b.s, same.s, b.len);
}

static void states(void **state) {
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        int ways = 0;
        assert_true(job_state_name((enum job_state)from)[0]);
        for (int to = 0; to < JOB_STATE_COUNT; to++)
            ways += job_state_may_become((enum job_state)from, (enum job_state)to);
        if ((ways == 0) != job_state_is_over((enum job_state)from))
            fail_msg("%s", job_state_name((enum job_state)from));
        assert_false(job_state_may_become((enum job_state)from, (enum job_state)from));
    }
    assert_true(job_state_may_become(JOB_WAITING, JOB_GRANTED));
    assert_false(job_state_may_become(JOB_WAITING, JOB_RUNNING)); /* nothing runs without GPUs */
    assert_false(job_state_may_become(JOB_HELD, JOB_GRANTED));
    assert_true(job_state_may_become(JOB_GRANTED, JOB_DONE));
    for (int r = 0; r <= JOB_REASON_COUNT; r++) assert_true(job_reason_text((enum job_reason)r)[0]);
    static const struct {
        enum job_reason why;
        bool has_exit;
        int code, signal;
        enum job_state want;
    } rows[] = {
        {JOB_BY_ITSELF,     true,  0,   0,  JOB_DONE     },
        {JOB_BY_ITSELF,     true,  1,   0,  JOB_FAILED   },
        {JOB_BY_ITSELF,     true,  0,   9,  JOB_FAILED   },
        {JOB_BY_ITSELF,     false, 0,   0,  JOB_UNKNOWN  },
        {JOB_BY_CANCEL,     true,  0,   15, JOB_CANCELLED},
        {JOB_BY_CANCEL,     false, 0,   0,  JOB_CANCELLED},
        {JOB_BY_TIME_LIMIT, true,  143, 0,  JOB_TIMEOUT  },
        {JOB_BY_SHIM,       false, 0,   0,  JOB_UNKNOWN  },
        {JOB_BY_LOST,       false, 0,   0,  JOB_UNKNOWN  },
        {JOB_BY_REBOOT,     false, 0,   0,  JOB_FAILED   },
        {JOB_BY_START,      false, 0,   0,  JOB_FAILED   },
        {JOB_BY_MEMORY,     true,  0,   15, JOB_FAILED   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(job_end_state(rows[i].why, rows[i].has_exit, rows[i].code, rows[i].signal), rows[i].want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(cut_and_swollen), cmocka_unit_test(garbage),
        cmocka_unit_test(refusals),   cmocka_unit_test(names),           cmocka_unit_test(arrays),
        cmocka_unit_test(elements),   cmocka_unit_test(states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
