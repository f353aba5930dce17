#include "server/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "server/auth_store.h"
#include "server/state_groups.h"
#include "server/state_schema.h"
#include "server/state_sql.h"
#include "tests/test.h"
#include "tests/unit/scratch.h"

static char dir[64], path[100];

/* A loop that runs what it is given at once, on the store thread. */
static void post_now(void *loop, void (*fn)(void *arg), void *arg) { fn(arg); }

struct add {
    const char *name;
    int result;
    char text[100];
    sem_t done;
};

static int add_group(struct sql *db, void *ctx, struct error *e) {
    const struct add *a = ctx;
    int r = sql_do(db, e, "INSERT INTO groups VALUES(?,'','',0)", "s", a->name);
    if (r >= 0 && strcmp(a->name, "regret") == 0) return fail(e, -EPERM, "thought better of it");
    return r;
}

static void added(void *ctx, int result, const struct error *e) {
    struct add *a = ctx;
    a->result = result;
    if (result < 0) snprintf(a->text, sizeof a->text, "%.99s", e->text);
    sem_post(&a->done);
}

static int64_t count_groups(void) {
    struct error e;
    struct sql *db;
    int64_t n = -1;
    assert_int_equal(sql_open(path, &db, &e), 0);
    assert_int_equal(sql_int(db, &n, &e, "SELECT count(*) FROM groups", ""), 0);
    sql_close(db);
    return n;
}

static void jobs_are_kept_or_undone_each_by_itself(void **s) {
    struct error e;
    struct state *state;
    static struct add jobs[] = {{"a"}, {"b"}, {"a"}, {"regret"}, {"c"}};
    assert_int_equal(state_open(path, &state, &e), 0);
    assert_int_equal(state_start(state, post_now, NULL, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        sem_init(&jobs[i].done, 0, 0);
        assert_int_equal(state_submit(state, add_group, added, &jobs[i], &e), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) sem_wait(&jobs[i].done);
    assert_int_equal(jobs[0].result, 1);
    assert_int_equal(jobs[1].result, 1);
    assert_int_equal(jobs[2].result, -EEXIST);
    assert_int_equal(jobs[3].result, -EPERM);
    assert_string_equal(jobs[3].text, "thought better of it");
    assert_int_equal(jobs[4].result, 1);
    state_close(state);
    assert_int_equal(count_groups(), 3);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static int block(struct sql *db, void *ctx, struct error *e) {
    sem_wait(ctx);
    return 0;
}

static void the_queue_has_an_end(void **s) {
    struct error e;
    struct state *state;
    sem_t gate;
    sem_init(&gate, 0, 0);
    assert_int_equal(state_open(path, &state, &e), 0);
    assert_int_equal(state_start(state, post_now, NULL, &e), 0);
    int taken = 0;
    while (taken < 2 * STATE_QUEUE_MAX && state_submit(state, block, NULL, &gate, &e) == 0) taken++;
    assert_in_range(taken, STATE_QUEUE_MAX, STATE_QUEUE_MAX + 256);
    assert_int_equal(state_submit(state, block, NULL, &gate, &e), -EAGAIN);
    for (int i = 0; i < taken; i++) sem_post(&gate);
    state_close(state);
}

static void write_text(const char *text) {
    struct error e;
    assert_int_equal(file_write(path, 0600, text, strlen(text), false, &e), 0);
}

static void run_sql(const char *text) {
    struct error e;
    struct sql *db;
    assert_int_equal(sql_open(path, &db, &e), 0);
    assert_int_equal(sql_script(db, text, &e), 0);
    sql_close(db);
}

static void read_file(struct buf *ret) {
    struct error e;
    assert_int_equal(file_read(path, 1 << 20, ret, &e), 0);
}

/* Refused with a sentence, and not a byte is changed. */
static void refused(int code, const char *word) {
    struct error e;
    struct state *state;
    AUTO(buf_done) struct buf before = {0}, after = {0};
    read_file(&before);
    assert_int_equal(state_open(path, &state, &e), code);
    if (!strstr(e.text, word) || !strstr(e.text, path)) fail_msg("\"%s\" does not say \"%s\"", e.text, word);
    read_file(&after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.s, after.s, before.len);
}

static void files_that_are_not_ours_are_left_alone(void **s) {
    char text[60];
    write_text("this is a letter to my aunt, and it is long enough not to be taken for the beginning of a database, I "
               "hope, as it goes on");
    refused(-EBADMSG, "not a database");
    unlink(path);
    run_sql("CREATE TABLE mine(x); INSERT INTO mine VALUES(1)");
    refused(-EINVAL, "not gpumgr's state");
    unlink(path);
    struct error e;
    struct state *state;
    assert_int_equal(state_open(path, &state, &e), 0);
    state_close(state);
    snprintf(text, sizeof text, "PRAGMA user_version=%d", schema_newest() + 1);
    run_sql(text);
    refused(-EINVAL, "newer gpumgr");
}

struct kept {
    int accounts, sessions, tokens, groups;
};
static void saw_account(void *ctx, const struct account *a) {
    if (strcmp(a->name, a->id == 1 ? "admin" : "alice") != 0) fail_msg("account %d is %s", (int)a->id, a->name);
    if (a->uid != (a->id == 1 ? -1 : 1000)) fail_msg("%s has uid %d", a->name, (int)a->uid);
    ((struct kept *)ctx)->accounts++;
}
static void saw_session(void *ctx, const struct session *x) {
    ((struct kept *)ctx)->sessions += x->id == 7 && x->user == 2 && x->hash[31] == 31;
}
static void saw_token(void *ctx, const struct token *t) {
    ((struct kept *)ctx)->tokens += t->id == 3 && t->hash[0] == 32 && strcmp(t->name, "prometheus") == 0;
}
static void saw_group(void *ctx, const struct state_group *g) {
    ((struct kept *)ctx)->groups += strcmp(g->members, "node:a,gpu:GPU-1") == 0;
}
static int look(struct sql *db, void *ctx, struct error *e) {
    const struct store_reader reader = {ctx, saw_account, saw_session, saw_token};
    int64_t version = -1, notices = -1;
    int r = store_read_all(db, &reader, e);
    if (r == 0) r = state_groups_read(db, saw_group, ctx, e);
    if (r == 0) r = sql_int(db, &version, e, "PRAGMA user_version", "");
    if (r == 0) r = sql_int(db, &notices, e, "SELECT count(*) FROM notices", ""); /* a table of a later step */
    assert_int_equal(version, schema_newest());
    return r;
}

static void a_file_of_the_first_version_is_brought_up_to_date(void **s) {
    struct error e;
    struct state *state;
    char sql[300];
    AUTO(buf_done) struct buf text = {0};
    snprintf(sql, sizeof sql, "%s/tests/data/state-v1.sql", getenv("SOURCE_DIR") ? getenv("SOURCE_DIR") : ".");
    assert_int_equal(file_read(sql, 1 << 20, &text, &e), 0);
    run_sql(text.s);
    for (int again = 0; again < 2; again++) {
        struct kept kept = {0};
        assert_int_equal(state_open(path, &state, &e), 0);
        assert_int_equal(state_run(state, look, &kept, &e), 0);
        state_close(state);
        assert_int_equal(kept.accounts, 2);
        assert_int_equal(kept.sessions, 1);
        assert_int_equal(kept.tokens, 1);
        assert_int_equal(kept.groups, 1);
    }
}

static int one_writer(int fd) {
    struct error e;
    struct state *state;
    if (state_open(path, &state, &e) < 0 || state_start(state, post_now, NULL, &e) < 0) return 1;
    for (int i = 0; i < 100000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d-%d", (int)getpid(), i);
        struct add job = {.name = name};
        sem_init(&job.done, 0, 0);
        if (state_submit(state, add_group, added, &job, &e) < 0) return 1;
        sem_wait(&job.done);
        if (job.result < 0 || write(fd, "x", 1) != 1) return 1;
    }
    return 0;
}

/* Killed at any moment: what was reported as done is there. */
static void what_was_acknowledged_is_there(void **s) {
    int64_t acknowledged = 0;
    for (int round = 0; round < 8; round++) {
        int pipe_fd[2];
        char byte;
        assert_int_equal(pipe(pipe_fd), 0);
        pid_t pid = fork();
        if (pid == 0) _exit(one_writer(pipe_fd[1]));
        close(pipe_fd[1]);
        for (int i = 0; i < 10 + round * 7; i++)
            if (read(pipe_fd[0], &byte, 1) == 1) acknowledged++;
        assert_int_equal(kill(pid, 9), 0);
        while (read(pipe_fd[0], &byte, 1) == 1) acknowledged++;
        close(pipe_fd[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status)); /* it did not fail by itself */
        int64_t there = count_groups();
        assert_in_range(there, acknowledged, acknowledged + round + 1); /* at most the one under way more, each time */
    }
    assert_true(acknowledged > 100);
}

static int fresh(void **s) {
    scratch_make(dir, "/tmp");
    snprintf(path, sizeof path, "%s/state.db", dir);
    return 0;
}

static int clean(void **s) {
    scratch_remove(dir);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_are_kept_or_undone_each_by_itself, fresh, clean),
        cmocka_unit_test_setup_teardown(the_queue_has_an_end, fresh, clean),
        cmocka_unit_test_setup_teardown(files_that_are_not_ours_are_left_alone, fresh, clean),
        cmocka_unit_test_setup_teardown(a_file_of_the_first_version_is_brought_up_to_date, fresh, clean),
        cmocka_unit_test_setup_teardown(what_was_acknowledged_is_there, fresh, clean),
    };
    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
