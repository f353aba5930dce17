#include "core/opens.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define STACK_BYTES (64 * 1024)
#define COMING_NS (3 * NS_PER_S) /* CUDA takes some 0.3 s from the first open until it is listed */
#define AGAIN_NS (10 * NS_PER_S) /* device files come with the driver */
#define SOON_NS (100 * NS_PER_MS)
#define SOON_TRIES 100
#define EVENTS_ROOM 4096

struct mark {
    int wd;
    unsigned watch;
};

static void announce(struct opens *o, unsigned i) {
    if (watch_is_running(&o->watches[i])) watch_hunt(&o->watches[i], clock_boot_ns() + COMING_NS);
}

static int minor_of(struct opens *o, unsigned i) {
    const struct watch *w = &o->watches[i];
    if (!watch_is_running(&o->watches[i]) || w->device < 0) return -1;
    const struct inventory *inv = ring_inventory(&w->common->board->ring, (unsigned)w->device);
    return inv->minor >= 0 ? inv->minor : inv->index;
}

static unsigned marks_set(struct opens *o, int fd, struct mark *marks) {
    unsigned n = 0;
    char path[512];
    for (unsigned i = 0; i < o->count && n < GPU_MAX; i++) {
        int minor = minor_of(o, i);
        if (minor < 0) continue;
        snprintf(path, sizeof path, "%s/nvidia%d", o->dir, minor);
        int wd = inotify_add_watch(fd, path, IN_OPEN);
        if (wd >= 0) marks[n++] = (struct mark){wd, i};
    }
    return n;
}

/* Until a file goes away, or for_ms have passed (-1: for good): then they are all marked anew. */
static void follow(struct opens *o, int fd, const struct mark *marks, unsigned n, int for_ms) {
    _Alignas(struct inotify_event) char bytes[EVENTS_ROOM];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, for_ms) == 0) return;
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        uint64_t told = 0;
        bool is_for_all = false;
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;
            at += sizeof *ev + ev->len;
            if (ev->mask & IN_IGNORED) return;
            if (ev->mask & IN_Q_OVERFLOW) is_for_all = true;
            for (unsigned i = 0; i < n; i++) {
                if (marks[i].wd != ev->wd) continue;
                told |= BIT(marks[i].watch);
            }
        }
        for (unsigned i = 0; i < o->count; i++)
            if (is_for_all || told & BIT(i)) announce(o, i);
    }
}

static void *opens_main(void *arg) {
    struct opens *o = arg;
    struct mark marks[GPU_MAX];
    unsigned tries = 0;
    pthread_setname_np(pthread_self(), "opens");
    clock_be_prompt();
    for (;;) {
        AUTO(fd_done) int fd = inotify_init1(IN_CLOEXEC);
        if (fd < 0) {
            log_line(LOG_WARN, "no_inotify", -1, "new processes are noticed at the next round only: %s",
                     strerror(errno));
            return NULL;
        }
        unsigned n = marks_set(o, fd, marks);
        /* Cards that are not running yet have no mark: soon after the start they will have. */
        int64_t again_ns = tries < SOON_TRIES ? SOON_NS : AGAIN_NS;
        bool has_all = n >= o->count;
        tries += !has_all;
        if (n) follow(o, fd, marks, n, has_all ? -1 : (int)(again_ns / NS_PER_MS));
        if (!n || has_all) clock_sleep_until(clock_boot_ns() + (n ? SOON_NS : again_ns));
    }
}

void opens_start(struct opens *o) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, opens_main, o)) log_line(LOG_WARN, "thread", -1, "device files are not watched");
    pthread_attr_destroy(&attr);
}
