#include "node/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utmpx.h>

#include "base/auto.h"
#include "base/file.h"
#include "base/json.h"
#include "node/process.h"

#define PTS "/dev/pts"
#define TERMINALS_MAX 64 /* of one message */
#define ENTRIES_MAX 4096 /* of a directory or of utmp */
#define LINE_MAX_BYTES 600
#define PTY_MAJOR 136
#define CONSOLE_MAJOR 4

struct said {
    struct {
        dev_t at, is; /* file system and terminal: containers count theirs from 0, too */
    } to[TERMINALS_MAX];
    unsigned count, taken;
    const char *line;
    size_t len;
    bool is_asked_for; /* so it goes where its reader lets anybody write: mesg is the bit of the group */
};

/* ---- what is written ---- */

size_t terminal_line(const char *text, char *ret, size_t room) {
    size_t at = (size_t)snprintf(ret, room, "\r\n\a");
    while (*text) {
        size_t n = json_shown_len(text), step = n ? n : 1;
        if (at + step + sizeof "\r\n" > room) break;
        memcpy(ret + at, n ? text : "?", step);
        at += step;
        text += step;
    }
    return at + (size_t)snprintf(ret + at, room - at, "\r\n");
}

/* ---- where ---- */

static bool is_said(const struct said *s, const struct stat *st) {
    for (unsigned i = 0; i < s->count; i++)
        if (s->to[i].at == st->st_dev && s->to[i].is == st->st_rdev) return true;
    return false;
}

/* Closes fd. A name may be anything: what was opened counts. */
static void say(struct said *s, int fd, uint32_t owner, dev_t is) {
    struct stat st;
    bool is_his = fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && isatty(fd) &&
                  (owner == UINT32_MAX || st.st_uid == owner) && (!is || st.st_rdev == is) &&
                  (!s->is_asked_for || (st.st_mode & S_IWGRP));
    if (is_his && s->count < TERMINALS_MAX && !is_said(s, &st)) {
        s->to[s->count].at = st.st_dev;
        s->to[s->count++].is = st.st_rdev;
        s->taken += write(fd, s->line, s->len) == (ssize_t)s->len;
    }
    if (fd >= 0) close(fd);
}

#define HOW (O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)

static void say_owned(struct said *s, uint32_t uid) {
    DIR *dir = opendir(PTS);
    struct stat st;
    const struct dirent *d;
    for (int n = 0; dir && n < ENTRIES_MAX && (d = readdir(dir)); n++) {
        if (d->d_name[strspn(d->d_name, "0123456789")]) continue;
        if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != uid || is_said(s, &st))
            continue;
        say(s, openat(dirfd(dir), d->d_name, HOW), uid, 0);
    }
    if (dir) closedir(dir);
}

/* Consoles and lines: those that are his now. Others than root may write utmp, so just real terminals count. The C library
 * reads it at one place for all threads. */
static void say_logged_in(struct said *s, uint32_t uid) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const struct utmpx *u;
    char path[sizeof u->ut_line + 8];
    pthread_mutex_lock(&lock);
    setutxent();
    for (int n = 0; n < ENTRIES_MAX && (u = getutxent()); n++) {
        if (u->ut_type != USER_PROCESS || strncmp(u->ut_line, "tty", 3) != 0) continue;
        snprintf(path, sizeof path, "/dev/%.*s", (int)sizeof u->ut_line, u->ut_line);
        if (!strchr(path + sizeof "/dev", '/')) say(s, open(path, HOW), uid, 0);
    }
    endutxent();
    pthread_mutex_unlock(&lock);
}

/* By the process's own root, for a container's terminals are its own; no link in there is followed. */
static int open_inside(int32_t pid, const char *path) {
    char root[40];
    struct statfs fs;
    struct open_how how = {.flags = HOW, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    snprintf(root, sizeof root, "/proc/%d/root", pid);
    AUTO(fd_done) int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -1 : (int)syscall(SYS_openat2, at, path, &how, sizeof how);
    if (fd < 0 || (fstatfs(fd, &fs) == 0 && fs.f_type == DEVPTS_SUPER_MAGIC)) return fd;
    close(fd);
    return -1;
}

static void say_process(struct said *s, int32_t pid, uint64_t ticks) {
    uint32_t major_, minor_;
    char path[40];
    if (!process_terminal(pid, ticks, &major_, &minor_)) return;
    if (major_ == PTY_MAJOR) {
        snprintf(path, sizeof path, "%s/%u", &PTS[1], minor_);
        int fd = open_inside(pid, path);
        if (fd >= 0 && !process_is_there("/proc", pid, ticks)) { /* it was another's root, perhaps */
            close(fd);
            fd = -1;
        }
        say(s, fd, UINT32_MAX, makedev(major_, minor_));
    } else if (major_ == CONSOLE_MAJOR && minor_ < 64) {
        snprintf(path, sizeof path, "/dev/tty%u", minor_);
        say(s, open(path, HOW), UINT32_MAX, makedev(major_, minor_));
    }
}

unsigned terminal_write(uint32_t uid, int32_t pid, uint64_t ticks, const char *text) {
    char line[LINE_MAX_BYTES];
    struct said s = {.line = line, .len = terminal_line(text, line, sizeof line)};
    if (pid > 0) say_process(&s, pid, ticks);
    if (uid != UINT32_MAX) {
        say_owned(&s, uid);
        say_logged_in(&s, uid);
    }
    return s.taken;
}

unsigned terminal_tell(uint32_t uid, const char *text) {
    char line[LINE_MAX_BYTES];
    struct said s = {.line = line, .len = terminal_line(text, line, sizeof line), .is_asked_for = true};
    say_owned(&s, uid);
    say_logged_in(&s, uid);
    return s.taken;
}
