#include "node/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/file.h"

static bool read_text(const char *proc, int32_t pid, const char *name, char *to, size_t room) {
    char path[128];
    snprintf(path, sizeof path, "%s/%d/%s", proc, pid, name);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    if (fd < 0) return false;
    while (len < room - 1) {
        ssize_t n = read(fd, to + len, room - 1 - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
    }
    to[len] = 0;
    return len > 0;
}

/* pid (comm) S ppid ...: a comm may hold anything, ')' too: the last one ends it. */
bool process_parse_stat(const char *text, struct process *p) {
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2]) return false;
    size_t n = (size_t)(close - open - 1);
    if (n >= sizeof p->comm) n = sizeof p->comm - 1;
    memcpy(p->comm, open + 1, n);
    p->comm[n] = 0;
    p->state = close[2];
    const char *at = close + 2;
    for (int field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (!at) return false;
        at++;
    }
    char *end;
    p->ticks = strtoull(at, &end, 10);
    return end != at;
}

void process_parse_status(const char *text, struct process *p) {
    const char *line = strstr(text, "\nUid:");
    char *end;
    if (line) {
        unsigned long uid = strtoul(line + 5, &end, 10);
        if (end != line + 5 && uid < UINT32_MAX) p->uid = (uint32_t)uid;
    }
    line = strstr(text, "\nNSpid:");
    if (!line) return;
    for (line += 7; *line == '\t' || *line == ' '; line = end) {
        long pid = strtol(line, &end, 10);
        if (end == line || pid <= 0 || pid > INT32_MAX) break;
        p->ns_pid = (int32_t)pid; /* the last is the innermost */
    }
}

static bool is_over(char state) { return state == 'Z' || state == 'X' || state == 'x'; }

bool process_read(const char *proc, int32_t pid, struct process *ret) {
    char text[8192];
    *ret = (struct process){.uid = UINT32_MAX};
    ret->whose.uid = ret->whose.slurm_job = -1;
    if (!read_text(proc, pid, "stat", text, sizeof text) || !process_parse_stat(text, ret) || is_over(ret->state))
        return false;
    if (read_text(proc, pid, "cgroup", text, sizeof text)) belonging_parse(text, &ret->whose);
    if (read_text(proc, pid, "status", text, sizeof text)) process_parse_status(text, ret);
    return true;
}

bool process_has_number(const char *proc, int32_t pid) {
    char path[64];
    snprintf(path, sizeof path, "%s/%d", proc, pid);
    return access(path, F_OK) == 0;
}

int64_t process_born_ns(const struct process *p) {
    long per_s = sysconf(_SC_CLK_TCK);
    return per_s > 0 ? (int64_t)(p->ticks / (uint64_t)per_s) * NS_PER_S +
                           (int64_t)(p->ticks % (uint64_t)per_s) * (NS_PER_S / per_s)
                     : 0;
}

bool process_is_there(const char *proc, int32_t pid, uint64_t ticks) {
    char text[1024];
    struct process p = {0};
    return read_text(proc, pid, "stat", text, sizeof text) && process_parse_stat(text, &p) && !is_over(p.state) &&
           p.ticks == ticks;
}

/* What stands behind its name: state, parent, group, session, terminal ... */
static const char *read_stat(int32_t pid, char *text, size_t room, uint64_t *ticks) {
    struct process p = {0};
    if (!read_text("/proc", pid, "stat", text, room) || !process_parse_stat(text, &p)) return NULL;
    *ticks = p.ticks;
    return strrchr(text, ')') + 1;
}

bool process_parent(int32_t pid, int32_t *parent, uint64_t *ticks) {
    char text[1024];
    const char *rest = read_stat(pid, text, sizeof text, ticks);
    return rest && sscanf(rest, " %*c %d", parent) == 1;
}

bool process_terminal(int32_t pid, uint64_t ticks, uint32_t *major, uint32_t *minor) {
    char text[1024];
    uint64_t is;
    int number;
    const char *rest = read_stat(pid, text, sizeof text, &is);
    if (!rest || is != ticks || sscanf(rest, " %*c %*d %*d %*d %d", &number) != 1 || !number) return false;
    uint32_t n = (uint32_t)number;
    *major = n >> 8 & 0xfff;
    *minor = (n & 0xff) | (n >> 12 & 0xfff00);
    return true;
}
