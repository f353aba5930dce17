/* See home.h. */
#include "sim/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "sim/shm.h"

static const char *const shared_devices[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"};

static void path_in(const struct home *h, char *ret, size_t size, const char *a, const char *b) {
    snprintf(ret, size, "%s/%s%s%s", h->dir, a, b ? "/" : "", b ? b : "");
}

static void remove_in(const struct home *h, const char *a, const char *b) {
    char path[4096];
    path_in(h, path, sizeof path, a, b);
    unlink(path);
}

/* The one before removes its lock file at its end: a lock on a file that is no longer there by that name is none. */
static int take_lock(struct home *h, struct error *e) {
    char path[4096];
    path_in(h, path, sizeof path, "lock", NULL);
    for (;;) {
        AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0) return fail_errno(e, errno, "open %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) return fail(e, -EBUSY, "%s: another simulator runs there", h->dir);
        struct stat mine, named;
        if (fstat(fd, &mine) < 0 || stat(path, &named) < 0 || mine.st_ino != named.st_ino) continue;
        h->lock_fd = fd;
        fd = -1;
        return 0;
    }
}

int home_open(struct home *h, const char *dir, struct error *e) {
    *h = (struct home){.lock_fd = -1};
    if (strlen(dir) >= sizeof h->dir - 64) return fail(e, -ENAMETOOLONG, "%s: the path is too long", dir);
    h->made = access(dir, F_OK) < 0;
    int r = dir_make(dir, 0755, e);
    if (r < 0) return r;
    if (!realpath(dir, h->dir)) return fail_errno(e, errno, "%s", dir);

    struct stat st;
    if (stat(h->dir, &st) < 0) return fail_errno(e, errno, "%s", h->dir);
    if (st.st_uid != geteuid()) return fail(e, -EINVAL, "%s: the directory belongs to another user", h->dir);
    r = take_lock(h, e);
    if (r < 0) return r;
    /* What one that was killed left: no one shall connect to it or map it while this one gets ready. */
    remove_in(h, SHM_SOCKET, NULL);
    remove_in(h, SHM_FILE, NULL);
    return 0;
}

static int make_device(const char *path, unsigned mode, struct error *e) {
    unlink(path);
    if (mknod(path, S_IFCHR | mode, makedev(1, 3)) == 0) {
        chmod(path, mode);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            return 0;
        }
        unlink(path); /* a mount without devices: fall back */
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return fail_errno(e, errno, "create %s", path);
    fchmod(fd, mode);
    close(fd);
    return 0;
}

int home_make_devices(struct home *h, uint32_t gpu_count, struct error *e) {
    char path[4096], name[32];
    path_in(h, path, sizeof path, SHM_DEV, NULL);
    int r = dir_make(path, 0755, e);
    h->gpu_count = gpu_count;
    for (uint32_t i = 0; r >= 0 && i < gpu_count; i++) {
        snprintf(name, sizeof name, "nvidia%u", i);
        path_in(h, path, sizeof path, SHM_DEV, name);
        r = make_device(path, 0666, e);
    }
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(shared_devices); i++) {
        path_in(h, path, sizeof path, SHM_DEV, shared_devices[i]);
        r = make_device(path, 0666, e);
    }
    return r;
}

void home_close(struct home *h) {
    if (h->lock_fd < 0) return;
    char path[4096], name[32];
    for (uint32_t i = 0; i < h->gpu_count; i++) {
        snprintf(name, sizeof name, "nvidia%u", i);
        remove_in(h, SHM_DEV, name);
    }
    for (size_t i = 0; i < ARRAY_LEN(shared_devices); i++) remove_in(h, SHM_DEV, shared_devices[i]);
    path_in(h, path, sizeof path, SHM_DEV, NULL);
    rmdir(path);
    remove_in(h, SHM_KMSG, NULL);
    remove_in(h, SHM_FILE, NULL);
    remove_in(h, "lock", NULL);
    close(h->lock_fd);
    h->lock_fd = -1;
    if (h->made) rmdir(h->dir);
}
