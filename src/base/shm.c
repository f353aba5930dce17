#include "base/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

static int beside(const char *path, char *ret, size_t room, struct error *e) {
    if (snprintf(ret, room, "%s.new.%d", path, (int)getpid()) >= (int)room)
        return fail(e, -ENAMETOOLONG, "%s: the path is too long", path);
    return 0;
}

static int map(int fd, const char *path, bool writable, size_t min_size, struct shm *ret, struct error *e) {
    struct stat st;
    if (fstat(fd, &st) < 0) return fail_errno(e, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return fail(e, -EINVAL, "%s: is not a regular file", path);
    if (st.st_size <= 0 || (size_t)st.st_size < min_size) return fail(e, -EINVAL, "%s: too short", path);
    void *mem = mmap(NULL, (size_t)st.st_size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED) return fail_errno(e, errno, "map %s", path);
    *ret = (struct shm){.mem = mem, .size = (size_t)st.st_size, .dev = st.st_dev, .ino = st.st_ino};
    return 0;
}

/* What a maker left that was killed before it published is memory, on tmpfs. */
static void sweep(const char *path) {
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (!slash || slash == dir) return;
    *slash = 0;
    dir_sweep(dir, slash + 1);
}

static int fill(int fd, const char *path, size_t size, mode_t mode, struct error *e) {
    if (fchmod(fd, mode) < 0) return fail_errno(e, errno, "%s", path);
    int errnum;
    do errnum = posix_fallocate(fd, 0, (off_t)size);
    while (errnum == EINTR);
    if (errnum) return fail_errno(e, errnum, "%s: no room for %zu bytes", path, size);
    return 0;
}

int shm_create(const char *path, size_t size, mode_t mode, struct shm *ret, struct error *e) {
    char name[PATH_MAX];
    int r = beside(path, name, sizeof name, e);
    if (r < 0) return r;
    unlink(name);
    sweep(path);
    AUTO(fd_done) int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return fail_errno(e, errno, "%s", name);
    r = fill(fd, path, size, mode, e);
    if (r == 0) r = map(fd, name, true, size, ret, e);
    if (r < 0) unlink(name);
    return r;
}

int shm_publish(const char *path, struct error *e) {
    char name[PATH_MAX];
    int r = beside(path, name, sizeof name, e);
    if (r < 0) return r;
    if (rename(name, path) < 0) return fail_errno(e, errno, "%s", path);
    return 0;
}

int shm_open_file(const char *path, bool writable, size_t min_size, struct shm *ret, struct error *e) {
    AUTO(fd_done) int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    return map(fd, path, writable, min_size, ret, e);
}

void shm_done(struct shm *s) {
    if (s->mem) munmap(s->mem, s->size);
    *s = (struct shm){0};
}

bool shm_is_replaced(const struct shm *s, const char *path) {
    struct stat st;
    return stat(path, &st) < 0 || st.st_dev != s->dev || st.st_ino != s->ino;
}

void shm_wait(const _Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns) {
    struct timespec t = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void shm_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }
