#include "core/xids.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define EVENT_WAIT_MS 5000
#define REOPEN_NS NS_PER_S
#define RETRY_NS (10 * NS_PER_S)
#define STACK_BYTES (128 * 1024)

static void *events_main(void *arg) {
    struct xids *x = arg;
    struct gpu *gpus[GPU_MAX];
    unsigned n = 0;
    struct gpu_events *events = NULL;
    struct error e;
    for (unsigned i = 0; i < x->count && n < GPU_MAX; i++)
        if (watch_is_running(&x->watches[i]) && x->watches[i].device >= 0) gpus[n++] = x->watches[i].gpu;
    if (n == 0) return NULL;
    if (gpu_events_open(x->common->driver, gpus, n, &events, &e) < 0) {
        log_line(LOG_INFO, "no_events", -1, "XIDs come from the kernel log only: %s", e.text);
        return NULL;
    }
    while (!x->common->end) {
        struct gpu_xid xid;
        int r = gpu_events_wait(events, EVENT_WAIT_MS, &xid);
        if (r == -ENXIO) watch_again(x->common, "the driver went away");
        if (r < 0) clock_sleep_until(clock_boot_ns() + NS_PER_S); /* one lost GPU can make every wait fail at once */
        for (unsigned i = 0; r > 0 && i < x->count; i++)
            if (x->watches[i].index == xid.index && x->watches[i].device >= 0)
                board_xid(x->common->board, (unsigned)x->watches[i].device, xid.code, XID_FROM_DRIVER, 0, "");
    }
    return NULL;
}

static void log_record(struct xids *x, const char *line, size_t len) {
    struct xid_line xid;
    if (!xid_parse(line, len, &xid)) return;
    for (unsigned i = 0; i < x->count; i++) {
        const struct watch *w = &x->watches[i];
        if (w->device < 0) continue;
        const struct inventory *inv = ring_inventory(&x->common->board->ring, (unsigned)w->device);
        if (!xid_is_at(xid.pci, inv->pci)) continue;
        board_xid(x->common->board, (unsigned)w->device, xid.code, XID_FROM_LOG, xid.pid, xid.process);
    }
}

/* /dev/kmsg gives a record a read and blocks. */
static int kmsg_device(struct xids *x, int fd) {
    char record[8192];
    for (;;) {
        ssize_t n = read(fd, record, sizeof record);
        if (n > 0) log_record(x, record, (size_t)n);
        if (n == 0) clock_sleep_until(clock_boot_ns() + REOPEN_NS); /* /dev/null, a pipe that no one writes */
        /* EPIPE: records were overwritten; EINVAL: one that is longer than any XID. Both are passed over. */
        if (n < 0 && errno != EPIPE && errno != EINTR && errno != EINVAL) return -errno;
    }
}

/* Whole lines go out; returns how much of the last one is left. A line of 8 KiB is no XID. */
static size_t log_lines(struct xids *x, char *text, size_t have, size_t room) {
    char *line = text, *end;
    while ((end = memchr(line, '\n', have - (size_t)(line - text)))) {
        log_record(x, line, (size_t)(end - line));
        line = end + 1;
    }
    have -= (size_t)(line - text);
    memmove(text, line, have);
    return have == room ? 0 : have;
}

/* Whether the path names another file by now, or none. */
static bool is_rotated(const struct xids *x, int fd) {
    struct stat ours, there;
    return fstat(fd, &ours) == 0 &&
           (stat(x->kmsg, &there) < 0 || ours.st_ino != there.st_ino || ours.st_dev != there.st_dev);
}

/* A plain file (a test's, a syslog's) is followed by inotify. Returns 0 when it was rotated away. */
static int kmsg_file(struct xids *x, int fd) {
    char text[8192], event[sizeof(struct inotify_event) + NAME_MAX + 1];
    size_t have = 0;
    struct stat st;
    AUTO(fd_done) int watch = inotify_init1(IN_CLOEXEC);
    /* a removed file that we hold open tells it by its link count, an attribute */
    if (watch < 0 || inotify_add_watch(watch, x->kmsg, IN_MODIFY | IN_MOVE_SELF | IN_ATTRIB) < 0) return -errno;
    for (;;) {
        ssize_t n = read(fd, text + have, sizeof text - have);
        if (n < 0 && errno != EINTR) return -errno;
        if (n > 0) {
            have = log_lines(x, text, have + (size_t)n, sizeof text);
            continue;
        }
        if (is_rotated(x, fd)) return 0;
        if (fstat(fd, &st) == 0 && st.st_size < lseek(fd, 0, SEEK_CUR)) { /* it was emptied: begin anew */
            lseek(fd, 0, SEEK_SET);
            continue;
        }
        if (read(watch, event, sizeof event) < 0 && errno != EINTR) return -errno;
    }
}

/* Not to be kept by a pipe that nobody writes. */
static int kmsg_open(const char *path, bool at_end) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    if (at_end) lseek(fd, 0, SEEK_END);
    (void)fcntl(fd, F_SETFL, O_RDONLY);
    return fd;
}

void xids_open(struct xids *x, const char *kmsg) {
    snprintf(x->kmsg, sizeof x->kmsg, "%s", kmsg);
    x->log = *x->kmsg ? kmsg_open(x->kmsg, true) : -1;
}

/* One file, from its end the first time (what was before is told already, or nobody's any more), else from its start. */
static int kmsg_follow(struct xids *x, bool is_first) {
    struct stat st;
    AUTO(fd_done) int fd = x->log >= 0 ? x->log : kmsg_open(x->kmsg, is_first);
    x->log = -1;
    if (fd < 0 || fstat(fd, &st) < 0) return -errno;
    return S_ISREG(st.st_mode) ? kmsg_file(x, fd) : kmsg_device(x, fd);
}

static void *kmsg_main(void *arg) {
    struct xids *x = arg;
    bool is_first = true, is_said = false;
    for (;;) {
        int r = kmsg_follow(x, is_first);
        if (r < 0 && !is_said)
            log_line(LOG_INFO, "no_kernel_log", -1, "XIDs come from the driver only: %s: %s", x->kmsg, strerror(-r));
        if (r == -EACCES || r == -EPERM || r == -EISDIR) return NULL; /* nothing that time would change */
        is_said = r < 0;
        is_first = false; /* a file that comes later is new from its start */
        clock_sleep_until(clock_boot_ns() + (r < 0 ? RETRY_NS : REOPEN_NS));
    }
}

void xids_start(struct xids *x) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, events_main, x) == 0) pthread_setname_np(thread, "xid-events");
    if (x->kmsg[0] && pthread_create(&thread, &attr, kmsg_main, x) == 0) pthread_setname_np(thread, "xid-log");
    pthread_attr_destroy(&attr);
}
