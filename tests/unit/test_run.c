/* A run's directory: records that are torn or foreign count as not written, orders come out as they went in and bad ones not
 * at all, a log keeps its bound with every byte in its place. */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file.h"
#include "run/log.h"
#include "run/order.h"
#include "run/record.h"
#include "run/stop.h"
#include "run/tree.h"
#include "tests/unit/scratch.h"

struct place {
    char dir[64], path[128];
};
static const char *place_make(struct place *p, const char *name) {
    snprintf(p->path, sizeof p->path, "%s/%s", scratch_make(p->dir, "/dev/shm"), name);
    return p->path;
}
static void place_done(struct place *p) { scratch_remove(p->dir); }

static void make(const char *path) {
    struct error e;
    AUTO(fd_done) int fd = -1;
    if (record_make(path, &fd, &e) < 0) fail_msg("%s", e.text);
}

static void append(int fd, enum record_kind kind, int code) {
    struct record r = {.kind = (uint8_t)kind, .code = code, .has_exit = 1};
    struct error e;
    if (record_append(fd, &r, true, &e) < 0) fail_msg("%s", e.text);
}

static void records_are_read_back(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at, "state");
    struct error e;
    struct record_state s;
    make(path);
    int none;
    assert_int_equal(record_make(path, &none, &e), -EEXIST);
    AUTO(fd_done) int fd = record_open(path, &e);
    assert_true(fd >= 0);
    assert_int_equal(record_read(fd, &s, &e), 0);
    assert_int_equal(s.used, 0);
    append(fd, RECORD_INTENT, 1);
    append(fd, RECORD_INTENT, 2);
    append(fd, RECORD_STARTED, 3);
    append(fd, RECORD_EXIT, 4);
    append(fd, RECORD_EXIT, 5);
    assert_int_equal(record_read(fd, &s, &e), 0);
    assert_int_equal(s.used, 5);
    assert_int_equal(s.of[RECORD_INTENT].code, 2);
    assert_int_equal(s.of[RECORD_EXIT].code, 4); /* the first end counts */
    assert_false(s.has[RECORD_DONE]);
    for (int i = 5; i < RECORD_SLOTS; i++) append(fd, RECORD_FIGURES, i);
    struct record more = {.kind = RECORD_DONE};
    assert_int_equal(record_append(fd, &more, true, &e), -ENOSPC);
}

/* Each byte of a record in turn, and each length of a file that was cut. */
static void torn_is_unwritten(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at, "state");
    struct error e;
    struct record_state s;
    uint8_t bytes[2 * RECORD_BYTES];
    make(path);
    AUTO(fd_done) int fd = record_open(path, &e);
    append(fd, RECORD_INTENT, 0);
    append(fd, RECORD_STARTED, 0);
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), sizeof bytes);
    for (size_t i = RECORD_BYTES; i < sizeof bytes; i++) {
        bytes[i] ^= 0x40;
        record_scan(bytes, sizeof bytes, &s);
        if (!s.has[RECORD_INTENT] || s.has[RECORD_STARTED] || s.used != 2) fail_msg("byte %zu", i);
        bytes[i] ^= 0x40;
    }
    for (size_t n = 0; n <= sizeof bytes; n++) {
        record_scan(bytes, n, &s);
        if (s.has[RECORD_STARTED] != (n == sizeof bytes) || s.has[RECORD_INTENT] != (n >= RECORD_BYTES))
            fail_msg("%zu bytes", n);
    }
}

static void only_one_has_it(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at, "state");
    struct error e;
    int status, up[2];
    char c;
    make(path);
    assert_int_equal(pipe(up), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = record_open(path, &e);
        (void)!write(up[1], record_lock(fd) == 0 ? "y" : "n", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(up[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    AUTO(fd_done) int fd = record_open(path, &e);
    assert_int_equal(record_lock(fd), -EAGAIN);
    assert_int_equal(record_holder(fd), child);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(record_holder(fd), 0);
    assert_int_equal(record_lock(fd), 0);
    close(up[0]);
    close(up[1]);
}

static const struct order an_order = {
    .uid = 1000,
    .gid = 1001,
    .umask = 027,
    .becomes = true,
    .groups = 2,
    .group = (const uint8_t *)"\1\0\0\0\xd2\4\0",
    .limit_ns = 5,
    .grace_ns = 6,
    .log_max = 7u << 20,
    .cwd = "/home",
    .cgroup = "",
    .argv = {"echo\0\0a b", 10, 3},
    .env = {"A=1\0",       4,  1},
};

static void orders_come_out_as_they_went_in(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct order o;
    struct error e;
    order_encode(&an_order, &b);
    if (order_decode(b.s, b.len, &o, &e) < 0) fail_msg("%s", e.text);
    assert_true(o.uid == 1000 && o.gid == 1001 && o.umask == 027 && o.becomes && !o.is_pty && o.limit_ns == 5);
    assert_true(o.groups == 2 && order_group(&o, 0) == 1 && order_group(&o, 1) == 1234 && o.log_max == 7u << 20);
    assert_string_equal(o.cwd, "/home");
    char **v = order_vector(&o.argv);
    assert_string_equal(v[0], "echo");
    assert_string_equal(v[1], "");
    assert_string_equal(v[2], "a b");
    assert_null(v[3]);
    free(v);
}

static void bad_orders_are_refused(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct order o;
    struct error e;
    order_encode(&an_order, &b);
    for (size_t n = 0; n < b.len; n++)
        if (order_decode(b.s, n, &o, &e) >= 0) fail_msg("%zu of %zu bytes", n, b.len);
    struct order odd = an_order;
    odd.argv = (struct order_words){"", 0, 0};
    buf_clear(&b);
    order_encode(&odd, &b);
    assert_int_equal(order_decode(b.s, b.len, &o, &e), -EPROTO);
    odd.argv = (struct order_words){"ab", 2, 1}; /* without its end */
    buf_clear(&b);
    order_encode(&odd, &b);
    assert_int_equal(order_decode(b.s, b.len, &o, &e), -EPROTO);
}

/* Pieces of all sizes, and what is read from anywhere is what was said there. */
static void logs_keep_their_bound(void **state) {
    AUTO(place_done) struct place at = {0};
    const char *path = place_make(&at, "log");
    struct run_log l = {0};
    struct error e;
    struct stat st;
    static char piece[70000], back[4096];
    if (run_log_open(&l, path, 1 << 20, getuid(), getgid(), &e) < 0) fail_msg("%s", e.text);
    uint64_t said = 0;
    srand(7);
    while (said < 5u << 20) {
        size_t n = (size_t)rand() % sizeof piece + 1;
        for (size_t i = 0; i < n; i++) piece[i] = (char)((said + i) * 2654435761u >> 13);
        run_log_add(&l, piece, n);
        said += n;
        assert_int_equal(l.end, said);
        assert_int_equal(fstat(l.fd, &st), 0);
        if (st.st_blocks * 512 > 1 << 20) fail_msg("%ld bytes on the disk", (long)st.st_blocks * 512);
    }
    bool was_cut = false;
    for (uint64_t from = 0, to; from < said; from = to) {
        to = from;
        ssize_t n = run_log_read(l.fd, &to, back, sizeof back);
        assert_true(n > 0);
        was_cut |= to != from;
        for (ssize_t i = 0; i < n; i++)
            if (back[i] != (char)((to + (uint64_t)i) * 2654435761u >> 13))
                fail_msg("byte %lu", (unsigned long)to + (unsigned long)i);
        to += (uint64_t)n;
    }
    uint64_t end = said;
    assert_true(was_cut);
    assert_int_equal(run_log_read(l.fd, &end, back, sizeof back), 0);
    close(l.fd);
}

static void stops_fit_into_a_signal(void **state) {
    static const struct {
        uint8_t reason;
        int64_t ms, want_ms;
    } rows[] = {
        {0,   0,         0               },
        {3,   1,         100             },
        {255, 30000,     30000           },
        {1,   -5,        0               },
        {9,   1ll << 50, 0x7fffffll * 100}
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int v = stop_value(rows[i].reason, rows[i].ms);
        if (stop_reason(v) != rows[i].reason || stop_grace_ms(v) != rows[i].want_ms) fail_msg("row %zu", i);
    }
}

static void trees_are_found(void **state) {
    struct tree t = {0};
    int status;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    uint64_t ticks = tree_ticks(child);
    assert_true(ticks > 0 && tree_scan(&t));
    tree_take_pid(&t, child, ticks + 1); /* another process of that number */
    assert_int_equal(tree_signal(&t, 0), 0);
    tree_take_children(&t, getpid());
    tree_take_below(&t);
    assert_int_equal(tree_signal(&t, SIGKILL), 1);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(tree_ticks(child), 0);
    tree_done(&t);
}

/* What a process used counts once, while it lives and after it was waited for. */
static void use_is_counted_once(void **state) {
    struct tree t = {0};
    struct tree_use alive, after;
    int go[2], ready[2], status;
    char c;
    assert_int_equal(pipe(go) | pipe(ready), 0);
    pid_t root = fork();
    if (root == 0) { /* the shim's part: its child spins for a fifth of a second */
        pid_t child = fork();
        if (child == 0) {
            struct timespec used = {0};
            while (used.tv_sec == 0 && used.tv_nsec < 200000000) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            (void)!write(ready[1], "x", 1);
            (void)!read(go[0], &c, 1);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        (void)!write(ready[1], "x", 1);
        pause();
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_true(tree_scan(&t));
        tree_take_pid(&t, root, tree_ticks(root));
        tree_take_below(&t);
        tree_used(&t, root, i ? &after : &alive);
        if (i == 0) assert_int_equal(write(go[1], "x", 1), 1);
    }
    assert_true(alive.processes == 1 && alive.host_bytes > 0 && alive.cpu_s > 0.15 && alive.cpu_s < 1);
    assert_true(after.processes == 0 && after.host_bytes == 0 && after.cpu_s > 0.15 && after.cpu_s < 1);
    kill(root, SIGKILL);
    waitpid(root, &status, 0);
    tree_done(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_is_counted_once),
        cmocka_unit_test(records_are_read_back),
        cmocka_unit_test(torn_is_unwritten),
        cmocka_unit_test(only_one_has_it),
        cmocka_unit_test(orders_come_out_as_they_went_in),
        cmocka_unit_test(bad_orders_are_refused),
        cmocka_unit_test(logs_keep_their_bound),
        cmocka_unit_test(stops_fit_into_a_signal),
        cmocka_unit_test(trees_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
