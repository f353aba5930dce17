#include "base/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int instance_default_dir(char *ret, size_t room, struct error *e) { return default_dir(geteuid(), ret, room, e); }

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

/* Made if it is not there. Others may have been before us where anyone may make directories. */
static int own_dir(const char *path, uid_t owner, struct error *e) {
    struct stat st;
    if (mkdir(path, 0755) == 0)
        (void)!chmod(path, 0755); /* whatever the umask: the ring is for everybody */
    else if (errno != EEXIST)
        return fail_errno(e, errno, "%s", path);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != owner)
        return fail(e, -EPERM, "%s: is not a directory of ours", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH)) return fail(e, -EPERM, "%s: others may write there; chmod go-w it", path);
    return 0;
}

static int run_dir_elsewhere(struct instance *i, const char *base, struct error *e) {
    if (strcmp(i->dir, root_dir) == 0 && strcmp(base, "/run") == 0)
        snprintf(i->run, sizeof i->run, "/run/gpumgr");
    else
        snprintf(i->run, sizeof i->run, "%.100s/gpumgr-%u-%08x", base, (unsigned)i->owner, path_hash(i->dir));
    return own_dir(i->run, i->owner, e);
}

static int run_dir_inside(struct instance *i, struct error *e) {
    struct stat st;
    if ((size_t)snprintf(i->run, sizeof i->run, "%s/run", i->dir) >= sizeof i->run)
        return fail(e, -ENAMETOOLONG, "dir: longer than %zu bytes: %s", sizeof i->run - sizeof "/run", i->dir);
    i->run_is_tmpfs = is_tmpfs(i->dir);
    /* a link of ours, from a time when DIR lay on a disk or its run directory elsewhere */
    if (lstat(i->run, &st) == 0 && S_ISLNK(st.st_mode)) unlink(i->run);
    return own_dir(i->run, i->owner, e);
}

/* Clients come through DIR/run at any moment: it is replaced, never missing. */
static int link_run_dir(const struct instance *i, const char *link, struct error *e) {
    char now[PATH_MAX], fresh[PATH_MAX];
    ssize_t n = readlink(link, now, sizeof now - 1);
    if (n > 0 && (size_t)n == strlen(i->run) && memcmp(now, i->run, (size_t)n) == 0) return 0;
    snprintf(fresh, sizeof fresh, "%s/run.new", i->dir);
    unlink(fresh);
    if (symlink(i->run, fresh) < 0 || rename(fresh, link) < 0) return fail_errno(e, errno, "%s", link);
    return 0;
}

/* With this length before it, "/sampler.16.sock" still fits into the address of a socket. */
#define RUN_LEN_MAX 88

static int place_run_dir(struct instance *i, struct error *e) {
    static const char *const bases[] = {"/run", "/dev/shm"};
    char link[PATH_MAX];
    struct stat st;
    snprintf(link, sizeof link, "%s/run", i->dir);
    if (is_tmpfs(i->dir) && strlen(link) <= RUN_LEN_MAX) return run_dir_inside(i, e);
    /* A directory that is there already (made when no tmpfs was, or a mount) is used unless it is empty. */
    if (lstat(link, &st) == 0 && S_ISDIR(st.st_mode) && rmdir(link) < 0) {
        int r = run_dir_inside(i, e);
        i->run_is_tmpfs = r == 0 && is_tmpfs(link);
        return r;
    }
    if (lstat(link, &st) == 0 && !S_ISLNK(st.st_mode))
        return fail(e, -EEXIST, "%s: is in the way; it should be a link", link);
    for (size_t b = 0; b < ARRAY_LEN(bases); b++) {
        if (!is_tmpfs(bases[b]) || access(bases[b], W_OK) < 0) continue;
        if (run_dir_elsewhere(i, bases[b], e) < 0) continue;
        i->run_is_tmpfs = true;
        return link_run_dir(i, link, e);
    }
    return run_dir_inside(i, e);
}

int instance_open(const char *dir, struct instance *ret, struct error *e) {
    struct instance i = {.owner = geteuid()};
    char want[PATH_MAX], real[PATH_MAX];
    if (dir && *dir) {
        if (strlen(dir) >= sizeof i.dir)
            return fail(e, -ENAMETOOLONG, "dir: longer than %zu bytes: %s", sizeof i.dir - 1, dir);
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
        return fail(e, -ENAMETOOLONG, "dir: longer than %zu bytes: %s", sizeof i.dir - 1, real);
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
    struct instance roots;
    bool have_roots = find_at(root_dir, &roots, &ignored) == 0;
    if (!have && !have_roots) return fail(e, -ENOENT, "no gpumgr is running here");
    *ret = have_roots && (!have || instance_holder(&roots)) ? roots : mine;
    return 0;
}

/* Two files: DIR/lock carries the lock and is the owner's alone, since whoever can open a file can lock it and keep us
 * from starting; DIR/pid is for everyone to read. Asking who holds it takes no lock either, not even for a moment. */
int instance_lock(const struct instance *i, int *ret_fd, struct error *e) {
    char path[PATH_MAX], text[32];
    struct stat st;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%s/lock", i->dir);
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != i->owner || fchmod(fd, 0600) < 0)
        return fail(e, -EPERM, "%s: is not a file of ours", path);
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno != EAGAIN && errno != EACCES) return fail_errno(e, errno, "%s", path);
        return fail(e, -EBUSY, "dir: %s: gpumgr already runs there (pid %d)", i->dir, (int)instance_holder(i));
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    snprintf(path, sizeof path, "%s/pid", i->dir);
    int r = file_write(path, 0644, text, (size_t)n, false, e);
    if (r < 0) return r;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int instance_keep(const struct instance *i, int *fd, struct error *e) {
    char path[PATH_MAX];
    struct stat held, there;
    int fresh = -1;
    snprintf(path, sizeof path, "%s/lock", i->dir);
    bool is_same = fstat(*fd, &held) == 0 && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
                   held.st_ino == there.st_ino;
    if (is_same) return 0;
    int r = instance_lock(i, &fresh, e);
    if (r < 0) return r;
    fd_done(fd);
    *fd = fresh;
    return 0;
}

static pid_t noted_pid(const struct instance *i) {
    char path[PATH_MAX], *end;
    AUTO(buf_done) struct buf text = {0};
    snprintf(path, sizeof path, "%s/pid", i->dir);
    if (file_read(path, 31, &text, NULL) < 0) return 0;
    long pid = strtol(text.s, &end, 10);
    return *end == '\n' && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

pid_t instance_holder(const struct instance *i) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", i->dir);
    pid_t pid = noted_pid(i);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != EACCES) return 0;
    if (fd < 0) return pid && (kill(pid, 0) == 0 || errno == EPERM) ? pid : 0; /* not ours to ask: is it alive? */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? pid : 0;
}

void instance_path(const struct instance *i, char *ret, size_t room, const char *fmt, ...) {
    int n = snprintf(ret, room, "%s/", i->run);
    va_list ap;
    va_start(ap, fmt);
    if (n > 0 && (size_t)n < room) vsnprintf(ret + n, room - (size_t)n, fmt, ap);
    va_end(ap);
}
