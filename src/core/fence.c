#include "core/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "model/inventory.h"

#define FENCE_MAGIC 0x31636e65666d7067ull /* "gpmfenc1" */

struct fence {
    uint64_t magic;
    char boot[40]; /* the boot it is of: marks of threads that a power cut ended would stay for ever */
    pthread_mutex_t mark[GPU_MAX][FENCE_MARKS];
};

static void boot_id(char *ret, size_t room) {
    AUTO(buf_done) struct buf text = {0};
    memset(ret, 0, room);
    if (file_read("/proc/sys/kernel/random/boot_id", 256, &text, NULL) < 0) return;
    snprintf(ret, room, "%.*s", (int)strcspn(text.s, "\n"), text.s);
}

static void format(struct fence *f, const char *boot) {
    pthread_mutexattr_t attr;
    memset(f, 0, sizeof *f);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    for (unsigned g = 0; g < GPU_MAX; g++)
        for (unsigned m = 0; m < FENCE_MARKS; m++) pthread_mutex_init(&f->mark[g][m], &attr);
    pthread_mutexattr_destroy(&attr);
    snprintf(f->boot, sizeof f->boot, "%s", boot);
    f->magic = FENCE_MAGIC;
}

int fence_open(const char *run_dir, struct fence **ret, struct error *e) {
    char path[256], boot[40];
    struct stat st;
    snprintf(path, sizeof path, "%s/fence", run_dir);
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    /* Two workers may come at once, and only one may lay it out. */
    if (flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0) return fail_errno(e, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return fail(e, -EINVAL, "%s: is not a regular file", path);
    if ((size_t)st.st_size != sizeof(struct fence)) {
        int errnum = ftruncate(fd, 0) < 0 ? errno : posix_fallocate(fd, 0, sizeof(struct fence));
        if (errnum) return fail_errno(e, errnum, "%s", path);
    }
    struct fence *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (f == MAP_FAILED) return fail_errno(e, errno, "%s", path);
    boot_id(boot, sizeof boot);
    if (f->magic != FENCE_MAGIC || strncmp(f->boot, boot, sizeof boot) != 0) format(f, boot);
    flock(fd, LOCK_UN); /* closing would not do it: the mapping keeps the file */
    *ret = f;
    return 0;
}

bool fence_take(struct fence *f, unsigned gpu, enum fence_mark mark) {
    pthread_mutex_t *m = &f->mark[gpu][mark];
    int r = pthread_mutex_trylock(m);
    if (r == EOWNERDEAD) r = pthread_mutex_consistent(m);
    return r == 0;
}

bool fence_is_free(struct fence *f, unsigned gpu, enum fence_mark mark) {
    bool is_free = fence_take(f, gpu, mark);
    if (is_free) pthread_mutex_unlock(&f->mark[gpu][mark]);
    return is_free;
}
