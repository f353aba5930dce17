/* A wall clock that a test may set: preloaded into a process and all that it starts, it adds to CLOCK_REALTIME what a mapped file
 * says (a signed number of nanoseconds). What counts time that passes is left alone. Written because libfaketime, told by a
 * file, lets the true time through now and then when several threads ask. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define OPEN __attribute__((visibility("default")))

static const _Atomic int64_t *ahead_ns;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SET_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_ns, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (at != MAP_FAILED) ahead_ns = at;
}

static int64_t now_ns(void) {
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec + (ahead_ns ? atomic_load(ahead_ns) : 0);
}

OPEN int clock_gettime(clockid_t id, struct timespec *ret) {
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return (int)syscall(SYS_clock_gettime, id, ret);
    int64_t ns = now_ns();
    *ret = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    return 0;
}

OPEN int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
    (void)zone;
    int64_t ns = now_ns();
    *ret = (struct timeval){.tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / 1000};
    return 0;
}

OPEN time_t time(time_t *ret) {
    time_t s = (time_t)(now_ns() / NS_PER_S);
    if (ret) *ret = s;
    return s;
}
