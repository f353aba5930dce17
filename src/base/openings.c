#include "base/openings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <unistd.h>

#define EVENTS_ROOM 8192

void openings_begin(struct openings *o, struct openings_file *room, unsigned most, const char *near) {
    *o = (struct openings){.of = room, .room = most};
    /* Marks without limit are for those alone who are told the pids of others, too: else inotify is as good. */
    o->fd =
        fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_UNLIMITED_MARKS | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY);
    o->has_pids = o->fd >= 0 && fanotify_mark(o->fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, near) == 0;
    if (o->has_pids) {
        fanotify_mark(o->fd, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, near);
        return;
    }
    openings_end(o); /* not root, or a kernel or file system that cannot */
    o->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

void openings_end(struct openings *o) {
    if (o->fd >= 0) close(o->fd);
    o->fd = -1;
    o->count = 0;
}

/* Of inotify's marks the kernel says when they are gone; handles of files that are gone match nothing. */
void openings_renew(struct openings *o) {
    if (o->has_pids) o->count = 0;
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

static int add_handle(struct openings *o, const char *path, struct openings_file *f) {
    union {
        struct file_handle h;
        char bytes[sizeof(struct file_handle) + OPENINGS_HANDLE];
    } at = {.h.handle_bytes = OPENINGS_HANDLE};
    struct statfs fs;
    int mount;
    if (statfs(path, &fs) < 0 || name_to_handle_at(AT_FDCWD, path, &at.h, &mount, 0) < 0 ||
        fanotify_mark(o->fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, path) < 0)
        return -errno;
    f->wd = -1;
    memcpy(f->fsid, &fs.f_fsid, sizeof f->fsid);
    f->type = at.h.handle_type;
    f->bytes = at.h.handle_bytes;
    memcpy(f->handle, at.h.f_handle, f->bytes);
    return 0;
}

int openings_add(struct openings *o, const char *path, int64_t tag) {
    struct openings_file f = {.tag = tag};
    int r = 0;
    if (o->fd < 0) return -EBADF;
    if (o->has_pids) {
        r = add_handle(o, path, &f);
    } else {
        f.wd = inotify_add_watch(o->fd, path, IN_OPEN);
        if (f.wd < 0) r = -errno;
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
        if (is_it) return f->tag;
    }
    return OPENINGS_ANY;
}

static bool read_fanotify(struct openings *o, openings_fn each, void *ctx) {
    _Alignas(struct fanotify_event_metadata) char bytes[EVENTS_ROOM];
    ssize_t n = read(o->fd, bytes, sizeof bytes);
    for (struct fanotify_event_metadata *m = (void *)bytes; n > 0 && FAN_EVENT_OK(m, n); m = FAN_EVENT_NEXT(m, n)) {
        if (m->vers != FANOTIFY_METADATA_VERSION) break;
        if (m->fd >= 0) close(m->fd);
        if (m->mask & FAN_Q_OVERFLOW)
            each(ctx, OPENINGS_ANY, 0);
        else
            each(ctx, tag_of(o, m), m->pid > 0 ? m->pid : 0);
    }
    return true;
}

static bool read_inotify(struct openings *o, openings_fn each, void *ctx) {
    _Alignas(struct inotify_event) char bytes[EVENTS_ROOM];
    bool is_whole = true;
    ssize_t n = read(o->fd, bytes, sizeof bytes);
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
    return o->has_pids ? read_fanotify(o, each, ctx) : read_inotify(o, each, ctx);
}
