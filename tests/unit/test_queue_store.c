/* Jobs and runs as rows: what goes in comes out, batches are whole, hours are divided, what is old goes. */
#include "server/queue_store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
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

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(what_goes_in_comes_out),
                                       T(whose_child_it_is),
                                       T(those_that_are_over_are_not_loaded),
                                       T(numbers_are_never_used_twice),
                                       T(a_batch_has_numbers_in_a_row),
                                       T(hours_are_divided),
                                       T(cordons_come_and_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
