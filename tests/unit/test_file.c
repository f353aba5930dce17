/* Files: whole or not at all, with a limit, and a sentence that names the path. */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/unit/scratch.h"

static char dir[64];

static const char *in_dir(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int setup(void **state) {
    scratch_make(dir, "/tmp");
    return 0;
}

static int teardown(void **state) {
    scratch_remove(dir);
    return 0;
}

static void write_and_read(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"",       0},
        {"x",      1},
        {"a\0b\n", 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        assert_int_equal(file_write(in_dir("f"), 0640, rows[i].bytes, rows[i].n, i & 1, &e), 0);
        assert_int_equal(file_read(in_dir("f"), 100, &b, &e), 0);
        assert_int_equal(b.len, rows[i].n);
        assert_memory_equal(b.s, rows[i].bytes, rows[i].n + 1);
    }
}

static void limits(void **state) {
    static const struct {
        size_t size, max;
        int want;
    } rows[] = {
        {10,    10,    0     },
        {11,    10,    -EFBIG},
        {4096,  4096,  0     },
        {4097,  4096,  -EFBIG},
        {10000, 9999,  -EFBIG},
        {10000, 10000, 0     },
        {1,     0,     -EFBIG},
        {0,     0,     0     },
    };
    char bytes[10000];
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf_done) struct buf b = {0};
        struct error e = {0};
        assert_int_equal(file_write(in_dir("f"), 0600, bytes, rows[i].size, false, &e), 0);
        assert_int_equal(file_read(in_dir("f"), rows[i].max, &b, &e), rows[i].want);
        if (rows[i].want < 0) assert_non_null(strstr(e.text, in_dir("f")));
        if (rows[i].want < 0) assert_null(b.s);
    }
}

static void unreadable(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct error e = {0};
    assert_int_equal(file_read(in_dir("none"), 10, &b, &e), -ENOENT);
    assert_non_null(strstr(e.text, in_dir("none")));
    assert_int_equal(file_read(dir, 10, &b, &e), -EISDIR);
    assert_int_equal(file_read("/dev/zero", 1000, &b, &e), -EFBIG); /* ends */
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(file_read(in_dir("fifo"), 10, &b, &e), 0); /* nobody writes: empty, and no waiting for him */
    assert_int_equal(b.len, 0);
}

/* Writes, waits until that was read, and writes again: the reader meets an empty pipe in between. */
static void *slow_writer(void *arg) {
    AUTO(fd_done) int fd = *(const int *)arg;
    int unread = 1;
    ssize_t n = write(fd, "early ", 6);
    while (n == 6 && ioctl(fd, FIONREAD, &unread) == 0 && unread > 0) sched_yield();
    n = write(fd, "late", 4);
    return n == 4 ? arg : NULL;
}

static void a_pipe_is_read_to_its_end(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct error e = {0};
    int ends[2];
    char from[64];
    pthread_t thread;
    void *wrote;
    assert_int_equal(pipe(ends), 0);
    snprintf(from, sizeof from, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(pthread_create(&thread, NULL, slow_writer, &ends[1]), 0);
    assert_int_equal(file_read(from, 100, &b, &e), 0);
    pthread_join(thread, &wrote);
    assert_non_null(wrote);
    assert_string_equal(b.s, "early late");
    close(ends[0]);
}

static void modes_do_not_depend_on_the_umask(void **state) {
    struct stat st;
    struct error e;
    mode_t old = umask(0077);
    assert_int_equal(file_write(in_dir("f"), 0644, "x", 1, false, &e), 0);
    umask(old);
    assert_int_equal(stat(in_dir("f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
}

static int entries(const char *path) {
    int n = 0;
    char command[200];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", path);
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%d", &n) != 1) n = -1;
    if (f) pclose(f);
    return n;
}

static void a_failed_write_leaves_the_old_one(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct error e = {0};
    struct rlimit old, small = {.rlim_cur = 100};
    char bytes[1000] = {0};
    assert_int_equal(file_write(in_dir("f"), 0600, "old", 3, false, &e), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = file_write(in_dir("f"), 0600, bytes, sizeof bytes, true, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(file_read(in_dir("f"), 100, &b, &e), 0);
    assert_string_equal(b.s, "old");
    assert_int_equal(entries(dir), 1); /* and nothing beside it */

    assert_int_equal(mkdir(in_dir("d"), 0700), 0);
    assert_int_equal(file_write(in_dir("d"), 0600, "x", 1, false, &e), -EISDIR);
    assert_int_equal(file_write(in_dir("no/f"), 0600, "x", 1, false, &e), -ENOENT);
    assert_int_equal(entries(dir), 2);
}

static void a_link_in_the_way_is_not_followed(void **state) {
    struct error e = {0};
    struct stat st;
    char beside[300];
    AUTO(buf_done) struct buf b = {0};
    assert_int_equal(file_write(in_dir("victim"), 0600, "mine", 4, false, &e), 0);
    char victim[200];
    snprintf(victim, sizeof victim, "%s", in_dir("victim"));
    for (int i = 0; i < 64; i++) { /* every name that the next writes could choose */
        snprintf(beside, sizeof beside, "%s.new.%d.%d", in_dir("f"), (int)getpid(), i);
        assert_int_equal(symlink(victim, beside), 0);
    }
    assert_int_equal(file_write(in_dir("f"), 0600, "new", 3, false, &e), 0);
    assert_int_equal(lstat(in_dir("f"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(file_read(victim, 10, &b, &e), 0);
    assert_string_equal(b.s, "mine");
}

static void what_the_dead_left_goes(void **state) {
    static const struct {
        const char *name;
        bool goes, goes_with_f; /* 99999999: nobody's number */
    } rows[] = {
        {"f.new.99999999.0",   true,  true },
        {"f.new.99999999",     true,  true },
        {"g.h.new.99999999.7", true,  false},
        {"f.new.1.0",          false, false},
        {"f.new.99999999.",    false, false},
        {"f.new.99999999.x",   false, false},
        {"f.new..0",           false, false},
        {"f.new.",             false, false},
        {"f.new",              false, false},
        {"f",                  false, false},
    };
    struct error e = {0};
    for (int with = 0; with < 2; with++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            assert_int_equal(file_write(in_dir(rows[i].name), 0600, "x", 1, false, &e), 0);
        dir_sweep(dir, with ? "f" : NULL);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            assert_int_equal(access(in_dir(rows[i].name), F_OK) < 0, with ? rows[i].goes_with_f : rows[i].goes);
    }
    dir_sweep(in_dir("nowhere"), NULL);
}

static void directories(void **state) {
    struct error e = {0};
    struct stat st;
    mode_t old = umask(0022);
    assert_int_equal(dir_make(in_dir("a/b/c"), 0700, &e), 0);
    assert_int_equal(dir_make(in_dir("a/b/c"), 0700, &e), 0);
    assert_int_equal(dir_make(in_dir("s//"), 0700, &e), 0);
    umask(old);
    assert_int_equal(stat(in_dir("a/b"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat(in_dir("a/b/c"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(in_dir("s"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    assert_int_equal(file_write(in_dir("f"), 0600, "x", 1, false, &e), 0);
    assert_int_equal(dir_make(in_dir("f"), 0700, &e), -ENOTDIR);
    assert_non_null(strstr(e.text, "is not a directory"));
    assert_int_equal(dir_make(in_dir("f/x"), 0700, &e), -ENOTDIR);
    assert_int_equal(dir_make("", 0700, &e), -ENAMETOOLONG);
    assert_int_equal(dir_make("/", 0700, &e), 0);
    assert_int_equal(symlink("/nowhere/at/all", in_dir("dangling")), 0);
    assert_int_equal(dir_make(in_dir("dangling"), 0700, &e), -ENOENT);
}

static void where_we_are(void **state) {
    char path[4096], small[4];
    struct error e = {0};
    struct stat st;
    assert_int_equal(dir_of_self(path, sizeof path, &e), 0);
    assert_true(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(dir_of_self(small, sizeof small, &e), -ENAMETOOLONG);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(write_and_read),
        T(limits),
        T(unreadable),
        T(a_pipe_is_read_to_its_end),
        T(modes_do_not_depend_on_the_umask),
        T(a_failed_write_leaves_the_old_one),
        T(a_link_in_the_way_is_not_followed),
        T(what_the_dead_left_goes),
        T(directories),
        T(where_we_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
