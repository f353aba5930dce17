#include "node/inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS_ROOM 8192
#define USUAL_MAX 16 /* /dev/nvidia0 to 15, where nobody says which */

void inside_open(struct inside *i) { *i = (struct inside){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)}; }

void inside_close(struct inside *i) {
    if (i->fd >= 0) close(i->fd);
    *i = (struct inside){.fd = -1};
}

bool inside_is_gpu(const char *path) {
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/nvidia", 7) != 0 || strstr(path, "..")) return false;
    size_t digits = strspn(name + 7, "0123456789");
    return digits > 0 && digits <= 3 && !name[7 + digits];
}

static int *find(struct inside *i, int wd) {
    for (unsigned k = 0; k < i->count; k++)
        if (i->wd[k] == wd) return &i->wd[k];
    return NULL;
}

/* The same file again is the same mark. */
static void add(struct inside *i, int32_t pid, const char *path) {
    char whole[128];
    if (i->count == INSIDE_MAX || !inside_is_gpu(path)) return;
    snprintf(whole, sizeof whole, "/proc/%d/root%s", pid, path);
    int wd = inotify_add_watch(i->fd, whole, IN_OPEN | IN_DONT_FOLLOW);
    if (wd >= 0 && !find(i, wd)) i->wd[i->count++] = wd;
}

void inside_add(struct inside *i, const struct container_said *said) {
    const struct engine_facts *f = &said->facts;
    if (i->fd < 0 || !f->has_own_devices || f->pid <= 0) return;
    for (unsigned k = 0; k < said->device_count; k++) add(i, f->pid, said->device[k]);
    for (int k = 0; !said->device_count && k < USUAL_MAX; k++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", k);
        add(i, f->pid, path);
    }
}

bool inside_read(struct inside *i) {
    _Alignas(struct inotify_event) char bytes[EVENTS_ROOM];
    bool has_one = false;
    ssize_t got = read(i->fd, bytes, sizeof bytes);
    for (char *at = bytes; got > 0 && at < bytes + got;) {
        const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;
        at += sizeof *ev + ev->len;
        has_one |= (ev->mask & (IN_OPEN | IN_Q_OVERFLOW)) != 0;
        int *gone = ev->mask & IN_IGNORED ? find(i, ev->wd) : NULL;
        if (gone) *gone = i->wd[--i->count];
    }
    return has_one;
}
