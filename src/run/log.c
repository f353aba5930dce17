#include "run/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define ALIGN 65536u

int run_log_open(struct run_log *l, const char *path, uint64_t max, uid_t uid, gid_t gid, struct error *e) {
    struct stat st;
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    if (fstat(fd, &st) < 0) return fail_errno(e, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return fail(e, -EPERM, "%s: is not a file of ours", path);
    if (st.st_uid != uid && fchown(fd, uid, gid) < 0) return fail_errno(e, errno, "%s", path);
    *l = (struct run_log){.fd = fd, .max = max, .head = max / 4 / ALIGN * ALIGN, .end = (uint64_t)st.st_size};
    l->step = max / 8 / ALIGN * ALIGN;
    if (!l->step) l->step = ALIGN;
    l->cut = l->head;
    fd = -1;
    return 0;
}

/* Makes room for n bytes more at the end. */
static void give_back(struct run_log *l, size_t n) {
    while (!l->cannot_cut && l->end + n > l->head && l->end + n - l->cut > l->max - l->head) {
        if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)l->cut, (off_t)l->step) < 0 &&
            errno != EINTR) {
            l->cannot_cut = true;
            return;
        }
        l->cut += l->step;
    }
}

void run_log_add(struct run_log *l, const char *bytes, size_t n) {
    give_back(l, n);
    while (n) {
        if (l->cannot_cut && l->end >= l->max) {
            l->end += n;
            return;
        }
        ssize_t w = pwrite(l->fd, bytes, n, (off_t)l->end);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) { /* no space: the job goes on, and says more later */
            l->end += n;
            return;
        }
        bytes += w;
        n -= (size_t)w;
        l->end += (uint64_t)w;
    }
}

ssize_t run_log_read(int fd, uint64_t *offset, char *to, size_t room) {
    off_t at = lseek(fd, (off_t)*offset, SEEK_DATA);
    if (at < 0 && errno == ENXIO) return 0;
    if (at < 0) at = (off_t)*offset; /* a file system without holes */
    off_t hole = lseek(fd, at, SEEK_HOLE);
    if (hole > at && (uint64_t)(hole - at) < room) room = (size_t)(hole - at);
    ssize_t n = pread(fd, to, room, at);
    if (n < 0) return -errno;
    *offset = (uint64_t)at;
    return n;
}
