#include "base/openings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/auto.h"

#define EVENTS_ROOM 8192
#define HANDLE_FID 0x200 /* AT_HANDLE_FID, of Linux 6.5 */

static int fd_in(int epoll, int fd) {
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

void openings_begin(struct openings *o, struct openings_file *room, unsigned most) {
    *o = (struct openings){.of = room, .room = most, .by_handle = -1, .by_watch = -1};
    o->fd = epoll_create1(EPOLL_CLOEXEC);
    if (o->fd < 0) return;
    /* Marks without limit are for those alone who are told the pids of others, too: else inotify is as good. */
    o->by_handle =
        fd_in(o->fd, fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_UNLIMITED_MARKS | FAN_NONBLOCK | FAN_CLOEXEC,
                                   O_RDONLY));
    o->by_watch = fd_in(o->fd, inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (o->by_handle < 0 && o->by_watch < 0) openings_end(o);
}

void openings_end(struct openings *o) {
    int *fds[] = {&o->fd, &o->by_handle, &o->by_watch};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (*fds[i] >= 0) close(*fds[i]);
        *fds[i] = -1;
    }
    o->count = 0;
}

/* Of inotify's marks the kernel says when they are gone; handles of files that are gone match nothing. */
void openings_renew(struct openings *o) {
    unsigned left = 0;
    for (unsigned i = 0; i < o->count; i++)
        if (o->of[i].wd >= 0) o->of[left++] = o->of[i];
    o->count = left;
}

static void keep(struct openings *o, const struct openings_file *f) {
    for (unsigned i = 0; i < o->count; i++) {
        struct openings_file *one = &o->of[i];
        bool is_same = one->wd == f->wd && one->type == f->type && one->bytes == f->bytes &&
                       memcmp(one->fsid, f->fsid, sizeof f->fsid) == 0 && memcmp(one->handle, f->handle, f->bytes) == 0;
        if (!is_same) continue;
        one->tag = f->tag;
        return;
    }
    if (o->count == o->room) memmove(o->of, o->of + 1, --o->count * sizeof *o->of);
    o->of[o->count++] = *f;
}

/* A handle that only tells files apart is enough, and more file systems have it. */
static int handle_of(const char *path, struct file_handle *h) {
    int mount;
    if (name_to_handle_at(AT_FDCWD, path, h, &mount, 0) == 0) return 0;
    return name_to_handle_at(AT_FDCWD, path, h, &mount, HANDLE_FID) == 0 ? 0 : -errno;
}

static int add_handle(const struct openings *o, const char *path, struct openings_file *f) {
    union {
        struct file_handle h;
        char bytes[sizeof(struct file_handle) + OPENINGS_HANDLE];
    } at = {.h.handle_bytes = OPENINGS_HANDLE};
    struct statfs fs;
    if (o->by_handle < 0) return -ENOSYS;
    if (statfs(path, &fs) < 0) return -errno;
    int r = handle_of(path, &at.h);
    if (r < 0) return r;
    if (fanotify_mark(o->by_handle, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, path) < 0) return -errno;
    f->wd = -1;
    memcpy(f->fsid, &fs.f_fsid, sizeof f->fsid);
    f->type = at.h.handle_type;
    f->bytes = at.h.handle_bytes;
    memcpy(f->handle, at.h.f_handle, f->bytes);
    return 0;
}

int openings_add(struct openings *o, const char *path, int64_t tag) {
    struct openings_file f = {.tag = tag};
    int r = add_handle(o, path, &f);
    if (r < 0 && r != -ENOENT && o->by_watch >= 0) {
        f = (struct openings_file){.tag = tag, .wd = inotify_add_watch(o->by_watch, path, IN_OPEN)};
        r = f.wd < 0 ? -errno : 0;
    }
    if (r >= 0) keep(o, &f);
    return r;
}

static int64_t tag_of(const struct openings *o, const struct fanotify_event_metadata *m) {
    const char *at = (const char *)m + m->metadata_len, *end = (const char *)m + m->event_len;
    const struct fanotify_event_info_fid *info = (const void *)at;
    if (at + sizeof *info + sizeof(struct file_handle) > end || info->hdr.info_type != FAN_EVENT_INFO_TYPE_FID)
        return OPENINGS_ANY;
    const struct file_handle *h = (const void *)info->handle;
    for (unsigned i = 0; i < o->count; i++) {
        const struct openings_file *f = &o->of[i];
        bool is_it = f->type == h->handle_type && f->bytes == h->handle_bytes &&
                     memcmp(f->fsid, &info->fsid, sizeof f->fsid) == 0 && (const char *)h->f_handle + f->bytes <= end &&
                     memcmp(f->handle, h->f_handle, f->bytes) == 0;
        if (is_it && f->wd < 0) return f->tag;
    }
    return OPENINGS_ANY;
}

static void read_fanotify(struct openings *o, openings_fn each, void *ctx) {
    _Alignas(struct fanotify_event_metadata) char bytes[EVENTS_ROOM];
    ssize_t n = read(o->by_handle, bytes, sizeof bytes);
    for (struct fanotify_event_metadata *m = (void *)bytes; n > 0 && FAN_EVENT_OK(m, n); m = FAN_EVENT_NEXT(m, n)) {
        if (m->vers != FANOTIFY_METADATA_VERSION) break;
        if (m->fd >= 0) close(m->fd);
        if (m->mask & FAN_Q_OVERFLOW)
            each(ctx, OPENINGS_ANY, 0);
        else
            each(ctx, tag_of(o, m), m->pid > 0 ? m->pid : 0);
    }
}

static bool read_inotify(struct openings *o, openings_fn each, void *ctx) {
    _Alignas(struct inotify_event) char bytes[EVENTS_ROOM];
    bool is_whole = true;
    ssize_t n = read(o->by_watch, bytes, sizeof bytes);
    for (char *at = bytes; n > 0 && at < bytes + n;) {
        const struct inotify_event *ev = (const void *)at;
        at += sizeof *ev + ev->len;
        if (ev->mask & IN_Q_OVERFLOW) each(ctx, OPENINGS_ANY, 0);
        for (unsigned i = 0; i < o->count; i++) {
            if (o->of[i].wd != ev->wd) continue;
            if (ev->mask & IN_OPEN) each(ctx, o->of[i].tag, 0);
            if (!(ev->mask & IN_IGNORED)) break;
            o->of[i] = o->of[--o->count];
            is_whole = false;
            break;
        }
    }
    return is_whole;
}

bool openings_read(struct openings *o, openings_fn each, void *ctx) {
    if (o->by_handle >= 0) read_fanotify(o, each, ctx);
    return o->by_watch < 0 || read_inotify(o, each, ctx);
}
