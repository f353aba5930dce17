#include "client/top_proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* A process may exec: its command is read anew after so long. */
#define COMMAND_NS (10 * NS_PER_S)

enum { USERS_KNOWN = 64 };

struct seen {
    uint32_t pid;
    uint64_t start_ticks, cpu_ticks;
    int64_t at_ns, command_ns;
    double cpu;
    struct top_process facts; /* user, container, command, ...: what a row is made from */
    bool is_current;
};

struct top_proc {
    struct seen *of;
    int count, capacity;
    struct {
        uid_t uid;
        char name[33];
    } users[USERS_KNOWN];
    int user_count;
};

struct top_proc *top_proc_new(void) {
    struct top_proc *t = calloc(1, sizeof *t);
    if (!t) abort();
    return t;
}

void top_proc_free(struct top_proc *t) {
    if (t) free(t->of);
    free(t);
}

/* ---- reading ---- */

/* Into `ret`, which ends with a NUL; the length, or -1. */
static ssize_t slurp(uint32_t pid, const char *name, char *ret, size_t room) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, ret, room - 1);
    if (n < 0) return -1;
    ret[n] = 0;
    return n;
}

struct stat_line {
    uint64_t cpu_ticks, start_ticks, pages;
    char name[32];
};

/* The name may hold spaces and brackets; what follows the last bracket are numbers, of which the third field of the line
 * is the first. */
static bool read_stat(uint32_t pid, struct stat_line *ret) {
    enum { UTIME = 14, STIME = 15, START = 22, RSS = 24 };
    char line[1024], *name, *end, *word, *rest;
    if (slurp(pid, "stat", line, sizeof line) <= 0) return false;
    if (!(name = strchr(line, '(')) || !(end = strrchr(line, ')'))) return false;
    *ret = (struct stat_line){0};
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)(end - name - 1), name + 1);
    rest = end + 2;
    for (int field = 3; (word = strsep(&rest, " ")) && field <= RSS; field++) {
        uint64_t value = strtoull(word, NULL, 10);
        if (field == UTIME || field == STIME) ret->cpu_ticks += value;
        if (field == START) ret->start_ticks = value;
        if (field == RSS) ret->pages = value;
    }
    return ret->start_ticks != 0;
}

uint64_t top_proc_start(uint32_t pid) {
    struct stat_line s;
    return read_stat(pid, &s) ? s.start_ticks : 0;
}

static void read_command(uint32_t pid, const char *name, char ret[TOP_COMMAND_MAX]) {
    ssize_t n = slurp(pid, "cmdline", ret, TOP_COMMAND_MAX);
    for (ssize_t i = 0; i < n; i++)
        if ((unsigned char)ret[i] < 0x20) ret[i] = ' ';
    while (n > 0 && ret[n - 1] == ' ') ret[--n] = 0;
    if (n <= 0) snprintf(ret, TOP_COMMAND_MAX, "[%s]", name);
}

/* Docker, Podman, containerd and CRI-O all name the cgroup of a container by its 64 digits; people know the first 12. */
static void read_container(uint32_t pid, char ret[72]) {
    char text[1024];
    int run = 0;
    ret[0] = 0;
    if (slurp(pid, "cgroup", text, sizeof text) <= 0) return;
    for (const char *c = text; *c; c++) {
        run = isxdigit((unsigned char)*c) ? run + 1 : 0;
        if (run == 64) snprintf(ret, 13, "%.12s", c - 63);
    }
}

static void find_user(struct top_proc *t, uid_t uid, char ret[33]) {
    for (int i = 0; i < t->user_count; i++)
        if (t->users[i].uid == uid) {
            memcpy(ret, t->users[i].name, sizeof t->users[i].name);
            return;
        }
    const struct passwd *pw = getpwuid(uid);
    if (pw)
        snprintf(ret, 33, "%s", pw->pw_name);
    else
        snprintf(ret, 33, "%u", (unsigned)uid);
    if (t->user_count == USERS_KNOWN) return;
    t->users[t->user_count].uid = uid;
    memcpy(t->users[t->user_count++].name, ret, 33);
}

/* ---- remembering ---- */

static struct seen *seen_of(struct top_proc *t, uint32_t pid) {
    for (int i = 0; i < t->count; i++)
        if (t->of[i].pid == pid) return &t->of[i];
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 32;
        t->of = realloc(t->of, (size_t)t->capacity * sizeof *t->of);
        if (!t->of) abort();
    }
    t->of[t->count] = (struct seen){.pid = pid, .cpu = NAN};
    return &t->of[t->count++];
}

static void look_at(struct top_proc *t, struct seen *s, int64_t now_ns) {
    struct stat_line line;
    struct top_process *f = &s->facts;
    struct stat owner;
    char path[32];
    double hz = (double)sysconf(_SC_CLK_TCK);
    f->is_here = read_stat(s->pid, &line);
    if (!f->is_here) return;
    if (line.start_ticks != s->start_ticks) *s = (struct seen){.pid = s->pid, .cpu = NAN, .facts.is_here = true};
    if (s->at_ns && now_ns > s->at_ns)
        s->cpu = (double)(line.cpu_ticks - s->cpu_ticks) / hz / ((double)(now_ns - s->at_ns) / 1e9);
    if (!s->at_ns || now_ns - s->command_ns > COMMAND_NS) {
        snprintf(path, sizeof path, "/proc/%u", s->pid);
        f->uid = stat(path, &owner) == 0 ? owner.st_uid : (uid_t)-1;
        find_user(t, f->uid, f->user);
        read_command(s->pid, line.name, f->command);
        read_container(s->pid, f->container);
        s->command_ns = now_ns;
    }
    s->start_ticks = f->start_ticks = line.start_ticks;
    s->cpu_ticks = line.cpu_ticks;
    s->at_ns = now_ns;
    f->cpu = s->cpu;
    f->host_bytes = (double)line.pages * (double)sysconf(_SC_PAGESIZE);
    f->running_s = (double)now_ns / 1e9 - (double)line.start_ticks / hz;
}

static void forget_the_rest(struct top_proc *t) {
    int n = 0;
    for (int i = 0; i < t->count; i++)
        if (t->of[i].is_current) t->of[n++] = t->of[i];
    t->count = n;
    for (int i = 0; i < n; i++) t->of[i].is_current = false;
}

/* ---- the rows ---- */

static void add_row(struct top_proc *t, const struct view *v, const struct view_device *d, const struct ring_process *p,
                    struct top_processes *ret) {
    struct top_process *row = top_processes_add(ret);
    struct seen *s = seen_of(t, p->pid);
    if (!s->is_current) look_at(t, s, v->boot_ns);
    s->is_current = true;
    if (s->facts.is_here)
        *row = s->facts;
    else
        snprintf(row->command, sizeof row->command, "(ended, or not visible from here)");
    row->pid = p->pid;
    row->kinds = p->kinds;
    row->gpu = view_is_instance(d) ? v->of[d->inventory.parent].inventory.index : d->inventory.index;
    row->instance = p->gi != UINT32_MAX ? (int)p->gi : view_is_instance(d) ? d->inventory.gi : -1;
    row->memory_bytes = p->memory_bytes == PROCESS_NO_MEMORY ? NAN : (double)p->memory_bytes;
    row->sm = p->sm == PROCESS_NO_SHARE ? NAN : p->sm / 100.0;
}

static bool parent_lists(const struct view *v, const struct view_device *d, const struct ring_process *p) {
    const struct ring_processes *all = &v->of[d->inventory.parent].processes;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->of[i].pid == p->pid && all->of[i].gi == p->gi && all->of[i].ci == p->ci) return true;
    return false;
}

void top_proc_list(struct top_proc *t, const struct view *v, struct top_processes *ret) {
    top_processes_clear(ret);
    for (size_t i = 0; i < v->count; i++) {
        const struct view_device *d = &v->of[i];
        for (uint32_t k = 0; d->processes.boot_ns && k < d->processes.count; k++)
            if (!view_is_instance(d) || !parent_lists(v, d, &d->processes.of[k]))
                add_row(t, v, d, &d->processes.of[k], ret);
    }
    forget_the_rest(t);
}
