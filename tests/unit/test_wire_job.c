/* Jobs and runs on the wire: what goes in comes out; what is cut or cannot be is refused; what a later version appends is
 * skipped. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire_health.h"
#include "model/wire_notice.h"
#include "model/wire_run.h"

static const uint8_t record_bytes[] = "a record", seal_bytes[] = "a seal of some length";
#define SEALED                                                                                                         \
    {                                                                                                                  \
        .uid = 1000, .user = "ada", .record = record_bytes, .record_len = sizeof record_bytes, .seal = seal_bytes,     \
        .seal_len = sizeof seal_bytes                                                                                  \
    }
#define KEY                                                                                                            \
    { .job = 1ll << 40, .element = 99999, .attempt = 3 }
static const struct wire_sealed sealed = SEALED;
static const struct wire_run_key key = KEY;
static const struct wire_seal seal = {
    .request = 1ull << 63, .account = "lin", .is_admin = true, .record = record_bytes, .record_len = 3};
static const struct wire_sealed_reply reply = {.request = 8, .sealed = SEALED};
static const struct wire_sealed_reply refusal = {.request = 8, .result = -EPERM, .text = "no Unix user is set"};
static const struct wire_control control = {
    .request = 5, .uid = 1000, .verb = WIRE_PRIORITY, .job = 7, .element = -1, .value = -100};
static const struct wire_job_result result = {.request = 6, .first = 17, .count = 3};
static const struct wire_stop stop = {.key = KEY, .reason = JOB_BY_TIME_LIMIT, .grace_ns = 5};
static const struct wire_run run = {.key = KEY,
                                    .state = RUN_ENDED,
                                    .reason = JOB_BY_ITSELF,
                                    .pid = 4711,
                                    .start_ns = 5,
                                    .end_ns = 9,
                                    .has_exit = true,
                                    .code = 3,
                                    .gpu_seconds = 1.5,
                                    .energy_joules = 2.5,
                                    .cpu_seconds = 3.5,
                                    .gpu_ratio = 0.25,
                                    .cpu_ratio = NAN,
                                    .memory_peak_bytes = 1,
                                    .memory_total_bytes = 2,
                                    .host_peak_bytes = 3,
                                    .log_bytes = 4,
                                    .text = "well"};
static const struct wire_log_ask ask = {.request = 2, .key = KEY, .offset = 1ull << 40, .len = WIRE_LOG_MAX};
static const struct wire_log piece = {
    .request = 2, .offset = 10, .total = 19, .is_over = true, .bytes = record_bytes, .len = 9};
static const struct wire_free gpu = {.uuid = "GPU-1",
                                     .verdict = OCCUPANCY_FOREIGN,
                                     .uid = 1001,
                                     .user = "eve",
                                     .pid = 5,
                                     .memory_bytes = 6,
                                     .since_ns = 7,
                                     .idle_ns = 8};

static const struct wire_figures figures = {
    .key = {17, 1, 2},
    .gpu_seconds = 1.5,
    .energy_joules = 250,
    .gpu_ratio = 0.5,
    .cpu_seconds = 3,
    .memory_bytes = 4,
    .memory_peak_bytes = 5,
    .memory_total_bytes = 6,
    .host_bytes = 7,
    .read_bytes = 8,
    .written_bytes = UINT64_MAX,
    .log_bytes = 9
};

static struct wire_grant some_grant(void) {
    struct wire_grant g = {.key = key, .gpus = 2, .sealed = sealed};
    strcpy(g.uuid[0], "GPU-1");
    strcpy(g.uuid[1], "MIG-2");
    return g;
}

static void put_submit(struct buf *b, unsigned count) {
    const struct wire_submit s = {.request = 77, .count = (uint16_t)count};
    size_t from = wire_begin_submit(b, &s);
    for (unsigned i = 0; i < count; i++) wire_add_submit(b, &sealed);
    wire_tail_submit(b, &s);
    wire_end(b, from);
}

static void put_submit_part(struct buf *b, const char *by) {
    struct wire_submit s = {.request = 77, .count = 1, .is_part = true};
    strncpy(s.key, by, sizeof s.key - 1);
    size_t from = wire_begin_submit(b, &s);
    wire_add_submit(b, &sealed);
    wire_tail_submit(b, &s);
    wire_end(b, from);
}

static void put_runs(struct buf *b, uint32_t count) {
    size_t from = wire_begin_runs(b, count);
    for (uint32_t i = 0; i < count; i++) wire_add_run_key(b, &key);
    wire_end(b, from);
}

static void put_frees(struct buf *b, uint16_t count) {
    size_t from = wire_begin_frees(b, count);
    for (uint32_t i = 0; i < count; i++) wire_add_free(b, &gpu);
    wire_end(b, from);
}

static void put_figures(struct buf *b, uint32_t count) {
    size_t from = wire_begin_figures(b, count);
    for (uint32_t i = 0; i < count; i++) wire_add_figures(b, &figures);
    wire_end(b, from);
}

static const struct wire_notice notice = {
    .id = 9, .job = 17, .word = 1, .kind = "job_done", .text = "job 17 is done", .sealed = SEALED};
static const struct wire_noticed noticed = {.id = 9, .result = -11, .text = "nobody is there"};

static const struct wire_health health = {
    .key = {17, 0, 2},
      .took_ms = 12, .text = "GET / answers 500"
};
static const struct wire_try trial = {.request = 5, .uid = 1000, .record = (const uint8_t *)"abc", .record_len = 3};
static const struct wire_tried tried = {.request = 5, .result = -17, .text = "port 80 is taken"};

static void put_wanted(struct buf *b, uint16_t count) {
    size_t from = wire_begin_wanted(b, count);
    for (uint16_t i = 0; i < count; i++) wire_add_wanted(b, "GPU-1");
    wire_begin_sound(b, 1);
    wire_add_sound(b, "GPU-2", 77);
    wire_end(b, from);
}

/* One frame of each kind, by number; false: there are no more. */
static bool put_one(struct buf *b, int which) {
    const struct wire_grant g = some_grant();
    switch (which) {
    case 0: wire_put_seal(b, &seal); return true;
    case 1: wire_put_sealed(b, &reply); return true;
    case 2: wire_put_sealed(b, &refusal); return true;
    case 3: put_submit(b, 2); return true;
    case 4: wire_put_control(b, &control); return true;
    case 5: wire_put_job_result(b, WIRE_JOB_SUBMITTED, &result); return true;
    case 6: wire_put_job_result(b, WIRE_JOB_CONTROLLED, &result); return true;
    case 7: wire_put_grant(b, &g); return true;
    case 8: wire_put_stop(b, &stop); return true;
    case 9: wire_put_run(b, &run); return true;
    case 10: wire_put_stored(b, &key); return true;
    case 11: put_runs(b, 2); return true;
    case 12: wire_put_log_ask(b, &ask); return true;
    case 13: wire_put_log(b, &piece); return true;
    case 14: put_frees(b, 2); return true;
    case 15: put_figures(b, 2); return true;
    case 16: put_wanted(b, 3); return true;
    case 17: wire_put_notice(b, &notice); return true;
    case 18: wire_put_noticed(b, &noticed); return true;
    case 19: wire_put_health(b, &health); return true;
    case 20: wire_put_try(b, &trial); return true;
    case 21: wire_put_tried(b, &tried); return true;
    default: return false;
    }
}

/* Reads a frame of any of these kinds and says it again. */
static int again(const struct wire_frame *f, struct buf *b) {
    static struct wire_grant g;
    struct wire_health he;
    struct wire_try tr;
    struct wire_tried td;
    struct wire_seal s;
    struct wire_sealed_reply sr;
    struct wire_submit sub;
    struct wire_control c;
    struct wire_job_result jr;
    struct wire_stop st;
    struct wire_run r;
    struct wire_run_key k;
    struct wire_runs ks;
    struct wire_log_ask a;
    struct wire_log l;
    struct wire_frees fs;
    struct wire_figures_list figs;
    struct wire_wanted wanted;
    struct wire_notice n;
    struct wire_noticed nd;
    char uuid[96];
    int64_t since_ns;
    struct error e = {0};
    int ret = -1;
    unsigned seen = 0;
#define CASE(id, get, put)                                                                                             \
    case id:                                                                                                           \
        if ((ret = (get)) >= 0) put;                                                                                   \
        break;
    switch (f->type) {
        CASE(WIRE_JOB_SEAL, wire_get_seal(f, &s, &e), wire_put_seal(b, &s))
        CASE(WIRE_JOB_SEALED, wire_get_sealed(f, &sr, &e), wire_put_sealed(b, &sr))
        CASE(WIRE_JOB_CONTROL, wire_get_control(f, &c, &e), wire_put_control(b, &c))
        CASE(WIRE_JOB_SUBMITTED, wire_get_job_result(f, &jr, &e), wire_put_job_result(b, WIRE_JOB_SUBMITTED, &jr))
        CASE(WIRE_JOB_CONTROLLED, wire_get_job_result(f, &jr, &e), wire_put_job_result(b, WIRE_JOB_CONTROLLED, &jr))
        CASE(WIRE_JOB_GRANT, wire_get_grant(f, &g, &e), wire_put_grant(b, &g))
        CASE(WIRE_JOB_STOP, wire_get_stop(f, &st, &e), wire_put_stop(b, &st))
        CASE(WIRE_JOB_RUN, wire_get_run(f, &r, &e), wire_put_run(b, &r))
        CASE(WIRE_JOB_STORED, wire_get_stored(f, &k, &e), wire_put_stored(b, &k))
        CASE(WIRE_JOB_LOG_ASK, wire_get_log_ask(f, &a, &e), wire_put_log_ask(b, &a))
        CASE(WIRE_JOB_NOTICE, wire_get_notice(f, &n, &e), wire_put_notice(b, &n))
        CASE(WIRE_JOB_NOTICED, wire_get_noticed(f, &nd, &e), wire_put_noticed(b, &nd))
        CASE(WIRE_JOB_LOG, wire_get_log(f, &l, &e), wire_put_log(b, &l))
    case WIRE_JOB_SUBMIT:
        if ((ret = wire_get_submit(f, &sub, &e)) < 0) break;
        for (struct wire_sealed one; wire_next_submit(&sub, &one); seen++) {
            assert_true(one.uid == 1000 && one.record_len == sealed.record_len && one.seal_len == sealed.seal_len);
            assert_memory_equal(one.seal, seal_bytes, one.seal_len);
        }
        put_submit(b, seen);
        break;
    case WIRE_JOB_RUNS:
        if ((ret = wire_get_runs(f, &ks, &e)) < 0) break;
        for (; wire_next_run_key(&ks, &k); seen++) assert_memory_equal(&k, &key, sizeof k);
        put_runs(b, seen);
        break;
    case WIRE_JOB_FREE:
        if ((ret = wire_get_frees(f, &fs, &e)) < 0) break;
        for (struct wire_free one; wire_next_free(&fs, &one); seen++) {
            assert_string_equal(one.user, "eve");
            assert_true(one.verdict == OCCUPANCY_FOREIGN && one.pid == 5 && one.idle_ns == 8 && one.since_ns == 7);
        }
        put_frees(b, (uint16_t)seen);
        break;
    case WIRE_JOB_FIGURES:
        if ((ret = wire_get_figures(f, &figs, &e)) < 0) break;
        for (struct wire_figures one; wire_next_figures(&figs, &one); seen++)
            assert_memory_equal(&one, &figures, sizeof one);
        put_figures(b, seen);
        break;
    case WIRE_JOB_HEALTH:
        if ((ret = wire_get_health(f, &he, &e)) >= 0) wire_put_health(b, &he);
        break;
    case WIRE_JOB_TRY:
        if ((ret = wire_get_try(f, &tr, &e)) >= 0) wire_put_try(b, &tr);
        break;
    case WIRE_JOB_TRIED:
        if ((ret = wire_get_tried(f, &td, &e)) >= 0) wire_put_tried(b, &td);
        break;
    case WIRE_JOB_WANTED:
        if ((ret = wire_get_wanted(f, &wanted, &e)) < 0) break;
        for (; wire_next_wanted(&wanted, uuid); seen++) assert_string_equal(uuid, "GPU-1");
        assert_true(wire_next_sound(&wanted, uuid, &since_ns) && since_ns == 77);
        assert_false(wire_next_sound(&wanted, uuid, &since_ns));
        put_wanted(b, (uint16_t)seen);
        break;
    default: fail_msg("type %u", f->type);
    }
    if (ret < 0 && !e.text[0]) fail_msg("refused without a sentence");
    return ret;
}

static void there_and_back(void **state) {
    for (int which = 0;; which++) {
        AUTO(buf_done) struct buf b = {0}, twice = {0};
        struct wire_frame f;
        struct error e;
        if (!put_one(&b, which)) break;
        assert_int_equal(wire_frame(b.s, b.len, &f, &e), b.len);
        assert_int_equal(again(&f, &twice), 0);
        if (twice.len != b.len || memcmp(twice.s, b.s, b.len) != 0) fail_msg("frame %d came back as another", which);
    }
}

static void cut_and_swollen(void **state) {
    for (int which = 0;; which++) {
        AUTO(buf_done) struct buf b = {0}, more = {0}, out = {0};
        struct wire_frame f;
        struct error e;
        if (!put_one(&b, which)) break;
        assert_int_equal(wire_frame(b.s, b.len, &f, &e), b.len);
        for (size_t len = 0; len < f.len; len++) {
            uint8_t *copy = malloc(len ? len : 1); /* its own block: a sanitizer sees one step beyond */
            assert_non_null(copy);
            memcpy(copy, f.body, len);
            const struct wire_frame cut = {.type = f.type, .version = f.version, .body = copy, .len = len};
            bool is_old = f.type == WIRE_JOB_SUBMIT && len == f.len - 3; /* as it was before it had a tail */
            if (!is_old && again(&cut, &out) >= 0)
                fail_msg("type %u cut to %zu of %zu bytes was taken", f.type, len, f.len);
            free(copy);
        }
        buf_add(&more, f.body, f.len);
        buf_puts(&more, "and what later versions say");
        const struct wire_frame longer = {.type = f.type, .version = 1, .body = (uint8_t *)more.s, .len = more.len};
        if (again(&longer, &out) < 0) fail_msg("type %u: a longer body was refused", f.type);
        f.version = 2;
        if (again(&f, &out) >= 0) fail_msg("type %u: version 2 was taken for version 1", f.type);
    }
}

/* Frames that are whole and say what cannot be. */
static void impossible(void **state) {
#define ROWS(X)                                                                                                        \
    X(struct wire_seal, seal, wire_put_seal(&b, &v), v.account[0] = 0)                                                 \
    X(struct wire_seal, seal, wire_put_seal(&b, &v), v.record_len = 0)                                                 \
    X(struct wire_sealed_reply, reply, wire_put_sealed(&b, &v), v.sealed.seal_len = 0)                                 \
    X(struct wire_sealed_reply, reply, wire_put_sealed(&b, &v), v.sealed.uid = UINT32_MAX)                             \
    X(struct wire_sealed_reply, refusal, wire_put_sealed(&b, &v), v.text[0] = 0)                                       \
    X(struct wire_sealed_reply, refusal, wire_put_sealed(&b, &v), v.result = 1)                                        \
    X(struct wire_control, control, wire_put_control(&b, &v), v.verb = WIRE_PRIORITY + 1)                              \
    X(struct wire_control, control, wire_put_control(&b, &v), v.job = 0)                                               \
    X(struct wire_control, control, wire_put_control(&b, &v), v.element = -2)                                          \
    X(struct wire_job_result, result, wire_put_job_result(&b, WIRE_JOB_SUBMITTED, &v), v.result = -1)                  \
    X(struct wire_stop, stop, wire_put_stop(&b, &v), v.reason = JOB_REASON_COUNT)                                      \
    X(struct wire_stop, stop, wire_put_stop(&b, &v), v.key.attempt = 0)                                                \
    X(struct wire_stop, stop, wire_put_stop(&b, &v), v.key.element = JOB_ELEMENTS_MAX)                                 \
    X(struct wire_stop, stop, wire_put_stop(&b, &v), v.key.job = -1)                                                   \
    X(struct wire_stop, stop, wire_put_stop(&b, &v), v.grace_ns = -1)                                                  \
    X(struct wire_run, run, wire_put_run(&b, &v), v.state = RUN_ENDED + 1)                                             \
    X(struct wire_run, run, wire_put_run(&b, &v), v.state = RUN_RUNNING) /* and yet with an exit */                    \
    X(struct wire_run, run, wire_put_run(&b, &v), v.energy_joules = NAN)                                               \
    X(struct wire_run, run, wire_put_run(&b, &v), v.gpu_ratio = 1.5)                                                   \
    X(struct wire_run, run, wire_put_run(&b, &v), v.cpu_ratio = -1)                                                    \
    X(struct wire_run, run, wire_put_run(&b, &v), v.signal = 65)                                                       \
    X(struct wire_log_ask, ask, wire_put_log_ask(&b, &v), v.len = 0)                                                   \
    X(struct wire_log_ask, ask, wire_put_log_ask(&b, &v), v.len = WIRE_LOG_MAX + 1)                                    \
    X(struct wire_log, piece, wire_put_log(&b, &v), v.total = 18)                                                      \
    X(struct wire_log, piece, wire_put_log(&b, &v), v.offset = UINT64_MAX)
#define TRY(type, good, put, change)                                                                                   \
    {                                                                                                                  \
        AUTO(buf_done) struct buf b = {0}, out = {0};                                                                  \
        type v = good;                                                                                                 \
        struct wire_frame f;                                                                                           \
        struct error e;                                                                                                \
        change;                                                                                                        \
        put;                                                                                                           \
        assert_int_equal(wire_frame(b.s, b.len, &f, &e), b.len);                                                       \
        if (again(&f, &out) >= 0) fail_msg("taken: %s of %s", #change, #good);                                         \
    }
    ROWS(TRY)
    for (int which = 0; which < 3; which++) { /* more announced than there are; none */
        AUTO(buf_done) struct buf b = {0}, out = {0};
        struct wire_frame f;
        struct error e;
        size_t from = which == 0   ? wire_begin_frees(&b, 1)
                      : which == 1 ? wire_begin_runs(&b, UINT32_MAX)
                                   : wire_begin_submit(&b, &(struct wire_submit){.request = 1});
        wire_end(&b, from);
        assert_int_equal(wire_frame(b.s, b.len, &f, &e), b.len);
        assert_true(again(&f, &out) < 0);
    }
}

static void keys_of_submissions(void **state) {
    static const struct {
        const char *key;
        bool is_good;
    } rows[] = {
        {"",                                                                  true },
        {"a-1.b_2",                                                           true },
        {"two words",                                                         false},
        {"a\n",                                                               false},
        {"\303\244",                                                          false},
        {"0123456789012345678901234567890123456789012345678901234567890123",  true },
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct wire_frame f;
        struct wire_submit got = {0};
        struct error e;
        put_submit_part(&b, rows[i].key);
        assert_int_equal(wire_frame(b.s, b.len, &f, &e), b.len);
        bool is_taken = wire_get_submit(&f, &got, &e) >= 0;
        if (is_taken != rows[i].is_good) fail_msg("%s", rows[i].key);
        if (is_taken) assert_true(got.is_part && strcmp(got.key, rows[i].key) == 0 && got.count == 1);
        if (!is_taken) continue;
        f.len--; /* cut within what came behind the jobs */
        assert_true(wire_get_submit(&f, &got, &e) < 0);
    }
}

static void room(void **state) {
    AUTO(buf_done) struct buf b = {0};
    put_submit(&b, 2);
    const struct wire_submit none = {0};
    AUTO(buf_done) struct buf head = {0};
    wire_begin_submit(&head, &none);
    wire_tail_submit(&head, &none);
    assert_int_equal(b.len, head.len + 2 * wire_sealed_bytes(&sealed));
    assert_true(head.len <= WIRE_FRAME_MAX - WIRE_SUBMIT_BYTES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(cut_and_swollen),
        cmocka_unit_test(impossible),     cmocka_unit_test(keys_of_submissions),
        cmocka_unit_test(room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
