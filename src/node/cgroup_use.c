#include "node/cgroup_use.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

#define FILE_MAX (64u << 10)

/* ---- parsers ---- */

static bool has_word(const char *list, size_t len, const char *word) {
    size_t n = strlen(word);
    if (!n) return !len;
    for (size_t at = 0; at < len;) {
        size_t one = strcspn(list + at, ",:");
        if (one == n && memcmp(list + at, word, n) == 0) return true;
        at += one + 1;
    }
    return false;
}

bool cgroup_path(const char *text, const char *controller, const char *id, char *ret, size_t room) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *path = list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;
        if (!path || !has_word(list + 1, (size_t)(path - list - 1), controller)) continue;
        size_t n = len - (size_t)(path + 1 - line);
        if (n >= room) continue;
        memcpy(ret, path + 1, n);
        ret[n] = 0;
        if (ret[0] == '/' && *id && strstr(ret, id) && !strstr(ret, "/..")) return true;
    }
    return false;
}

double cgroup_cpu_stat(const char *text) {
    const char *at = strstr(text, "usage_usec ");
    return at && (at == text || at[-1] == '\n') ? (double)strtoull(at + strlen("usage_usec "), NULL, 10) * 1e-6 : NAN;
}

/* The numbers behind a word, added up: one for each disk. */
static uint64_t sum_behind(const char *text, const char *word) {
    uint64_t sum = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        sum += strtoull(at + strlen(word), NULL, 10);
    return sum;
}

/* "8:0 rbytes=1024 wbytes=0 rios=..."; nothing at all before the first byte. */
void cgroup_io_stat(const char *text, struct cgroup_use *ret) {
    ret->read_bytes = sum_behind(text, " rbytes=");
    ret->written_bytes = sum_behind(text, " wbytes=");
}

/* "8:0 Read 1024", "8:0 Write 0", ..., "Total 1024". */
void cgroup_blkio_bytes(const char *text, struct cgroup_use *ret) {
    ret->read_bytes = sum_behind(text, " Read ");
    ret->written_bytes = sum_behind(text, " Write ");
}

/* ---- files ---- */

static bool read_of(const char *mount, const char *path, const char *name, struct buf *to) {
    char file[1024];
    struct error ignored;
    int n = snprintf(file, sizeof file, "/sys/fs/cgroup%s%s/%s", mount, path, name);
    buf_clear(to);
    return n > 0 && (size_t)n < sizeof file && file_read(file, FILE_MAX, to, &ignored) >= 0 && to->s;
}

static void read_unified(const char *path, struct buf *text, struct cgroup_use *ret) {
    static const char *const mounts[] = {"", "/unified"};
    for (int i = 0; i < 2; i++) {
        if (isnan(ret->cpu_s) && read_of(mounts[i], path, "cpu.stat", text)) ret->cpu_s = cgroup_cpu_stat(text->s);
        if (ret->read_bytes == UINT64_MAX && read_of(mounts[i], path, "io.stat", text)) cgroup_io_stat(text->s, ret);
    }
}

void cgroup_use(pid_t pid, const char *id, struct cgroup_use *ret) {
    AUTO(buf_done) struct buf of = {0}, text = {0};
    struct error ignored;
    char file[64], path[768];
    *ret = (struct cgroup_use){NAN, UINT64_MAX, UINT64_MAX};
    snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
    if (file_read(file, FILE_MAX, &of, &ignored) < 0 || !of.s) return;
    if (cgroup_path(of.s, "cpuacct", id, path, sizeof path) && read_of("/cpuacct", path, "cpuacct.usage", &text))
        ret->cpu_s = (double)strtoull(text.s, NULL, 10) * 1e-9;
    if (cgroup_path(of.s, "blkio", id, path, sizeof path) &&
        read_of("/blkio", path, "blkio.throttle.io_service_bytes_recursive", &text))
        cgroup_blkio_bytes(text.s, ret);
    if (cgroup_path(of.s, "", id, path, sizeof path)) read_unified(path, &text, ret);
}
