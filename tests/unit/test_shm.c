/* Mapped files: made whole and renamed in, room taken at once, replaced under a reader, and waited on read-only. */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/shm.h"
#include "tests/unit/scratch.h"

static char dir[64], path[100];

static int setup(void **state) {
    scratch_make(dir, "/dev/shm");
    snprintf(path, sizeof path, "%s/ring", dir);
    return 0;
}

static int teardown(void **state) {
    scratch_remove(dir);
    return 0;
}

static int entries(void) {
    int n = 0;
    char command[200];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", dir);
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%d", &n) != 1) n = -1;
    if (f) pclose(f);
    return n;
}

static void made_beside_and_renamed_in(void **state) {
    AUTO(shm_done) struct shm w = {0}, r = {0};
    struct error e = {0};
    struct stat st;
    mode_t old = umask(0077);
    assert_int_equal(shm_create(path, 5000, 0644, &w, &e), 0);
    umask(old);
    assert_int_equal(w.size, 5000);
    for (size_t i = 0; i < w.size; i++) assert_int_equal(((char *)w.mem)[i], 0);
    assert_int_equal(shm_open_file(path, false, 1, &r, &e), -ENOENT); /* not before it is published */
    assert_true(shm_is_replaced(&w, path));
    memcpy(w.mem, "hello", 6);
    assert_int_equal(shm_publish(path, &e), 0);
    assert_false(shm_is_replaced(&w, path));
    assert_int_equal(shm_open_file(path, false, 5000, &r, &e), 0);
    assert_string_equal(r.mem, "hello");
    memcpy(w.mem, "HELLO", 6);
    assert_string_equal(r.mem, "HELLO");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_true(st.st_blocks * 512 >= 5000); /* the room is taken */
    assert_int_equal(entries(), 1);
}

static void replaced_under_a_reader(void **state) {
    AUTO(shm_done) struct shm first = {0}, second = {0}, r = {0};
    struct error e = {0};
    assert_int_equal(shm_create(path, 100, 0644, &first, &e), 0);
    assert_int_equal(shm_publish(path, &e), 0);
    memcpy(first.mem, "first", 6);
    assert_int_equal(shm_open_file(path, false, 1, &r, &e), 0);
    assert_false(shm_is_replaced(&r, path));
    assert_int_equal(shm_create(path, 200, 0644, &second, &e), 0);
    assert_false(shm_is_replaced(&r, path));
    assert_int_equal(shm_publish(path, &e), 0);
    assert_true(shm_is_replaced(&r, path));
    assert_string_equal(r.mem, "first"); /* the old one lives as long as it is mapped */
    shm_done(&r);
    assert_null(r.mem);
    shm_done(&r);
    assert_int_equal(shm_open_file(path, true, 200, &r, &e), 0);
    assert_false(shm_is_replaced(&r, path));
    unlink(path);
    assert_true(shm_is_replaced(&r, path));
}

static void refusals(void **state) {
    struct shm s = {0};
    struct error e = {0};
    assert_int_equal(file_write(path, 0600, "short", 5, false, &e), 0);
    assert_int_equal(shm_open_file(path, false, 6, &s, &e), -EINVAL);
    assert_non_null(strstr(e.text, "too short"));
    assert_non_null(strstr(e.text, path));
    assert_int_equal(file_write(path, 0600, "", 0, false, &e), 0);
    assert_int_equal(shm_open_file(path, false, 0, &s, &e), -EINVAL);
    assert_int_equal(shm_open_file(dir, false, 1, &s, &e), -EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(shm_open_file(path, false, 1, &s, &e), -EINVAL);
    assert_null(s.mem);
    char nowhere[200];
    snprintf(nowhere, sizeof nowhere, "%s/no/ring", dir);
    assert_int_equal(shm_create(nowhere, 100, 0644, &s, &e), -ENOENT);
    assert_int_equal(shm_publish(nowhere, &e), -ENOENT);
}

/* A file size limit stands for any reason why the room cannot be had; see also below. */
static void no_room_by_limit(void **state) {
    struct shm s = {0};
    struct error e = {0};
    struct rlimit old, small = {.rlim_cur = 4096};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = shm_create(path, 1 << 20, 0644, &s, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(r, -EFBIG);
    assert_non_null(strstr(e.text, "no room for 1048576 bytes"));
    assert_null(s.mem);
    assert_int_equal(entries(), 0); /* nothing is left behind */
}

/* A full tmpfs, in a mount namespace of a child's own (a user namespace where this is not root). */
static bool write_to(const char *name, const char *text) {
    AUTO(fd_done) int fd = open(name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool new_namespaces(void) {
    char uid[32], gid[32];
    bool root = geteuid() == 0;
    snprintf(uid, sizeof uid, "0 %u 1", (unsigned)geteuid());
    snprintf(gid, sizeof gid, "0 %u 1", (unsigned)getegid());
    if (unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) < 0) return false;
    if (!root && !(write_to("/proc/self/uid_map", uid) && write_to("/proc/self/setgroups", "deny") &&
                   write_to("/proc/self/gid_map", gid)))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int in_a_full_tmpfs(void) {
    struct shm s = {0};
    struct error e = {0};
    if (!new_namespaces()) return 77;
    if (mount("tmpfs", dir, "tmpfs", 0, "size=64k") < 0) return 77;
    if (shm_create(path, 1 << 20, 0644, &s, &e) != -ENOSPC) return 1;
    if (!strstr(e.text, "no room for 1048576 bytes")) return 2;
    if (entries() != 0) return 3;
    if (shm_create(path, 16384, 0644, &s, &e) != 0) return 4; /* what was taken was given back */
    memset(s.mem, 1, s.size);
    return 0;
}

static void no_room_on_a_full_tmpfs(void **state) {
    pid_t pid = fork();
    if (pid == 0) _exit(in_a_full_tmpfs());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77) print_message("# no mount namespaces here: only the limit was tried\n");
    if (WEXITSTATUS(status) != 77) assert_int_equal(status, 0);
}

static void what_the_dead_left_is_swept(void **state) {
    AUTO(shm_done) struct shm s = {0};
    struct error e = {0};
    char name[200];
    pid_t pid = fork();
    if (pid == 0) {
        struct shm lost;
        _exit(shm_create(path, 100, 0644, &lost, &e) < 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(entries(), 1);
    static const char *const bystanders[] = {"ring.new.1", "ring.new.x", "ring.new.",
                                             "ring",       "ring.old",   "ring2.new.99999999"};
    for (size_t i = 0; i < ARRAY_LEN(bystanders); i++) {
        snprintf(name, sizeof name, "%s/%s", dir, bystanders[i]);
        assert_int_equal(file_write(name, 0600, "x", 1, false, &e), 0);
    }
    assert_int_equal(shm_create(path, 100, 0644, &s, &e), 0);
    assert_int_equal(entries(), 1 + (int)ARRAY_LEN(bystanders)); /* ours, and all that is nobody's litter */
}

/* ---- waiting ---- */

static void waiting_ends_by_itself(void **state) {
    _Atomic uint32_t word = 7;
    int64_t before = clock_boot_ns();
    shm_wait(&word, 6, 10 * NS_PER_S); /* changed already */
    shm_wait(&word, 7, 0);
    shm_wait(&word, 7, -5); /* a deadline that has passed */
    assert_true(clock_boot_ns() - before < 5 * NS_PER_S);
    before = clock_boot_ns();
    shm_wait(&word, 7, 20 * NS_PER_MS);
    assert_true(clock_boot_ns() - before >= 19 * NS_PER_MS);
}

/* True once the process sleeps in futex(2). */
static bool is_waiting(pid_t pid) {
    char name[64], text[32] = "";
    snprintf(name, sizeof name, "/proc/%d/wchan", (int)pid);
    AUTO(fd_done) int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    return n > 0 && strstr(text, "futex");
}

static void a_reader_wakes_through_a_read_only_mapping(void **state) {
    AUTO(shm_done) struct shm w = {0};
    struct error e = {0};
    assert_int_equal(shm_create(path, 4096, 0644, &w, &e), 0);
    assert_int_equal(shm_publish(path, &e), 0);
    _Atomic uint32_t *bell = w.mem;
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct shm r;
        if (shm_open_file(path, false, 4096, &r, &e) < 0) _exit(1);
        const _Atomic uint32_t *word = r.mem;
        while (atomic_load(word) == 0) shm_wait(word, 0, 30 * NS_PER_S);
        int64_t now = clock_boot_ns();
        _exit(write(pipe_ends[1], &now, sizeof now) != sizeof now);
    }
    int64_t give_up = clock_boot_ns() + 2 * NS_PER_S; /* where wchan is hidden, go on without having seen it wait */
    while (!is_waiting(pid) && clock_boot_ns() < give_up) sched_yield();
    int64_t rung = clock_boot_ns(), woke = 0;
    atomic_fetch_add(bell, 1);
    shm_wake(bell);
    assert_int_equal(read(pipe_ends[0], &woke, sizeof woke), sizeof woke);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    print_message("# woke after %lld us\n", (long long)(woke - rung) / 1000);
    assert_true(woke - rung < 5 * NS_PER_S); /* by the bell, not by its timeout */
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(made_beside_and_renamed_in),
        T(replaced_under_a_reader),
        T(refusals),
        T(no_room_by_limit),
        T(no_room_on_a_full_tmpfs),
        T(what_the_dead_left_is_swept),
        T(waiting_ends_by_itself),
        T(a_reader_wakes_through_a_read_only_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
