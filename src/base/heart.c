#include "base/heart.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int heart_join(int fd, struct heart **ret, struct error *e) {
    void *mem = mmap(NULL, sizeof **ret, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED) return fail_errno(e, errno, "heartbeat");
    *ret = mem;
    return 0;
}

int heart_make(struct heart **ret, int *ret_fd, struct error *e) {
    int fd = memfd_create("heart", MFD_CLOEXEC);
    if (fd < 0) return fail_errno(e, errno, "heartbeat");
    int r = ftruncate(fd, sizeof **ret) < 0 ? fail_errno(e, errno, "heartbeat") : heart_join(fd, ret, e);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

void heart_close(struct heart **h, int *fd) {
    if (*h) munmap(*h, sizeof **h);
    if (*fd >= 0) close(*fd);
    *h = NULL;
    *fd = -1;
}
