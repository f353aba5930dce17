#include "base/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"

static const char root_dir[] = "/var/lib/gpumgr";

static int default_dir(uid_t uid, char *ret, size_t room, struct error *e) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;
    if (uid == 0)
        n = snprintf(ret, room, "%s", root_dir);
    else if (state && state[0] == '/')
        n = snprintf(ret, room, "%s/gpumgr", state);
    else if (home && home[0] == '/')
        n = snprintf(ret, room, "%s/.local/state/gpumgr", home);
    else
        return fail(e, -EINVAL, "dir: neither HOME nor XDG_STATE_HOME is set; give --dir DIR");
    if (n < 0 || (size_t)n >= room) return fail(e, -ENAMETOOLONG, "dir: the default path is too long; give --dir DIR");
    return 0;
}

static bool is_tmpfs(const char *path) {
    struct statfs fs;
    return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Stable for a directory, different for two: names the run directory in a place that all instances share. */
static unsigned path_hash(const char *s) {
    unsigned h = 2166136261u;
    while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
    return h;
}

static int run_dir_elsewhere(struct instance *i, const char *base, struct error *e) {
    struct stat st;
    if (strcmp(i->dir, root_dir) == 0 && strcmp(base, "/run") == 0)
        snprintf(i->run, sizeof i->run, "/run/gpumgr");
    else
        snprintf(i->run, sizeof i->run, "%.100s/gpumgr-%u-%08x", base, (unsigned)i->owner, path_hash(i->dir));
    if (mkdir(i->run, 0755) < 0 && errno != EEXIST) return fail_errno(e, errno, "%s", i->run);
    if (lstat(i->run, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != i->owner)
        return fail(e, -EPERM, "%s: is not a directory of ours", i->run);
    return 0;
}

static int place_run_dir(struct instance *i, struct error *e) {
    static const char *const bases[] = {"/run", "/dev/shm"};
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s/run", i->dir);
    if (is_tmpfs(i->dir)) {
        snprintf(i->run, sizeof i->run, "%.190s/run", i->dir);
        i->run_is_tmpfs = true;
        return dir_make(i->run, 0755, e);
    }
    for (size_t b = 0; b < ARRAY_LEN(bases); b++) {
        if (!is_tmpfs(bases[b]) || access(bases[b], W_OK) < 0) continue;
        if (run_dir_elsewhere(i, bases[b], e) < 0) continue;
        struct stat st;
        if (lstat(link, &st) == 0 && !S_ISLNK(st.st_mode))
            return fail(e, -EEXIST, "%s: is in the way; it should be a link", link);
        unlink(link);
        if (symlink(i->run, link) < 0) return fail_errno(e, errno, "%s", link);
        i->run_is_tmpfs = true;
        return 0;
    }
    snprintf(i->run, sizeof i->run, "%.190s/run", i->dir);
    i->run_is_tmpfs = false;
    return dir_make(i->run, 0755, e);
}

int instance_open(const char *dir, struct instance *ret, struct error *e) {
    struct instance i = {.owner = geteuid()};
    char want[PATH_MAX], real[PATH_MAX];
    if (dir && *dir) {
        if (strlen(dir) >= sizeof i.dir)
            return fail(e, -ENAMETOOLONG, "dir: %s: longer than %zu bytes", dir, sizeof i.dir - 1);
        snprintf(want, sizeof want, "%s", dir);
    } else {
        int r = default_dir(i.owner, want, sizeof want, e);
        if (r < 0) return r;
    }
    struct stat st;
    int r = dir_make(want, 0755, e);
    if (r < 0) return fail_in(e, r, "dir");
    if (!realpath(want, real)) return fail_errno(e, errno, "dir: %s", want);
    if (strlen(real) >= sizeof i.dir)
        return fail(e, -ENAMETOOLONG, "dir: %s: longer than %zu bytes", real, sizeof i.dir - 1);
    snprintf(i.dir, sizeof i.dir, "%.*s", (int)sizeof i.dir - 1, real);
    if (stat(i.dir, &st) < 0) return fail_errno(e, errno, "dir: %s", i.dir);
    if (st.st_uid != i.owner)
        return fail(e, -EPERM, "dir: %s belongs to uid %u, and this is uid %u; give --dir DIR of your own", i.dir,
                    (unsigned)st.st_uid, (unsigned)i.owner);
    r = place_run_dir(&i, e);
    if (r < 0) return r;
    *ret = i;
    return 0;
}

static int find_at(const char *dir, struct instance *ret, struct error *e) {
    struct instance i = {0};
    char real[PATH_MAX], run[PATH_MAX];
    struct stat st, run_st;
    if (!realpath(dir, real)) return fail_errno(e, errno, "dir: %s", dir);
    if (stat(real, &st) < 0) return fail_errno(e, errno, "dir: %s", dir);
    if (!S_ISDIR(st.st_mode)) return fail(e, -ENOTDIR, "dir: %s: is not a directory", dir);
    snprintf(run, sizeof run, "%.4000s/run", real);
    if (stat(run, &run_st) < 0) return fail(e, -ENOENT, "dir: %s: no gpumgr has run there", dir);
    if (run_st.st_uid != st.st_uid && run_st.st_uid != 0)
        return fail(e, -EPERM, "dir: %s: its run directory belongs to someone else", dir);
    if (!realpath(run, real) || strlen(real) >= sizeof i.run)
        return fail(e, -ENAMETOOLONG, "dir: %s: path too long", dir);
    snprintf(i.run, sizeof i.run, "%.*s", (int)sizeof i.run - 1, real);
    if (!realpath(dir, real) || strlen(real) >= sizeof i.dir)
        return fail(e, -ENAMETOOLONG, "dir: %s: path too long", dir);
    snprintf(i.dir, sizeof i.dir, "%.*s", (int)sizeof i.dir - 1, real);
    i.owner = st.st_uid;
    i.run_is_tmpfs = is_tmpfs(i.run);
    *ret = i;
    return 0;
}

int instance_find(const char *dir, struct instance *ret, struct error *e) {
    char own[PATH_MAX];
    if (dir && *dir) return find_at(dir, ret, e);
    struct error ignored;
    struct instance mine;
    bool have = default_dir(geteuid(), own, sizeof own, &ignored) == 0 && find_at(own, &mine, &ignored) == 0;
    if (have && instance_holder(&mine)) {
        *ret = mine;
        return 0;
    }
    if (find_at(root_dir, ret, &ignored) == 0) return 0;
    if (!have) return fail(e, -ENOENT, "no gpumgr is running here");
    *ret = mine;
    return 0;
}

int instance_lock(const struct instance *i, int *ret_fd, struct error *e) {
    char path[PATH_MAX], text[32];
    snprintf(path, sizeof path, "%s/lock", i->dir);
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK) return fail_errno(e, errno, "%s", path);
        return fail(e, -EBUSY, "dir: %s: gpumgr already runs there (pid %d)", i->dir, (int)instance_holder(i));
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n) return fail_errno(e, errno, "%s", path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

pid_t instance_holder(const struct instance *i) {
    char path[PATH_MAX], text[32] = "";
    snprintf(path, sizeof path, "%s/lock", i->dir);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return 0;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) return 0; /* nobody holds it; ours goes with fd */
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? (pid_t)atoi(text) : 0;
}

void instance_path(const struct instance *i, char *ret, size_t room, const char *fmt, ...) {
    int n = snprintf(ret, room, "%s/", i->run);
    va_list ap;
    va_start(ap, fmt);
    if (n > 0 && (size_t)n < room) vsnprintf(ret + n, room - (size_t)n, fmt, ap);
    va_end(ap);
}
