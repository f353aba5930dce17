#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_done(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

int file_read(const char *path, size_t max_bytes, struct buf *ret, struct error *e) {
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    fcntl(fd, F_SETFL, 0); /* a pipe that nobody writes must not hold up the open, but a slow one may be waited for */
    return file_read_fd(fd, path, max_bytes, ret, e);
}

int file_read_fd(int fd, const char *path, size_t max_bytes, struct buf *ret, struct error *e) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) return fail(e, -EISDIR, "%s: is a directory", path);
    AUTO(buf_done) struct buf text = {0};
    buf_puts(&text, "");
    for (;;) {
        buf_reserve(&text, 4096);
        ssize_t n = read(fd, text.s + text.len, 4096);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(e, errno, "%s", path);
        if (n == 0) break;
        text.len += (size_t)n;
        text.s[text.len] = 0;
        if (text.len > max_bytes) return fail(e, -EFBIG, "%s: larger than %zu bytes", path, max_bytes);
    }
    *ret = TAKE_STRUCT(text);
    return 0;
}

static int write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        ssize_t w = write(fd, bytes, n);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return -(errno ? errno : EIO);
        bytes += w;
        n -= (size_t)w;
    }
    return 0;
}

int file_write(const char *path, mode_t mode, const void *bytes, size_t n, bool sync, struct error *e) {
    static _Atomic unsigned serial; /* two threads may write the same path */
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.new.%d.%u", path, (int)getpid(), serial++) >= (int)sizeof beside)
        return fail(e, -ENAMETOOLONG, "%s: the path is too long", path);
    unlink(beside); /* never write into what someone else put there: it would stay theirs */
    AUTO(fd_done) int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return fail_errno(e, errno, "%s", beside);
    int r = write_all(fd, bytes, n);
    if (r == 0 && fchmod(fd, mode) < 0) r = -errno;
    if (r == 0 && sync && fsync(fd) < 0) r = -errno;
    if (r == 0 && rename(beside, path) < 0) r = -errno;
    if (r < 0) {
        unlink(beside);
        return fail_errno(e, -r, "%s", path);
    }
    return 0;
}

int dir_make(const char *path, mode_t mode, struct error *e) {
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part) return fail(e, -ENAMETOOLONG, "%s: not a usable path", path);
    memcpy(part, path, n + 1);
    while (n > 1 && part[n - 1] == '/') part[--n] = 0; /* else the last one would be made as one on the way */
    for (char *p = part + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        if (mkdir(part, 0755) < 0 && errno != EEXIST) return fail_errno(e, errno, "%s", part);
        *p = '/';
    }
    struct stat st;
    if (mkdir(part, mode) == 0)
        return chmod(part, mode) < 0 ? fail_errno(e, errno, "%s", path) : 0; /* not the umask's */
    if (errno != EEXIST) return fail_errno(e, errno, "%s", path);
    if (stat(part, &st) < 0) return fail_errno(e, errno, "%s", path);
    if (!S_ISDIR(st.st_mode)) return fail(e, -ENOTDIR, "%s: is not a directory", path);
    return 0;
}

static bool is_of_the_dead(const char *name, const char *whose) {
    const char *at = strstr(name, ".new."), *digits = "0123456789";
    if (!at || (whose && strncmp(name, whose, (size_t)(at - name)) != 0) || (whose && whose[at - name])) return false;
    at += strlen(".new.");
    size_t n = strspn(at, digits);
    long pid = n ? strtol(at, NULL, 10) : 0;
    at += n;
    if (*at == '.' && at[1]) at += 1 + strspn(at + 1, digits);
    return !*at && pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

void dir_sweep(const char *path, const char *name) {
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *f; (f = readdir(d));)
        if (is_of_the_dead(f->d_name, name)) unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
}

int dir_of_self(char *ret, size_t room, struct error *e) {
    ssize_t n = readlink("/proc/self/exe", ret, room - 1);
    if (n <= 0) return fail_errno(e, errno, "/proc/self/exe");
    if ((size_t)n >= room - 1) return fail(e, -ENAMETOOLONG, "/proc/self/exe: longer than %zu bytes", room - 2);
    ret[n] = 0;
    char *slash = strrchr(ret, '/');
    if (slash) *slash = 0;
    return 0;
}

/* ---- descriptors to another process ---- */

int fd_send(int to, int fd, int errnum) {
    struct iovec io = {.iov_base = &errnum, .iov_len = sizeof errnum};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fd)];
    } c = {0};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.room};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    if (fd < 0) m.msg_controllen = 0;
    return sendmsg(to, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_receive(int from, int *ret_errnum) {
    struct iovec io = {.iov_base = ret_errnum, .iov_len = sizeof *ret_errnum};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {0};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c.room};
    int fd = -1;
    *ret_errnum = EIO;
    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *ret_errnum) return -1;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (h && h->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(h), sizeof fd);
    return fd;
}
