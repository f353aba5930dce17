#include "base/lock.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char path[100];

static void locks_and_says_who(void **state) {
    struct error e;
    char who[100] = "x", want[100];
    int first = lock_take(path, "/a", who, sizeof who, &e);
    assert_true(first >= 0);
    assert_string_equal(who, "");
    snprintf(want, sizeof want, "pid %d, /a", (int)getpid());
    assert_int_equal(lock_take(path, "/b", who, sizeof who, &e), -EBUSY);
    assert_string_equal(who, want);
    assert_string_equal(lock_owner(who), "/a");
    assert_false(lock_is_free(path));
    close(first);
    assert_true(lock_is_free(path) && lock_is_free(path));
    int second = lock_take(path, "/b", who, sizeof who, &e);
    assert_true(second >= 0);
    assert_string_equal(who, want); /* who had it last */
    close(second);
    second = lock_take(path, "/b", who, sizeof who, &e);
    assert_true(second >= 0);
    assert_string_equal(who, "");
    assert_null(lock_owner(who));
    close(second);
    assert_true(lock_is_free("/nonexistent/lock"));
}

/* The directories of two owners may begin alike. */
static void an_owner_is_not_kept_off_by_its_own_past(void **state) {
    struct error e;
    char who[100];
    int first = lock_take(path, "/a", who, sizeof who, &e), again = lock_take(path, "/a", who, sizeof who, &e);
    assert_true(first >= 0 && again >= 0);
    assert_int_equal(lock_take(path, "/a/b", who, sizeof who, &e), -EBUSY);
    close(again);
    assert_int_equal(lock_take(path, "/b", who, sizeof who, &e), -EBUSY);
    close(first);
}

static void a_lock_that_cannot_be_made_is_a_sentence(void **state) {
    struct error e;
    char who[100];
    assert_int_equal(lock_take("/nonexistent/lock", "/a", who, sizeof who, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/lock"));
}

/* Root is not kept off by what others put in its way, and does not follow it; others are. */
static void what_lies_in_the_way(void **state) {
    struct error e;
    char who[100], target[120];
    snprintf(target, sizeof target, "%s.target", path);
    FILE *f = fopen(target, "w");
    assert_non_null(f);
    fputs("whole", f);
    fclose(f);
    assert_int_equal(symlink(target, path), 0);
    int fd = lock_take(path, "/a", who, sizeof who, &e);
    assert_true(geteuid() == 0 ? fd >= 0 : fd == -ELOOP);
    struct stat st;
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_size, 5);
    if (fd >= 0) close(fd);
    unlink(path);
    if (geteuid() == 0) {
        assert_int_equal(link(target, path), 0);
        fd = lock_take(path, "/a", who, sizeof who, &e);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(chown(path, 65534, 65534), 0);
        fd = lock_take(path, "/a", who, sizeof who, &e);
        assert_true(fd >= 0 && stat(path, &st) == 0 && st.st_uid == 0);
        close(fd);
    }
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_size, 5);
    unlink(target);
}

/* A directory cannot be unlinked, and one that is not empty not removed either. */
static void a_directory_in_the_way(void **state) {
    struct error e;
    char who[100], dir[] = "/tmp/gpumgr-lock-XXXXXX", own[64], name[400];
    unsigned aside = 0;
    struct stat st;
    if (geteuid() != 0) return;
    assert_non_null(mkdtemp(dir));
    snprintf(own, sizeof own, "%s/lock", dir);
    snprintf(name, sizeof name, "%s/x", own);
    assert_true(mkdir(own, 0755) == 0 && mkdir(name, 0755) == 0);
    assert_int_equal(lock_take(own, "/a", who, sizeof who, &e), -EISDIR); /* root's own is a mistake, not an attack */
    assert_int_equal(chown(own, 65534, 65534), 0);
    int fd = lock_take(own, "/a", who, sizeof who, &e);
    assert_true(fd >= 0 && stat(own, &st) == 0 && S_ISREG(st.st_mode));
    close(fd);
    unlink(own);
    DIR *all = opendir(dir);
    assert_non_null(all);
    for (const struct dirent *d; (d = readdir(all));) {
        if (strncmp(d->d_name, "lock.", 5) != 0) continue;
        aside++;
        snprintf(name, sizeof name, "%s/%s/x", dir, d->d_name);
        assert_int_equal(rmdir(name), 0);
        *strrchr(name, '/') = 0;
        assert_int_equal(rmdir(name), 0);
    }
    closedir(all);
    assert_int_equal(aside, 1);
    assert_int_equal(rmdir(dir), 0);
}

static int fresh(void **state) {
    unlink(path);
    return 0;
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/gpumgr-lock-%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locks_and_says_who, fresh, fresh),
        cmocka_unit_test_setup_teardown(an_owner_is_not_kept_off_by_its_own_past, fresh, fresh),
        cmocka_unit_test_setup_teardown(what_lies_in_the_way, fresh, fresh),
        cmocka_unit_test(a_directory_in_the_way),
        cmocka_unit_test_setup_teardown(a_lock_that_cannot_be_made_is_a_sentence, fresh, fresh),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
