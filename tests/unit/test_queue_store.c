/* Jobs and runs as rows: what goes in comes out, batches are whole, hours are divided, what is old goes. */
#include "server/queue_store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/queue_trail.h"
#include "server/state_schema.h"
#include "tests/test.h"
#include "tests/unit/scratch.h"

#define HOUR (3600 * NS_PER_S)

static char dir[64], path[100];
static struct sql *db;

static int set_up(void **s) {
    struct error e;
    scratch_make(dir, "/dev/shm");
    snprintf(path, sizeof path, "%s/state.db", dir);
    if (sql_open(path, &db, &e) < 0) return -1;
    return schema_bring(db, path, &e);
}

static int tear_down(void **s) {
    sql_close(db);
    scratch_remove(dir);
    return 0;
}

static struct queue_job_row job_named(const char *user) {
    return (struct queue_job_row){.submitted_ns = 5,
                                  .uid = 1000,
                                  .user = user,
                                  .account = "",
                                  .node = "lab",
                                  .text = "",
                                  .elements = 1,
                                  .record = "rec\0ord",
                                  .record_len = 7,
                                  .seal = "se\0al",
                                  .seal_len = 5};
}

static int64_t parent_seen, parent_kind_seen;

static int64_t add(const char *user) {
    struct queue_job_row row = job_named(user);
    struct error e;
    int64_t first;
    assert_int_equal(queue_store_add(db, &row, 1, &first, &e), 0);
    return first;
}

/* ---- a reader that notes ---- */

static struct {
    int jobs, runs, cordons, usages;
    int64_t id[20];
    struct queue_run_row run;
    char gpus[200], user[64], record[64];
    double held_s;
} seen;

static int see_job(void *ctx, const struct queue_job_row *j, struct error *e) {
    if (seen.jobs < 20) seen.id[seen.jobs] = j->id;
    seen.jobs++;
    parent_seen = j->parent;
    parent_kind_seen = j->parent_kind;
    snprintf(seen.user, sizeof seen.user, "%s", j->user);
    assert_int_equal(j->record_len, 7);
    memcpy(seen.record, j->record, 7);
    return 0;
}
static int see_run(void *ctx, const struct queue_run_row *r, struct error *e) {
    seen.runs++;
    seen.run = *r;
    snprintf(seen.gpus, sizeof seen.gpus, "%s", r->gpus);
    return 0;
}
static void see_cordon(void *ctx, const char *uuid, const char *reason, const char *who, int64_t since_ns) {
    seen.cordons++;
}
static void see_usage(void *ctx, const char *user, int64_t hour, double held_s) {
    seen.usages++;
    seen.held_s += held_s;
}
static const struct queue_reader reader = {NULL, see_job, see_run, see_cordon, see_usage};

static void look(void) {
    struct error e;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(queue_store_read(db, 0, &reader, &e), 0);
}

static void whose_child_it_is(void **s) {
    struct queue_job_row row = job_named("alice");
    struct error e;
    int64_t first;
    row.parent_kind = QUEUE_OF_REPEAT;
    row.parent = 12;
    assert_int_equal(queue_store_add(db, &row, 1, &first, &e), 0);
    look();
    assert_int_equal(seen.jobs, 1);
    assert_int_equal(parent_kind_seen, QUEUE_OF_REPEAT);
    assert_int_equal(parent_seen, 12);
    add("bob");
    look();
    assert_int_equal(parent_kind_seen, QUEUE_OF_NOBODY);
    assert_int_equal(parent_seen, 0);
}

static void what_goes_in_comes_out(void **s) {
    struct error e;
    int64_t id = add("alice");
    struct queue_run_row row = {.state = JOB_RUNNING, .stop = JOB_BY_CANCEL, .gpus = "GPU-1,GPU-2", .granted_ns = 7};
    row.of = (struct wire_run){
        .key = {id, 0, 1},
          .start_ns = 8, .gpu_seconds = 1.5, .gpu_ratio = NAN, .code = -3
    };
    row.of.log_bytes = UINT32_MAX;
    snprintf(row.of.text, sizeof row.of.text, "a \"text\"");
    assert_int_equal(queue_store_run(db, &row, &e), 0);
    assert_int_equal(queue_store_is_over(db, &row.of.key, &e), 0);
    look();
    assert_int_equal(seen.jobs, 1);
    assert_int_equal(seen.id[0], id);
    assert_string_equal(seen.user, "alice");
    assert_memory_equal(seen.record, "rec\0ord", 7);
    assert_int_equal(seen.runs, 1);
    assert_int_equal(seen.run.state, JOB_RUNNING);
    assert_int_equal(seen.run.stop, JOB_BY_CANCEL);
    assert_string_equal(seen.gpus, "GPU-1,GPU-2");
    assert_int_equal(seen.run.of.start_ns, 8);
    assert_int_equal(seen.run.of.code, -3);
    assert_true(seen.run.of.gpu_seconds == 1.5);
    assert_true(isnan(seen.run.of.gpu_ratio));
    assert_int_equal(seen.run.of.log_bytes, UINT32_MAX);
    assert_string_equal(seen.run.of.text, "a \"text\"");
    AUTO(buf_done) struct buf seal = {0};
    assert_int_equal(queue_store_seal(db, id, &seal, &e), 0);
    assert_int_equal(seal.len, 5);
    assert_memory_equal(seal.s, "se\0al", 5);
    assert_int_equal(queue_store_seal(db, id + 1, &seal, &e), -ENOENT);
}

static void those_that_are_over_are_not_loaded(void **s) {
    struct error e;
    int64_t a = add("alice"), b = add("bob");
    struct queue_job_row over = {.id = a, .state = JOB_FAILED, .ended_ns = 99, .text = "no"};
    assert_int_equal(queue_store_job(db, &over, &e), 0);
    look();
    assert_int_equal(seen.jobs, 1);
    assert_int_equal(seen.id[0], b);
    assert_int_equal(queue_store_state(db, a, &e), JOB_FAILED);
    assert_int_equal(queue_store_state(db, 77, &e), -ENOENT);
    over.id = 77;
    assert_int_equal(queue_store_job(db, &over, &e), -ENOENT);
}

static void numbers_are_never_used_twice(void **s) {
    struct error e;
    int64_t a = add("alice");
    struct queue_job_row over = {.id = a, .state = JOB_DONE, .ended_ns = 99};
    assert_int_equal(queue_store_job(db, &over, &e), 0);
    assert_int_equal(queue_store_trim(db, 100, &e), 1);
    assert_int_equal(queue_store_state(db, a, &e), -ENOENT);
    assert_true(add("alice") > a);
    assert_int_equal(queue_store_trim(db, 100, &e), 0);
}

static void a_batch_has_numbers_in_a_row(void **s) {
    struct queue_job_row rows[50];
    struct error e;
    int64_t first, next;
    for (int i = 0; i < 50; i++) rows[i] = job_named("alice");
    assert_int_equal(queue_store_add(db, rows, 50, &first, &e), 0);
    assert_int_equal(queue_store_add(db, rows, 50, &next, &e), 0);
    assert_int_equal(next, first + 50);
    struct queue_ask ask = {.limit = 7, .before = first + 60};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(queue_store_list(db, &ask, &reader, &e), 7);
    for (int i = 0; i < 7; i++) assert_int_equal(seen.id[i], first + 59 - i);
    ask = (struct queue_ask){.limit = 7, .user = "bob"};
    assert_int_equal(queue_store_list(db, &ask, &reader, &e), 0);
    ask = (struct queue_ask){.limit = 7, .states = BIT(JOB_RUNNING)};
    assert_int_equal(queue_store_list(db, &ask, &reader, &e), 0);
    ask = (struct queue_ask){.limit = 7, .states = BIT(JOB_WAITING) | BIT(JOB_HELD), .user = "alice"};
    assert_int_equal(queue_store_list(db, &ask, &reader, &e), 7);
}

static struct queue_report_row total;
static void see_report(void *ctx, const struct queue_report_row *r) {
    total.held_s += r->held_s;
    total.used_s += r->used_s;
    total.runs += r->runs;
    total.failed += r->failed;
    total.wait_s += r->wait_s;
}

static void hours_are_divided(void **s) {
    static const struct {
        const char *name;
        int64_t from_ns, to_ns;
        int gpus;
        int64_t ask_from, ask_to; /* hours */
        double held_s, used_s;
        int runs;
    } rows[] = {
        {"all of it",        10 * HOUR, 13 * HOUR,                 2, 0,  100, 21600, 3600, 1},
        {"its first hour",   10 * HOUR, 13 * HOUR,                 2, 10, 11,  7200,  1200, 0},
        {"its last hour",    10 * HOUR, 13 * HOUR,                 2, 12, 13,  7200,  1200, 1},
        {"within an hour",   10 * HOUR, 10 * HOUR + 60 * NS_PER_S, 1, 10, 11,  60,    3600, 1},
        {"no time at all",   10 * HOUR, 10 * HOUR,                 1, 10, 11,  0,     3600, 1},
        {"before its start", 10 * HOUR, 9 * HOUR,                  1, 0,  100, 0,     3600, 1},
        {"a clock was set",  10 * HOUR, 900000ll * HOUR,           1, 0,  10,  0,     0,    0},
    };
    struct error e;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct queue_usage u = {"alice", rows[i].from_ns, rows[i].to_ns, rows[i].gpus, 3600, 10, 5, true};
        assert_int_equal(sql_script(db, "DELETE FROM usage", &e), 0);
        assert_int_equal(queue_store_usage(db, &u, &e), 0);
        total = (struct queue_report_row){0};
        assert_int_equal(queue_store_report(db, rows[i].ask_from, rows[i].ask_to, see_report, NULL, &e), 0);
        if (fabs(total.held_s - rows[i].held_s) > 1e-6) print_message("%s: held %f\n", rows[i].name, total.held_s);
        assert_true(fabs(total.held_s - rows[i].held_s) < 1e-6);
        assert_true(fabs(total.used_s - rows[i].used_s) < 1e-6);
        assert_int_equal(total.runs, rows[i].runs);
        assert_int_equal(total.failed, rows[i].runs);
    }
}

static void cordons_come_and_go(void **s) {
    struct error e;
    assert_int_equal(queue_store_cordon(db, "GPU-1", "fan", "root", 1, &e), 0);
    assert_int_equal(queue_store_cordon(db, "GPU-1", "noise", "root", 1, &e), 0);
    look();
    assert_int_equal(seen.cordons, 1);
    assert_int_equal(queue_store_cordon(db, "GPU-1", NULL, "root", 1, &e), 0);
    look();
    assert_int_equal(seen.cordons, 0);
}

/* ---- what runs leave behind ---- */

static struct {
    int count;
    int64_t job[40];
    double ratio;
    char user[64];
} found;

static int see_trail(void *ctx, const struct queue_job_row *j, const struct queue_run_row *r, struct error *e) {
    if (found.count < 40) found.job[found.count] = j->id;
    found.count++;
    found.ratio = r->of.gpu_ratio;
    snprintf(found.user, sizeof found.user, "%s", j->user);
    return 0;
}

static void ran(int64_t job, uint32_t attempt, const char *gpus, int64_t granted, int64_t ended) {
    struct error e;
    struct queue_run_row row = {.state = ended ? JOB_DONE : JOB_RUNNING, .gpus = gpus, .granted_ns = granted};
    row.of.key = (struct wire_run_key){job, 0, attempt};
    row.of.start_ns = granted + 1;
    row.of.end_ns = ended;
    row.of.gpu_ratio = 0.25;
    assert_int_equal(queue_store_run(db, &row, &e), 0);
}

static int on_gpu(const char *gpu, int64_t from, int64_t to, int limit) {
    struct error e;
    struct trail_ask ask = {gpu, from, to, limit};
    memset(&found, 0, sizeof found);
    return trail_of_gpu(db, &ask, see_trail, NULL, &e);
}

static void runs_of_a_gpu_in_a_span(void **s) {
    int64_t ada = add("ada"), bob = add("bob"), eve = add("eve");
    ran(ada, 1, "GPU-1,GPU-2", 100, 200);
    ran(bob, 1, "GPU-1", 200, 300);
    ran(eve, 1, "GPU-1", 300, 0); /* one that goes on is asked of the queue */
    assert_int_equal(on_gpu("GPU-1", 0, 1000, 10), 0);
    assert_int_equal(found.count, 2);
    assert_true(found.job[0] == bob && found.job[1] == ada && found.ratio == 0.25);
    assert_int_equal(on_gpu("GPU-2", 150, 160, 10), 0); /* it began before and ended after */
    assert_true(found.count == 1 && found.job[0] == ada && strcmp(found.user, "ada") == 0);
    assert_int_equal(on_gpu("GPU-1", 200, 1000, 10), 0); /* an end is not part of it */
    assert_true(found.count == 1 && found.job[0] == bob);
    assert_int_equal(on_gpu("GPU-1", 0, 200, 10), 0);
    assert_true(found.count == 1 && found.job[0] == ada);
    assert_int_equal(on_gpu("GPU-3", 0, 1000, 10), 0);
    assert_int_equal(found.count, 0);
    ran(eve, 1, "GPU-1", 300, 400);
    ran(eve, 1, "GPU-1", 300, 400); /* told again after a crash: the same */
    assert_int_equal(on_gpu("GPU-1", 0, 1000, 10), 0);
    assert_int_equal(found.count, 3);
    assert_int_equal(on_gpu("GPU-1", 0, 1000, 2), 1); /* the newest, and that there are more */
    assert_true(found.count == 2 && found.job[0] == eve && found.job[1] == bob);
    assert_int_equal(on_gpu("GPU-1", 250, 350, 1), 0);
    assert_true(found.count == 2 && found.job[0] == eve && found.job[1] == bob);
}

static int see_plan(const struct sql_row *row, void *ctx, struct error *e) {
    buf_printf(ctx, "%s\n", sql_row_text(row, 3));
    return 0;
}

/* However many there were, before and after: the two indices are used, and no row but those of the span is read. */
static void spans_are_found_by_index(void **s) {
    struct error e;
    char plan[1000] = "";
    AUTO(buf_done) struct buf b = {0};
    static const char *const asked[] = {
        "EXPLAIN QUERY PLAN SELECT * FROM gpu_runs WHERE gpu='a' AND granted>=1 AND granted<2 ORDER BY granted DESC "
        "LIMIT 5",
        "EXPLAIN QUERY PLAN SELECT * FROM gpu_runs WHERE gpu='a' AND ended>1 ORDER BY ended LIMIT 5"};
    for (int i = 0; i < 2; i++) assert_true(sql_each(db, see_plan, &b, &e, asked[i], "") > 0);
    snprintf(plan, sizeof plan, "%s", b.s);
    assert_non_null(strstr(plan, "gpu_runs_granted (gpu=? AND granted>? AND granted<?)"));
    assert_non_null(strstr(plan, "gpu_runs_ended (gpu=? AND ended>?)"));
    assert_null(strstr(plan, "TEMP B-TREE"));
}

static void curves_of_runs(void **s) {
    AUTO(buf_done) struct buf b = {0};
    static struct trail_curve got;
    static struct curve c;
    struct error e;
    int64_t ada = add("ada");
    ran(ada, 1, "GPU-1", 100, 200);
    ran(ada, 2, "GPU-1", 300, 400);
    assert_int_equal(trail_curve(db, ada, -1, 0, &got, &e), 0);
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        struct curve_point p = {
            .at_ms = 2000 * attempt, .value = {attempt, 0, 0, 0}
        };
        struct wire_run_key k = {ada, 0, attempt};
        buf_clear(&b);
        curve_add(&c, &p);
        curve_encode(&c, &b);
        assert_int_equal(trail_store_curve(db, &k, b.s, b.len, &e), 0);
    }
    assert_int_equal(trail_curve(db, ada, -1, 0, &got, &e), 1);
    assert_true(got.key.attempt == 2 && got.started_ns == 301 && got.ended_ns == 400 && got.curve.count == 2);
    assert_int_equal(trail_curve(db, ada, -1, 1, &got, &e), 1);
    assert_true(got.key.attempt == 1 && got.curve.count == 1 && got.curve.of[0].value[CURVE_CPU_MS] == 1);
    assert_int_equal(trail_curve(db, ada, -1, 3, &got, &e), 0);
    assert_int_equal(trail_curve(db, ada + 1, -1, 0, &got, &e), -ENOENT);
    assert_int_equal(trail_curve(db, ada, 5, 0, &got, &e), -ENOENT);
    struct queue_job_row row = {.id = ada, .state = JOB_DONE, .ended_ns = 50};
    assert_int_equal(queue_store_job(db, &row, &e), 0);
    assert_int_equal(queue_store_trim(db, 100, &e), 1); /* what is forgotten leaves nothing behind */
    int64_t left = -1;
    assert_int_equal(sql_int(db, &left, &e, "SELECT (SELECT count(*) FROM curves)+(SELECT count(*) FROM gpu_runs)", ""),
                     0);
    assert_int_equal(left, 0);
}

/* A file of before: what had ended is found by its GPUs. */
static void older_files_get_their_trail(void **s) {
    enum { BEFORE = 11 };
    struct error e;
    char text[120];
    sql_close(db);
    db = NULL;
    snprintf(path, sizeof path, "%s/older.db", dir);
    assert_int_equal(sql_open(path, &db, &e), 0);
    assert_int_equal(schema_bring_to(db, path, BEFORE, &e), 0);
    assert_true(sql_script(db, "SELECT * FROM gpu_runs", NULL) < 0);
    int64_t ada = add("ada");
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            sql_do(db, &e,
                   "INSERT INTO runs(job,element,attempt,state,again,stop,gpus,granted,started,ended,reason,"
                   "has_exit,code,signal,memory_peak,memory_total,host_peak,log_bytes,text)"
                   " VALUES(?,0,?,?,0,0,?,100,101,?,0,0,0,0,0,0,0,0,'')",
                   "iiisi", ada, (int64_t)i + 1, (int64_t)(i ? JOB_RUNNING : JOB_DONE),
                   i ? "GPU-2" : "GPU-1,GPU-2,GPU-3", (int64_t)(i ? 0 : 200)),
            1);
    assert_int_equal(schema_bring(db, path, &e), 0);
    for (int i = 1; i <= 3; i++) {
        snprintf(text, sizeof text, "GPU-%d", i);
        assert_int_equal(on_gpu(text, 0, 1000, 10), 0);
        assert_true(found.count == 1 && found.job[0] == ada);
    }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(what_goes_in_comes_out),
                                       T(whose_child_it_is),
                                       T(those_that_are_over_are_not_loaded),
                                       T(numbers_are_never_used_twice),
                                       T(a_batch_has_numbers_in_a_row),
                                       T(hours_are_divided),
                                       T(cordons_come_and_go),
                                       T(runs_of_a_gpu_in_a_span),
                                       T(spans_are_found_by_index),
                                       T(curves_of_runs),
                                       T(older_files_get_their_trail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
