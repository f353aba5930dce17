/* Who opened a GPU's device file, and when: by the kernel's word where it gives the pid, else by the next of that GPU. */
#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/opens.h"
#include "tests/unit/scratch.h"

static struct opens opens;

static void touch(const char *dir, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) abort();
    close(fd);
}

static void told(void) {
    struct pollfd p = {.fd = opens.files.fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    opens_read(&opens, clock_boot_ns());
}

static bool has_pids(void) { return opens.files.count && opens.file[0].wd < 0; }

static int64_t found(int32_t pid, int minor, int64_t start_ns) {
    return openers_find(&opens.openers, &(struct opener){.pid = pid, .tag = minor, .start_ns = start_ns});
}

/* Both ways in one: what differs is whether a stranger's pid counts. */
static void one_way(const char *dir) {
    touch(dir, "nvidia0");
    touch(dir, "nvidia1");
    opens_begin(&opens, dir);
    assert_true(opens.files.fd >= 0 && opens.files.count == 2);
    int64_t before_ns = clock_boot_ns();
    assert_int_equal(found(getpid(), 1, before_ns), 0);
    touch(dir, "nvidia1");
    told();
    int64_t now_ns = clock_boot_ns();
    if (has_pids()) assert_int_equal(found(getpid() + 1, 1, now_ns), 0);
    if (!has_pids()) assert_int_equal(found(getpid(), 0, now_ns), 0); /* another GPU */
    int64_t at_ns = found(getpid(), 1, now_ns);
    assert_true(at_ns >= before_ns && at_ns <= now_ns);
    if (!has_pids()) assert_int_equal(found(getpid(), 1, now_ns), 0); /* that one was matched */
    touch(dir, "nvidia0");
    told();
    assert_true(found(getpid(), 0, now_ns) <= now_ns); /* never after its start */
    opens_end(&opens);
}

static void as_we_are(void **state) {
    char dir[64];
    scratch_make(dir, "/dev/shm");
    one_way(dir);
    scratch_remove(dir);
}

/* Without root's rights there are no pids, and it works as well. */
static void as_nobody(void **state) {
    char dir[64];
    if (geteuid() != 0) return;
    scratch_make(dir, "/dev/shm");
    if (chmod(dir, 0777) < 0) abort();
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0) _exit(2);
        one_way(dir);
        _exit(opens.files.by_handle >= 0 ? 3 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    scratch_remove(dir);
}

static void nothing_there(void **state) {
    char dir[64];
    scratch_make(dir, "/dev/shm");
    opens_begin(&opens, dir);
    assert_int_equal(opens.files.count, 0);
    touch(dir, "nvidia3"); /* the driver comes later */
    opens_mark(&opens);
    assert_int_equal(opens.files.count, 1);
    opens_end(&opens);
    opens_begin(&opens, "");
    assert_int_equal(opens.files.fd, -1);
    opens_mark(&opens);
    opens_end(&opens);
    scratch_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_we_are), cmocka_unit_test(as_nobody),
                                       cmocka_unit_test(nothing_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
