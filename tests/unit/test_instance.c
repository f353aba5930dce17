/* Instances: whose directory it is, where its run directory lies, and that two cannot have it. What only root can try
 * (another owner) is tried as root by a child that becomes nobody; as a user, root's own directories are the others'. */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/instance.h"
#include "tests/unit/scratch.h"

#define NOBODY 65534

static char disk[64], memory[64];
static char made_run[8][200]; /* run directories elsewhere, to be removed */
static size_t made_runs;

static int setup(void **state) {
    scratch_make(disk, "/var/tmp");
    scratch_make(memory, "/dev/shm");
    return 0;
}

static int teardown(void **state) {
    scratch_remove(disk);
    scratch_remove(memory);
    while (made_runs) scratch_remove(made_run[--made_runs]);
    return 0;
}

static bool is_tmpfs(const char *path) {
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static struct instance opened(const char *dir) {
    struct instance i;
    struct error e = {0};
    int r = instance_open(dir, &i, &e);
    if (r < 0) print_error("%s\n", e.text);
    assert_int_equal(r, 0);
    if (strncmp(i.run, i.dir, strlen(i.dir)) != 0) snprintf(made_run[made_runs++ % 8], 200, "%s", i.run);
    return i;
}

static const char *under(const char *dir, const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void on_tmpfs_the_run_directory_is_inside(void **state) {
    struct instance i = opened(under(memory, "new/one"));
    struct stat st;
    assert_true(i.run_is_tmpfs);
    assert_string_equal(i.run, under(memory, "new/one/run"));
    assert_true(lstat(i.run, &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(i.owner, geteuid());
    char path[200];
    instance_path(&i, path, sizeof path, "ring.%d", 3);
    assert_string_equal(path, under(memory, "new/one/run/ring.3"));
}

static void on_disk_it_is_a_link_to_tmpfs(void **state) {
    struct instance i = opened(disk), again, found;
    struct stat st;
    struct error e;
    char target[300] = "";
    if (is_tmpfs(disk)) return; /* a machine whose /var/tmp is a tmpfs has shown it above */
    assert_true(i.run_is_tmpfs && is_tmpfs(i.run));
    assert_true(lstat(under(disk, "run"), &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(readlink(under(disk, "run"), target, sizeof target - 1) > 0);
    assert_string_equal(target, i.run);
    again = opened(disk);
    assert_string_equal(again.run, i.run);
    assert_int_equal(instance_find(disk, &found, &e), 0);
    assert_string_equal(found.run, i.run);
    assert_string_equal(found.dir, i.dir);
    assert_true(found.run_is_tmpfs);

    struct instance other = opened(under(disk, "other")); /* two directories have two run directories */
    assert_string_not_equal(other.run, i.run);
}

static void things_in_the_way(void **state) {
    struct instance i;
    struct error e = {0};
    struct stat st;
    /* on tmpfs, a link to somewhere else */
    assert_int_equal(symlink("/tmp", under(memory, "run")), 0);
    i = opened(memory);
    assert_true(lstat(i.run, &st) == 0 && S_ISDIR(st.st_mode));
    /* on disk, a stale link; a link that dangles */
    assert_int_equal(symlink("/nowhere/at/all", under(disk, "run")), 0);
    i = opened(disk);
    assert_int_equal(unlink(under(disk, "run")), 0);
    /* a file */
    assert_int_equal(file_write(under(disk, "run"), 0644, "x", 1, false, &e), 0);
    assert_int_equal(instance_open(disk, &i, &e) < 0, 1);
    assert_non_null(strstr(e.text, under(disk, "run")));
    assert_int_equal(unlink(under(disk, "run")), 0);
    /* a directory from a time without tmpfs: used when something is in it, else replaced */
    assert_int_equal(mkdir(under(disk, "run"), 0755), 0);
    assert_int_equal(file_write(under(disk, "run/ring"), 0644, "x", 1, false, &e), 0);
    i = opened(disk);
    assert_string_equal(i.run, under(disk, "run"));
    assert_int_equal(i.run_is_tmpfs, is_tmpfs(disk));
    assert_int_equal(unlink(under(disk, "run/ring")), 0);
    i = opened(disk);
    assert_true(i.run_is_tmpfs);
}

static void others_may_not_write_to_the_run_directory(void **state) {
    struct instance i = opened(memory);
    struct error e = {0};
    assert_int_equal(chmod(i.run, 0777), 0);
    assert_int_equal(instance_open(memory, &i, &e), -EPERM);
    assert_non_null(strstr(e.text, "others may write there"));
}

static void long_paths(void **state) {
    char deep[400];
    struct instance i;
    struct error e = {0};
    snprintf(deep, sizeof deep, "%s/%0*d", memory, 100, 1);
    i = opened(deep); /* a socket's address could not hold DIR/run/... */
    assert_true(strlen(i.run) <= 88);
    assert_true(i.run_is_tmpfs);
    snprintf(deep, sizeof deep, "%s/%0*d", memory, 197 - (int)strlen(memory), 1);
    i = opened(deep);
    assert_true(strlen(i.run) <= 88);
    snprintf(deep, sizeof deep, "%s/%0*d", memory, 250 - (int)strlen(memory), 1);
    assert_int_equal(instance_open(deep, &i, &e), -ENAMETOOLONG);
    assert_non_null(strstr(e.text, "longer than 199 bytes"));
}

static void bad_directories(void **state) {
    struct instance i = {.owner = 4711};
    struct error e = {0};
    assert_int_equal(file_write(under(memory, "f"), 0644, "x", 1, false, &e), 0);
    assert_int_equal(instance_open(under(memory, "f"), &i, &e), -ENOTDIR);
    assert_int_equal(instance_open(under(memory, "f/g"), &i, &e), -ENOTDIR);
    assert_int_equal(instance_find(under(memory, "f"), &i, &e), -ENOTDIR);
    assert_int_equal(instance_find(under(memory, "none"), &i, &e), -ENOENT);
    assert_int_equal(instance_find(memory, &i, &e), -ENOENT);
    assert_non_null(strstr(e.text, "no gpumgr has run there"));
    assert_int_equal(i.owner, 4711); /* written only on success */
}

/* Runs `body` in a child, as nobody when this is root, and returns its exit code. */
static int in_a_child(int (*body)(void), bool drop) {
    pid_t pid = fork();
    if (pid == 0) {
        if (drop && geteuid() == 0 && (setegid(NOBODY) < 0 || seteuid(NOBODY) < 0)) _exit(99);
        _exit(body());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static char foreign[200];

static int open_foreign(void) {
    struct instance i;
    struct error e = {0};
    int r = instance_open(foreign, &i, &e);
    if (r != -EPERM) return 1;
    return strstr(e.text, "belongs to uid") && strstr(e.text, foreign) ? 0 : 2;
}

static int find_foreign(void) {
    struct instance i;
    struct error e = {0};
    if (instance_find(foreign, &i, &e) < 0) return 1;
    return i.owner == 0 || i.owner == getuid() ? 0 : 2;
}

static void a_directory_of_another_owner(void **state) {
    snprintf(foreign, sizeof foreign, "%s", geteuid() ? "/usr" : memory);
    assert_int_equal(chmod(memory, 0755), 0);
    assert_int_equal(in_a_child(open_foreign, true), 0);
    assert_int_equal(access(under(memory, "run"), F_OK), -1); /* nothing was made */
    if (geteuid() != 0) return;
    opened(memory);
    assert_int_equal(in_a_child(find_foreign, true), 0); /* but anyone may look */
}

/* In a directory where anyone may make things, someone was there first. */
static int plant_run(void) { return mkdir(under(foreign, "run"), 0755) < 0; }
static int plant_lock(void) { return open(under(foreign, "lock"), O_CREAT | O_RDWR, 0666) < 0; }

static void things_planted_by_others(void **state) {
    struct instance i;
    struct error e = {0};
    int fd = -1;
    if (geteuid() != 0) return; /* nobody else to be */
    snprintf(foreign, sizeof foreign, "%s", memory);
    assert_int_equal(chmod(memory, 01777), 0);
    assert_int_equal(in_a_child(plant_run, true), 0);
    assert_int_equal(instance_open(memory, &i, &e), -EPERM);
    assert_non_null(strstr(e.text, "is not a directory of ours"));
    assert_int_equal(rmdir(under(memory, "run")), 0);
    i = opened(memory);
    assert_int_equal(in_a_child(plant_lock, true), 0);
    /* refused by us, or by the kernel where fs.protected_regular is set */
    assert_true(instance_lock(&i, &fd, &e) < 0);
    assert_int_equal(fd, -1);
}

/* ---- the lock ---- */

static struct instance locked;

static int second_lock(void) {
    struct error e = {0};
    char want[32];
    int fd = -1;
    snprintf(want, sizeof want, "(pid %d)", (int)getppid());
    if (instance_lock(&locked, &fd, &e) != -EBUSY) return 1;
    if (!strstr(e.text, want)) return 2;
    return fd == -1 ? 0 : 3;
}

static int holder_is_parent(void) { return instance_holder(&locked) == getppid() ? 0 : 1; }
static int holder_is_nobody(void) { return instance_holder(&locked) == 0 ? 0 : 1; }

static int lock_forever(void) {
    int fd = -1;
    struct error e;
    if (instance_lock(&locked, &fd, &e) < 0) return 1;
    kill(getpid(), SIGKILL);
    return 2;
}

/* Whoever may open the file may lock it; so nobody else may open it. */
static int stranger_cannot_hold_it(void) {
    char path[300];
    snprintf(path, sizeof path, "%s/lock", locked.dir);
    return open(path, O_RDONLY) >= 0;
}

static void one_at_a_time(void **state) {
    struct error e = {0};
    int fd = -1;
    assert_int_equal(chmod(memory, 0755), 0);
    locked = opened(memory);
    assert_int_equal(instance_holder(&locked), 0);
    assert_int_equal(instance_lock(&locked, &fd, &e), 0);
    assert_true(fd >= 0);
    assert_int_equal(instance_holder(&locked), getpid());
    assert_int_equal(in_a_child(second_lock, false), 0);
    assert_int_equal(in_a_child(holder_is_parent, false), 0);
    if (geteuid() == 0) {
        assert_int_equal(in_a_child(stranger_cannot_hold_it, true), 0);
        assert_int_equal(in_a_child(holder_is_parent, true), 0);
    }
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    assert_int_equal(in_a_child(holder_is_nobody, false), 0);
    fd = -1;
    assert_int_equal(instance_lock(&locked, &fd, &e), 0);
    close(fd);
}

static void a_dead_holder_is_none(void **state) {
    struct error e = {0};
    int fd = -1, status;
    locked = opened(memory);
    pid_t pid = fork();
    if (pid == 0) _exit(lock_forever());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(instance_holder(&locked), 0);
    assert_int_equal(instance_lock(&locked, &fd, &e), 0);
    close(fd);
}

/* Many ask while one starts again and again: it must always get its lock. */
static int ask_all_the_time(void) {
    for (;;) instance_holder(&locked);
    return 0;
}

static void asking_does_not_disturb_a_start(void **state) {
    locked = opened(memory);
    pid_t askers[2];
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        askers[i] = fork();
        if (askers[i] == 0) _exit(ask_all_the_time());
    }
    int failed = 0;
    for (int i = 0; i < 2000; i++) {
        struct error e;
        int fd = -1;
        failed += instance_lock(&locked, &fd, &e) < 0;
        if (fd >= 0) close(fd);
    }
    for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
        kill(askers[i], SIGKILL);
        waitpid(askers[i], NULL, 0);
    }
    assert_int_equal(failed, 0);
}

static void default_places(void **state) {
    char path[200];
    struct error e = {0};
    assert_int_equal(instance_default_dir(path, sizeof path, &e), 0);
    if (geteuid() == 0) assert_string_equal(path, "/var/lib/gpumgr");
    assert_int_equal(instance_default_dir(path, 3, &e), -ENAMETOOLONG);
}

static int default_of_a_user(void) {
    static const struct {
        const char *home, *state, *want;
    } rows[] = {
        {"/h", NULL, "/h/.local/state/gpumgr"},
        {"/h", "/s", "/s/gpumgr"             },
        {"/h", "s",  "/h/.local/state/gpumgr"},
        {"h",  "",   NULL                    },
        {NULL, NULL, NULL                    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[200] = "";
        struct error e = {0};
        rows[i].home ? setenv("HOME", rows[i].home, 1) : unsetenv("HOME");
        rows[i].state ? setenv("XDG_STATE_HOME", rows[i].state, 1) : unsetenv("XDG_STATE_HOME");
        int r = instance_default_dir(path, sizeof path, &e);
        if (rows[i].want ? r != 0 || strcmp(path, rows[i].want) != 0 : r != -EINVAL || !strstr(e.text, "--dir"))
            return (int)i + 1;
    }
    return 0;
}

static void default_places_of_a_user(void **state) { assert_int_equal(in_a_child(default_of_a_user, true), 0); }

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(on_tmpfs_the_run_directory_is_inside),
        T(on_disk_it_is_a_link_to_tmpfs),
        T(things_in_the_way),
        T(others_may_not_write_to_the_run_directory),
        T(long_paths),
        T(bad_directories),
        T(a_directory_of_another_owner),
        T(things_planted_by_others),
        T(one_at_a_time),
        T(a_dead_holder_is_none),
        T(asking_does_not_disturb_a_start),
        T(default_places),
        T(default_places_of_a_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
