/* System calls as places at which a test may kill a process (base/crash_point.h): before each call that leaves something behind,
 * in threads that say so. Linked into a program it stands before libc for that program and for the libraries it uses, so that
 * a call which somebody adds tomorrow is numbered, too. What only looks is not here. */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crash_point.h"

#define OPEN __attribute__((visibility("default")))

#define PASS(name)                                                                                                     \
    CRASH_SITE(site_here, #name);                                                                                      \
    if (crash_point_has_calls()) crash_point(&site_here)

/* symbol: as the linker knows it, where off_t has 64 bits by another name. */
#define CALL_AS(type, name, symbol, parameters, arguments)                                                             \
    OPEN type name parameters {                                                                                        \
        static type(*real) parameters;                                                                                 \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #symbol);                                                        \
        PASS(name);                                                                                                    \
        return real arguments;                                                                                         \
    }
#define CALL(type, name, parameters, arguments) CALL_AS(type, name, name, parameters, arguments)

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

CALL(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
CALL(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
CALL_AS(ssize_t, pwrite, pwrite64, (int fd, const void *bytes, size_t n, off_t at), (fd, bytes, n, at))
CALL(int, fsync, (int fd), (fd))
CALL(int, fdatasync, (int fd), (fd))
CALL_AS(int, ftruncate, ftruncate64, (int fd, off_t n), (fd, n))
CALL_AS(int, fallocate, fallocate64, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, rmdir, (const char *path), (path))
CALL(int, chmod, (const char *path, mode_t mode), (path, mode))
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
CALL(int, lchown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid))
CALL(int, symlink, (const char *to, const char *path), (to, path))
CALL(int, dup2, (int from, int to), (from, to))
CALL(int, pipe2, (int ends[2], int flags), (ends, flags))
CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags))
CALL(int, chdir, (const char *path), (path))
CALL(int, setgroups, (size_t n, const gid_t *groups), (n, groups))
CALL(int, setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s))
CALL(int, setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s))
CALL(int, kill, (pid_t pid, int signo), (pid, signo))
CALL(ssize_t, send, (int fd, const void *bytes, size_t n, int flags), (fd, bytes, n, flags))
CALL(ssize_t, sendto, (int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t len),
     (fd, bytes, n, flags, to, len))
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
CALL(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask))
CALL(int, epoll_ctl, (int fd, int verb, int other, struct epoll_event *ev), (fd, verb, other, ev))
CALL(int, execv, (const char *file, char *const argv[]), (file, argv))
CALL(int, execvp, (const char *file, char *const argv[]), (file, argv))
CALL(int, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how,
      char *const argv[], char *const env[]),
     (pid, path, files, how, argv, env))
CALL(pid_t, setsid, (void), ())
CALL(pid_t, fork, (void), ())

OPEN int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    mode_t mode = 0;
    va_list ap;
    va_start(ap, flags);
    if (flags & O_CREAT) mode = va_arg(ap, mode_t);
    va_end(ap);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "open64");
    if (flags & O_CREAT) {
        PASS(open);
    }
    return real(path, flags, mode);
}

/* Locks; the rest of it is gone with the process. */
OPEN int fcntl(int fd, int verb, ...) {
    static int (*real)(int, int, ...);
    va_list ap;
    va_start(ap, verb);
    void *argument = va_arg(ap, void *); /* a number, or none, is narrower */
    va_end(ap);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
    if (verb == F_OFD_SETLK || verb == F_SETLK) {
        PASS(fcntl);
    }
    return real(fd, verb, argument);
}
