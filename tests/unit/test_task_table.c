/* The task table: what is written is read, by the documented way; the oldest that ended make place; whoever takes the file up goes
 * on where the other was killed. And what /proc says of a process. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "node/process.h"
#include "node/table.h"
#include "tests/unit/scratch.h"

static bool is_live[TABLE_SLOTS];

struct place {
    char dir[64], path[128];
};
static const char *place_make(struct place *p) {
    snprintf(p->path, sizeof p->path, "%s/tasks", scratch_make(p->dir, "/dev/shm"));
    return p->path;
}
static void place_done(struct place *p) { scratch_remove(p->dir); }

static void opened(struct table *t, const char *path, const char *boot) {
    struct error e;
    if (table_open(t, path, boot, &e) < 0) fail_msg("%s", e.text);
}

static void put(struct table *t, int32_t pid, int64_t start_ns, int64_t now_ns) {
    struct gpumgr_task k = {.pid = pid, .ticks = 7, .start_ns = start_ns};
    int32_t slot = table_take(t, is_live);
    assert_true(slot >= 0);
    table_put(t, (uint32_t)slot, &k, now_ns);
}

static void written_is_read(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at);
    struct table t;
    struct gpumgr_task got;
    opened(&t, path, "boot-1");
    assert_false(table_get(&t, 0, &got));
    put(&t, 10, 100, 1000);
    put(&t, 11, 101, 1000);
    assert_true(table_get(&t, 0, &got) && got.pid == 10 && got.mark == 1000 && got.turn == 2);
    assert_true(table_get(&t, 1, &got) && got.pid == 11);
    assert_int_equal(got.mark, 1001); /* of one moment, and yet one after the other */
    got.memory_bytes = 5;
    table_refresh(&t, 1, &got);
    assert_true(table_get(&t, 1, &got) && got.memory_bytes == 5 && got.mark == 1001 && got.turn == 4);
    assert_int_equal(table_gpu(&t, "GPU-a", UINT32_MAX, UINT32_MAX), 0);
    assert_int_equal(table_gpu(&t, "MIG-b", 3, 0), 1);
    assert_int_equal(table_gpu(&t, "GPU-a", UINT32_MAX, UINT32_MAX), 0);
    assert_string_equal(gpumgr_task_gpu(t.head, 1)->uuid, "MIG-b");
    table_close(&t);
}

static void oldest_make_place(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at);
    struct table t;
    struct gpumgr_task got;
    opened(&t, path, "boot-1");
    for (int32_t i = 0; i < TABLE_SLOTS; i++) put(&t, i + 1, i + 1, i + 1);
    assert_int_equal(t.dropped, 0);
    is_live[0] = is_live[2] = true;
    put(&t, 90001, 90001, 90001);
    put(&t, 90002, 90002, 90002);
    assert_true(table_get(&t, 0, &got) && got.pid == 1);
    assert_true(table_get(&t, 1, &got) && got.pid == 90001);
    assert_true(table_get(&t, 2, &got) && got.pid == 3);
    assert_true(table_get(&t, 3, &got) && got.pid == 90002);
    assert_int_equal(t.dropped, 2);
    memset(is_live, true, sizeof is_live);
    assert_int_equal(table_take(&t, is_live), -1);
    memset(is_live, false, sizeof is_live);
    table_close(&t);
}

static void taken_up_again(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at);
    struct table t;
    struct gpumgr_task got;
    struct event ev = {.kind = "task_overdue", .text = "late"}, back;
    int64_t mark;
    opened(&t, path, "boot-1");
    put(&t, 10, 100, 1000);
    put(&t, 11, 101, 2000);
    table_put_event(&t, &ev, 3000);
    uint64_t *turn = (uint64_t *)(void *)((char *)t.shm.mem + t.head->slots_at);
    *turn |= 1; /* killed in the middle of the first slot */
    table_close(&t);

    opened(&t, path, "boot-1");
    assert_false(table_get(&t, 0, &got));
    assert_true(table_get(&t, 1, &got) && got.pid == 11);
    assert_int_equal(t.mark, 3000);
    put(&t, 12, 102, 5); /* marks grow, whatever the clock says */
    assert_true(table_get(&t, 2, &got) && got.mark == 3001);
    assert_true(table_event(&t, 0, &mark, &back) && mark == 3000 && strcmp(back.text, "late") == 0);
    assert_false(table_event(&t, 3000, &mark, &back));
    table_close(&t);

    opened(&t, path, "boot-2"); /* another boot: its pids are nobody's */
    for (uint32_t i = 0; i < 4; i++) assert_false(table_get(&t, i, &got));
    assert_int_equal(t.mark, 0);
    table_close(&t);
}

static void events_in_order(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at);
    struct table t;
    struct event ev = {0};
    int64_t mark = 0, seen = 0;
    opened(&t, path, "boot-1");
    for (int i = 0; i < TABLE_EVENTS + 50; i++) {
        ev.code = i;
        table_put_event(&t, &ev, 10 + i / 3);
    }
    for (int i = 50; table_event(&t, mark, &mark, &ev); i++, seen++) assert_int_equal(ev.code, i);
    assert_int_equal(seen, TABLE_EVENTS);
    table_close(&t);
}

static void stats(void **state) {
    static const struct {
        const char *name, *text;
        bool want;
        const char *comm;
        char state;
        uint64_t ticks;
    } rows[] = {
        {"plain",            "7 (sh) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 99 9\n",             true,  "sh",      'S', 4711},
        {"blanks and ')'",   "7 (a) b) R) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 12 99 9\n",          true,  "a) b) R", 'Z', 12  },
        {"largest",          "7 (x) R 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 18446744073709551615 9\n", true,  "x",       'R',
         UINT64_MAX                                                                                                               },
        {"cut",              "7 (x) R 1 7 7 0 -1 4 0 0",                                               false, NULL,      0,   0   },
        {"no name",          "7 x R 1",                                                                false, NULL,      0,   0   },
        {"nothing",          "",                                                                       false, NULL,      0,   0   },
        {"ends at the name", "7 (x)",                                                                  false, NULL,      0,   0   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct process p = {0};
        bool got = process_parse_stat(rows[i].text, &p);
        if (got != rows[i].want) fail_msg("%s: %d", rows[i].name, got);
        if (!got) continue;
        if (strcmp(p.comm, rows[i].comm) != 0 || p.state != rows[i].state || p.ticks != rows[i].ticks)
            fail_msg("%s: %s %c %llu", rows[i].name, p.comm, p.state, (unsigned long long)p.ticks);
    }
}

static void statuses(void **state) {
    static const struct {
        const char *text;
        uint32_t uid;
        int32_t ns_pid;
    } rows[] = {
        {"Name:\tx\nUid:\t1000\t0\t0\t0\nNSpid:\t4711\t12\t1\n", 1000,       1   },
        {"Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t4711\n",           0,          4711},
        {"Name:\tx\nNSpid:\t\n",                                 UINT32_MAX, 0   },
        {"Name:\tUid:\nUid:\tx\n",                               UINT32_MAX, 0   },
        {"",                                                     UINT32_MAX, 0   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct process p = {.uid = UINT32_MAX};
        process_parse_status(rows[i].text, &p);
        if (p.uid != rows[i].uid || p.ns_pid != rows[i].ns_pid) fail_msg("row %zu: %u %d", i, p.uid, p.ns_pid);
    }
}

static void ourselves(void **state) {
    struct process p;
    assert_true(process_read("/proc", getpid(), &p));
    assert_int_equal(p.uid, getuid());
    assert_true(p.ticks > 0 && process_is_there("/proc", getpid(), p.ticks));
    assert_false(process_is_there("/proc", getpid(), p.ticks + 1));
    assert_false(process_read("/proc", INT32_MAX, &p));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read), cmocka_unit_test(oldest_make_place),
        cmocka_unit_test(taken_up_again),  cmocka_unit_test(events_in_order),
        cmocka_unit_test(stats),           cmocka_unit_test(statuses),
        cmocka_unit_test(ourselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
