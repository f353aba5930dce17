#include "server/audit.h"

#include <stdio.h>
#include <string.h>

#include "server/state_sql.h"
#include "tests/test.h"
#include "tests/unit/scratch.h"

static void nobody_writes_a_few_a_second(void **state) {
    struct audit_gate g = {0};
    int64_t left_out = -1;
    int written = 0;
    for (int i = 0; i < 1000; i++) written += audit_gate(&g, 1800000000, &left_out);
    assert_int_equal(written, 100);
    assert_int_equal(left_out, 0);
    assert_true(audit_gate(&g, 1800000001, &left_out));
    assert_int_equal(left_out, 900);
    written = 0;
    for (int i = 0; i < 1000; i++) written += audit_gate(&g, 1800000001, &left_out);
    assert_int_equal(written, 4);
    written = 0;
    for (int i = 0; i < 1000; i++) written += audit_gate(&g, 1700000000, &left_out); /* the clock was set back */
    assert_int_equal(written, 100);
}

static struct sql *db;

static void add(const char *user, int n) {
    struct error e;
    for (int i = 0; i < n; i++)
        assert_int_equal(
            sql_do(db, &e, "INSERT INTO audit(time,user,means,address,method,path,status) VALUES(0,?,'','','','',0)",
                   "s", user),
            1);
}

static int64_t count(const char *user) {
    struct error e;
    int64_t n = -1;
    assert_int_equal(sql_int(db, &n, &e, "SELECT count(*) FROM audit WHERE user=?", "s", user), 0);
    return n;
}

static void nobody_pushes_nobody_out(void **state) {
    struct error e;
    char dir[64], path[100];
    struct state *s;
    snprintf(path, sizeof path, "%s/state.db", scratch_make(dir, "/dev/shm"));
    assert_int_equal(state_open(path, &s, &e), 0);
    state_close(s);
    assert_int_equal(sql_open(path, &db, &e), 0);
    add("alice", 5);
    add("", 50);
    assert_int_equal(audit_trim(db, 10, 7, &e), 0);
    assert_int_equal(count("alice"), 5);
    assert_int_equal(count(""), 7);
    add("alice", 8);
    assert_int_equal(audit_trim(db, 10, 7, &e), 0);
    assert_int_equal(count("alice"), 10);
    assert_int_equal(count(""), 7);
    AUTO(buf_done) struct buf page = {0};
    int64_t next;
    assert_int_equal(audit_read(db, 0, 3, &page, &next, &e), 0);
    assert_int_equal(next, 61);
    assert_non_null(strstr(page.s, "\"id\":63"));
    buf_clear(&page);
    assert_int_equal(audit_read(db, 61, 100, &page, &next, &e), 0);
    assert_int_equal(next, 0);
    assert_null(strstr(page.s, "\"id\":61"));
    sql_close(db);
    scratch_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_writes_a_few_a_second),
        cmocka_unit_test(nobody_pushes_nobody_out),
    };
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
