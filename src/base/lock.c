#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static bool is_ours(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
}

/* A directory that somebody filled is moved; its new name is none that he could have taken before. */
static bool move_aside(const char *path) {
    struct stat st;
    char aside[600];
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid == geteuid()) return false;
    snprintf(aside, sizeof aside, "%.500s.%llx", path, (unsigned long long)clock_boot_ns());
    return rename(path, aside) == 0;
}

/* In a directory that all may write to, someone may have put something there to keep us off: root takes it away. */
static int open_own(const char *path) {
    for (int i = 0; i < 5; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        int r = fd < 0 ? -errno : -EACCES;
        if (fd >= 0 && (geteuid() != 0 || is_ours(fd))) return fd;
        if (fd >= 0) close(fd);
        if (geteuid() != 0 || r == -ENOENT || (unlink(path) < 0 && !move_aside(path))) return r;
    }
    return -EACCES;
}

const char *lock_owner(const char *holder) {
    const char *at = strstr(holder, ", ");
    return at ? at + 2 : NULL;
}

static bool is_owned_by(int fd, const char *owner, char *who, size_t room) {
    ssize_t n = pread(fd, who, room - 1, 0);
    who[n > 0 ? n : 0] = 0;
    who[strcspn(who, "\n")] = 0;
    const char *theirs = lock_owner(who);
    return theirs && strcmp(theirs, owner) == 0;
}

/* Whether it is ours now; the descriptor tells nothing of that. who: another owner, of now or of before. */
static int take(int fd, const char *owner, char *who, size_t room) {
    int r = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
    bool was_ours = is_owned_by(fd, owner, who, room);
    if (r == -EWOULDBLOCK) return was_ours ? 0 : -EBUSY;
    if (r < 0) return r;
    if (was_ours) who[0] = 0;
    if (ftruncate(fd, 0) == 0) dprintf(fd, "pid %d, %s\n", (int)getpid(), owner);
    return 0;
}

int lock_take(const char *path, const char *owner, char *holder, size_t room, struct error *e) {
    char who[400] = "";
    int fd = open_own(path);
    holder[0] = 0;
    if (fd < 0) return fail_errno(e, -fd, "%.160s", path);
    int r = take(fd, owner, who, sizeof who);
    if (r == 0) {
        snprintf(holder, room, "%s", who);
        return fd;
    }
    close(fd);
    if (r != -EBUSY) return fail_errno(e, -r, "%.160s", path);
    snprintf(holder, room, "%s", who);
    return fail(e, -EBUSY, "%.120s: held by %.100s", path, *who ? who : "another process");
}

bool lock_is_free(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT;
    bool is_free = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd); /* and with it the lock */
    return is_free;
}
