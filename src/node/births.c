#include "node/births.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file.h"

#define DEPTH_MAX 5
#define EVENTS_ROOM 8192
#define ID_HEX 64

bool births_is_container(const char *name) {
    while (*name) {
        size_t n = strspn(name, "0123456789abcdef");
        if (n == ID_HEX) return true;
        name += n ? n : 1;
    }
    return false;
}

/* Directories that engines put their containers in. */
static bool leads_on(const char *name) {
    static const char *const starts[] = {"docker",     "libpod",    "machine",    "kubepods", "system.slice",
                                         "besteffort", "burstable", "guaranteed", "pod"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0 && !births_is_container(name)) return true;
    return false;
}

static void dir_done(DIR **d) {
    if (*d) closedir(*d);
}

/* Follows a directory and those below it that lead on. True: there are containers in it. */
static bool follow(struct births *b, const char *path, unsigned depth) {
    bool has_some = false;
    struct births_dir *d = &b->dirs[b->count];
    if (depth > DEPTH_MAX || b->count == BIRTHS_DIRS_MAX || strlen(path) >= sizeof d->path) return false;
    int wd = inotify_add_watch(b->fd, path, IN_CREATE | IN_ONLYDIR);
    if (wd < 0) return false;
    for (unsigned i = 0; i < b->count; i++)
        if (b->dirs[i].wd == wd) return false;
    *d = (struct births_dir){.wd = wd, .depth = depth};
    snprintf(d->path, sizeof d->path, "%s", path);
    b->count++;
    AUTO(dir_done) DIR *dir = opendir(path);
    for (const struct dirent *one; dir && (one = readdir(dir));) {
        char below[512];
        if (one->d_type != DT_DIR) continue;
        has_some |= births_is_container(one->d_name);
        if (!leads_on(one->d_name)) continue;
        snprintf(below, sizeof below, "%s/%s", path, one->d_name);
        has_some |= follow(b, below, depth + 1);
    }
    return has_some;
}

void births_open(struct births *b, const char *root) {
    /* One hierarchy of each kind is enough; which of them a machine has differs. */
    static const char *const places[] = {"", "/unified", "/pids", "/memory", "/systemd"};
    *b = (struct births){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
                         .dirs = calloc(BIRTHS_DIRS_MAX, sizeof *b->dirs)};
    if (b->fd < 0 || !b->dirs) {
        births_close(b);
        return;
    }
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_LEN(places) && found < 3; i++) {
        char path[224];
        unsigned before = b->count;
        snprintf(path, sizeof path, "%.200s%s", root, places[i]);
        follow(b, path, 0);
        found += b->count > before;
    }
}

void births_close(struct births *b) {
    if (b->fd >= 0) close(b->fd);
    free(b->dirs);
    *b = (struct births){.fd = -1};
}

static struct births_dir *dir_of(struct births *b, int wd) {
    for (unsigned i = 0; i < b->count; i++)
        if (b->dirs[i].wd == wd) return &b->dirs[i];
    return NULL;
}

static bool on_event(struct births *b, const struct inotify_event *ev) {
    struct births_dir *d = dir_of(b, ev->wd);
    char path[512];
    if (ev->mask & IN_Q_OVERFLOW) return true; /* so many that one will have been among them */
    if (!d) return false;
    if (ev->mask & IN_IGNORED) {
        *d = b->dirs[--b->count];
        return false;
    }
    if (!(ev->mask & IN_ISDIR) || !ev->len) return false;
    if (births_is_container(ev->name)) return true;
    if (!leads_on(ev->name)) return false;
    snprintf(path, sizeof path, "%s/%s", d->path, ev->name);
    return follow(b, path, d->depth + 1);
}

bool births_read(struct births *b) {
    _Alignas(struct inotify_event) char bytes[EVENTS_ROOM];
    bool has_one = false;
    ssize_t got = read(b->fd, bytes, sizeof bytes);
    for (char *at = bytes; got > 0 && at < bytes + got;) {
        const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;
        at += sizeof *ev + ev->len;
        has_one |= on_event(b, ev);
    }
    return has_one;
}
