#include "node/opens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"

#define MINORS 64
#define FORGET_NS (60 * NS_PER_S)
#define GUESS_NS                                                                                                       \
    (5 * NS_PER_S) /* CUDA takes some 0.3 s from the first open until it is listed; a busy machine longer */

void opens_begin(struct opens *o, const char *dir) {
    memset(o, 0, sizeof *o);
    o->fd = -1;
    snprintf(o->dir, sizeof o->dir, "%s", dir);
    if (!*dir) return;
    /* Marks without limit are for those alone who are told the pids of others, too: else inotify is as good. */
    o->fd =
        fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_UNLIMITED_MARKS | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY);
    o->has_pids = o->fd >= 0;
    opens_mark(o);
    if (o->has_pids && !o->is_refused) return;
    opens_end(o); /* not root, or a kernel or file system that cannot */
    o->has_pids = false;
    o->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    opens_mark(o);
}

void opens_end(struct opens *o) {
    if (o->fd >= 0) close(o->fd);
    o->fd = -1;
}

static void mark(struct opens *o, const char *name, int32_t minor) {
    char path[300];
    if (o->files >= OPENS_FILES_MAX) return;
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    int wd = o->has_pids ? fanotify_mark(o->fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, path)
                         : inotify_add_watch(o->fd, path, IN_OPEN);
    if (wd < 0 && errno != ENOENT) o->is_refused = true;
    if (wd < 0) return;
    o->wd[o->files] = wd;
    o->minor[o->files++] = minor;
}

/* Marking what is marked already changes nothing. */
void opens_mark(struct opens *o) {
    char name[32];
    if (o->fd < 0) return;
    o->files = 0;
    for (int32_t i = 0; i < MINORS; i++) {
        snprintf(name, sizeof name, "nvidia%d", i);
        mark(o, name, i);
    }
    mark(o, "nvidia-uvm", -1);
}

static void keep(struct opens *o, int32_t pid, int32_t minor, int64_t now_ns) {
    o->of[o->head++ % OPENS_KEPT] = (struct opens_one){.at_ns = now_ns, .pid = pid, .minor = minor};
}

static void read_fanotify(struct opens *o, int64_t now_ns) {
    _Alignas(struct fanotify_event_metadata) char bytes[8192];
    ssize_t n = read(o->fd, bytes, sizeof bytes);
    for (struct fanotify_event_metadata *m = (void *)bytes; n > 0 && FAN_EVENT_OK(m, n); m = FAN_EVENT_NEXT(m, n)) {
        if (m->vers != FANOTIFY_METADATA_VERSION) return;
        if (m->fd >= 0) close(m->fd);
        if (m->pid > 0) keep(o, m->pid, -1, now_ns);
    }
}

static void read_inotify(struct opens *o, int64_t now_ns) {
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n = read(o->fd, bytes, sizeof bytes);
    for (char *at = bytes; n > 0 && at < bytes + n;) {
        const struct inotify_event *ev = (const void *)at;
        at += sizeof *ev + ev->len;
        for (unsigned i = 0; i < o->files; i++)
            if (o->wd[i] == ev->wd && ev->mask & IN_OPEN) keep(o, 0, o->minor[i], now_ns);
    }
}

void opens_read(struct opens *o, int64_t now_ns) {
    if (o->has_pids)
        read_fanotify(o, now_ns);
    else
        read_inotify(o, now_ns);
}

/* The first open of that pid; without pids the first of that GPU that nobody was matched with yet. */
int64_t opens_find(struct opens *o, int32_t pid, int32_t minor, int64_t start_ns) {
    uint32_t count = o->head < OPENS_KEPT ? o->head : OPENS_KEPT;
    for (uint32_t i = o->head - count; i != o->head; i++) {
        struct opens_one *one = &o->of[i % OPENS_KEPT];
        if (!one->at_ns || start_ns - one->at_ns > (o->has_pids ? FORGET_NS : GUESS_NS)) continue;
        if (o->has_pids ? one->pid != pid : one->minor != minor) continue;
        int64_t at_ns = one->at_ns < start_ns ? one->at_ns : start_ns; /* the sampler may be quicker than we are */
        if (!o->has_pids) one->at_ns = 0;
        return at_ns;
    }
    return 0;
}
