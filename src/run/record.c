#include "run/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"

#define MAGIC 0x6a6f6231u

/* FNV-1a: what a torn or foreign sector does not have by chance. */
static uint64_t sum_of(const struct record *r) {
    const uint8_t *p = (const uint8_t *)r;
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < offsetof(struct record, sum); i++) h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

void record_seal(struct record *r) {
    r->magic = MAGIC;
    r->sum = sum_of(r);
}

bool record_is_sound(const struct record *r) {
    return r->magic == MAGIC && r->kind > RECORD_NONE && r->kind < RECORD_KINDS && r->sum == sum_of(r) &&
           !r->text[RECORD_TEXT - 1] && !r->boot_id[sizeof r->boot_id - 1];
}

static bool is_zero(const struct record *r) {
    const uint8_t *p = (const uint8_t *)r;
    for (size_t i = 0; i < sizeof *r; i++)
        if (p[i]) return false;
    return true;
}

void record_scan(const void *bytes, size_t n, struct record_state *ret) {
    *ret = (struct record_state){0};
    for (unsigned i = 0; i < RECORD_SLOTS && n >= (i + 1) * sizeof(struct record); i++) {
        struct record r;
        memcpy(&r, (const uint8_t *)bytes + i * sizeof r, sizeof r);
        if (is_zero(&r)) continue;
        ret->used = i + 1;
        if (!record_is_sound(&r)) continue;
        bool is_last_one = r.kind == RECORD_INTENT || r.kind == RECORD_FIGURES;
        if (ret->has[r.kind] && !is_last_one) continue;
        ret->has[r.kind] = true;
        ret->of[r.kind] = r;
    }
}

int record_make(const char *path, int *ret_fd, struct error *e) {
    static const uint8_t zeros[RECORD_SLOTS * RECORD_BYTES];
    AUTO(fd_done) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    ssize_t n = write(fd, zeros, sizeof zeros);
    if (n != (ssize_t)sizeof zeros) return fail_errno(e, n < 0 ? errno : ENOSPC, "%s", path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int record_open(const char *path, struct error *e) {
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? fail_errno(e, errno, "%s", path) : fd;
}

int record_read(int fd, struct record_state *ret, struct error *e) {
    uint8_t bytes[RECORD_SLOTS * RECORD_BYTES];
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    if (n < 0) return fail_errno(e, errno, "the run's state");
    record_scan(bytes, (size_t)n, ret);
    return 0;
}

int record_lock(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &l) == 0) return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

pid_t record_holder(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK ? l.l_pid : 0;
}

int record_append(int fd, struct record *r, bool sync, struct error *e) {
    struct record_state now = {0};
    int got = record_read(fd, &now, e);
    if (got < 0) return got;
    if (now.used >= RECORD_SLOTS) return fail(e, -ENOSPC, "the run's state is full");
    r->real_ns = clock_real_ns();
    r->boot_ns = clock_boot_ns();
    record_seal(r);
    CRASH_POINT();
    ssize_t n = pwrite(fd, r, sizeof *r, (off_t)(now.used * sizeof *r));
    if (n != (ssize_t)sizeof *r) return fail_errno(e, n < 0 ? errno : EIO, "the run's state");
    CRASH_POINT();
    if (sync && fdatasync(fd) < 0) return fail_errno(e, errno, "the run's state");
    CRASH_POINT();
    return 0;
}
