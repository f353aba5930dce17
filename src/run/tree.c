#include "run/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

static ssize_t read_file(pid_t pid, const char *name, char *to, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, to, room - 1);
    if (n >= 0) to[n] = 0;
    return n;
}

/* pid (comm) S ppid pgrp session ...: a comm may hold anything, ')' too: the last one ends it. */
static bool read_stat(pid_t pid, struct tree_process *ret) {
    char text[1024];
    int parent, session;
    if (read_file(pid, "stat", text, sizeof text) <= 0) return false;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c %d %*d %d", &ret->state, &parent, &session) != 3) return false;
    uint64_t value[25] = {0};
    for (int field = 2; field < 24; field++) {
        at = strchr(at + 1, ' ');
        if (!at) return false;
        value[field + 1] = strtoull(at + 1, NULL, 10);
    }
    ret->cpu_ticks = value[14] + value[15];
    ret->waited_ticks = value[16] + value[17];
    ret->host_pages = value[24];
    ret->pid = pid;
    ret->parent = parent;
    ret->session = session;
    ret->ticks = value[22];
    ret->is_ours = false;
    return true;
}

uint64_t tree_ticks(pid_t pid) {
    struct tree_process p;
    return read_stat(pid, &p) ? p.ticks : 0;
}

static bool add(struct tree *t, const struct tree_process *p) {
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 256;
        struct tree_process *of = realloc(t->of, room * sizeof *of);
        if (!of) return false;
        t->of = of;
        t->room = room;
    }
    t->of[t->count++] = *p;
    return true;
}

static int by_pid(const void *a, const void *b) {
    const struct tree_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

bool tree_scan(struct tree *t) {
    DIR *d = opendir("/proc");
    struct tree_process p;
    bool is_whole = d != NULL;
    t->count = 0;
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (isdigit((unsigned char)entry->d_name[0]) && read_stat((pid_t)atoi(entry->d_name), &p))
            is_whole &= add(t, &p);
    if (d) closedir(d);
    if (t->count) qsort(t->of, t->count, sizeof *t->of, by_pid);
    return is_whole;
}

void tree_done(struct tree *t) {
    free(t->of);
    *t = (struct tree){0};
}

void tree_take_pid(struct tree *t, pid_t pid, uint64_t ticks) {
    for (size_t i = 0; i < t->count; i++)
        if (t->of[i].pid == pid && t->of[i].ticks == ticks) t->of[i].is_ours = true;
}

void tree_take_session(struct tree *t, pid_t session, uint64_t since_ticks) {
    for (size_t i = 0; i < t->count; i++)
        if (t->of[i].session == session && t->of[i].ticks >= since_ticks) t->of[i].is_ours = true;
}

void tree_take_children(struct tree *t, pid_t parent) {
    for (size_t i = 0; i < t->count; i++)
        if (t->of[i].parent == parent) t->of[i].is_ours = true;
}

static bool is_marked(pid_t pid, const char *mark) {
    static char text[256 * 1024];
    ssize_t n = read_file(pid, "environ", text, sizeof text);
    size_t len = strlen(mark);
    for (const char *at = text; n > 0 && at < text + n; at += strlen(at) + 1)
        if (strncmp(at, mark, len) == 0 && !at[len]) return true;
    return false;
}

void tree_take_marked(struct tree *t, const char *mark) {
    for (size_t i = 0; i < t->count; i++)
        if (!t->of[i].is_ours && is_marked(t->of[i].pid, mark)) t->of[i].is_ours = true;
}

static const struct tree_process *find(const struct tree *t, pid_t pid) {
    const struct tree_process wanted = {.pid = pid};
    return t->count ? bsearch(&wanted, t->of, t->count, sizeof *t->of, by_pid) : NULL;
}

void tree_take_below(struct tree *t) {
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (size_t i = 0; i < t->count; i++) {
            const struct tree_process *parent = t->of[i].is_ours ? NULL : find(t, t->of[i].parent);
            if (!parent || !parent->is_ours) continue;
            t->of[i].is_ours = is_more = true;
        }
    }
}

/* The pidfd holds the number; whoever has it then and began when ours did is ours. */
static bool signal_one(const struct tree_process *p, int signo) {
    AUTO(fd_done) int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0 && errno == ENOSYS) return tree_ticks(p->pid) == p->ticks && kill(p->pid, signo) == 0;
    if (fd < 0 || tree_ticks(p->pid) != p->ticks) return false;
    return syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
}

unsigned tree_signal(const struct tree *t, int signo) {
    unsigned n = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct tree_process *p = &t->of[i];
        if (p->is_ours && p->pid != getpid() && p->state != 'Z' && p->state != 'X') n += signal_one(p, signo);
    }
    return n;
}

/* ---- what they use ---- */

/* read_bytes and write_bytes of a process: its own, and those of all that it waited for. */
static bool add_io(pid_t pid, struct tree_use *u) {
    char text[512];
    if (read_file(pid, "io", text, sizeof text) <= 0) return false;
    const char *read_at = strstr(text, "\nread_bytes: "), *write_at = strstr(text, "\nwrite_bytes: ");
    if (!read_at || !write_at) return false;
    u->read_bytes += strtoull(read_at + strlen("\nread_bytes: "), NULL, 10);
    u->written_bytes += strtoull(write_at + strlen("\nwrite_bytes: "), NULL, 10);
    return true;
}

void tree_used(const struct tree *t, pid_t root, struct tree_use *ret) {
    struct tree_use u = {0};
    uint64_t ticks = 0, pages = 0;
    bool has_io = true;
    for (size_t i = 0; i < t->count; i++) {
        const struct tree_process *p = &t->of[i];
        if (!p->is_ours) continue;
        bool is_dead = p->state == 'Z' || p->state == 'X';
        if (!is_dead && !add_io(p->pid, &u) && tree_ticks(p->pid) == p->ticks) has_io = false;
        ticks += p->waited_ticks;
        if (p->pid == root) continue;
        ticks += p->cpu_ticks;
        pages += p->host_pages;
        u.processes++;
    }
    if (!has_io) u.read_bytes = u.written_bytes = UINT64_MAX;
    u.cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    u.host_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    *ret = u;
}
