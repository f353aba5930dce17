#include "model/belonging.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"

/* One part of a path, between two slashes. */
struct part {
    const char *s;
    size_t len;
};

static size_t hex_len(const char *s, size_t len) {
    size_t n = 0;
    while (n < len && ((s[n] >= '0' && s[n] <= '9') || (s[n] >= 'a' && s[n] <= 'f'))) n++;
    return n;
}

static bool starts(struct part p, const char *with) {
    return p.len >= strlen(with) && memcmp(p.s, with, strlen(with)) == 0;
}

static bool ends(struct part p, const char *with) {
    size_t n = strlen(with);
    return p.len >= n && memcmp(p.s + p.len - n, with, n) == 0;
}

static void copy(char *ret, size_t room, const char *s, size_t len) {
    snprintf(ret, room, "%.*s", (int)(len < room ? len : room - 1), s);
}

/* What runtimes put before a container's id, with systemd's ".scope" after it or without. conmon's own scopes, which carry
 * the id as well, are not the container. */
static const struct {
    const char *before;
    enum belonging_kind kind;
} runtimes[] = {
    {"docker-",         BELONGS_TO_DOCKER    },
    {"libpod-",         BELONGS_TO_PODMAN    },
    {"cri-containerd-", BELONGS_TO_CONTAINERD},
    {"nerdctl-",        BELONGS_TO_CONTAINERD},
    {"crio-",           BELONGS_TO_CRIO      },
    {"",                BELONGS_TO_NONE      }, /* cgroupfs: the bare id; who it is stands in the path before it */
};

static bool container_of(struct part p, const struct part *before, size_t depth, struct belonging *b) {
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        size_t skip = strlen(runtimes[i].before);
        if (!starts(p, runtimes[i].before) || hex_len(p.s + skip, p.len - skip) != BELONGING_ID_HEX) continue;
        struct part rest = {p.s + skip + BELONGING_ID_HEX, p.len - skip - BELONGING_ID_HEX};
        if (rest.len && !(rest.len == 6 && ends(rest, ".scope"))) continue;
        b->kind = runtimes[i].kind;
        copy(b->id, sizeof b->id, p.s + skip, BELONGING_ID_HEX);
        if (b->kind != BELONGS_TO_NONE) return true;
        b->kind = BELONGS_TO_DOCKER;
        for (size_t k = 0; k < depth; k++) {
            if (starts(before[k], "kubepods") || starts(before[k], "containerd")) b->kind = BELONGS_TO_CONTAINERD;
            if (starts(before[k], "crio")) b->kind = BELONGS_TO_CRIO;
            if (starts(before[k], "libpod")) b->kind = BELONGS_TO_PODMAN;
        }
        return true;
    }
    return false;
}

/* kubepods-burstable-pod<uid with _>.slice by systemd, pod<uid> below kubepods by cgroupfs. */
static void pod_of(struct part p, struct belonging *b) {
    const char *at = starts(p, "pod") ? p.s : starts(p, "kubepods") ? memmem(p.s, p.len, "-pod", 4) : NULL;
    if (!at) return;
    at += *at == '-' ? 4 : 3;
    size_t len = (size_t)(p.s + p.len - at);
    struct part rest = {at, len};
    if (ends(rest, ".slice")) len -= 6;
    if (len < 32 || len >= sizeof b->pod) return;
    for (size_t i = 0; i < len; i++)
        if (!hex_len(at + i, 1) && at[i] != '-' && at[i] != '_') return;
    copy(b->pod, sizeof b->pod, at, len);
    for (char *c = b->pod; *c; c++)
        if (*c == '_') *c = '-';
}

static bool number_after(struct part p, const char *before, const char *after, int64_t *ret) {
    size_t skip = strlen(before), tail = strlen(after);
    if (p.len <= skip + tail || p.len > skip + tail + 12 || !starts(p, before) || !ends(p, after)) return false;
    int64_t n = 0;
    for (size_t i = skip; i < p.len - tail; i++) {
        if (p.s[i] < '0' || p.s[i] > '9') return false;
        n = n * 10 + (p.s[i] - '0');
    }
    *ret = n;
    return true;
}

/* .../uid_1000/job_4711/step_0/task_0 (v1), .../slurmstepd.scope/job_4711/step_batch/user/task_0 (v2) */
static void slurm_of(struct part p, struct belonging *b) {
    int64_t n;
    if (number_after(p, "uid_", "", &n)) b->uid = n;
    if (number_after(p, "job_", "", &n)) b->slurm_job = n;
    if (b->slurm_job >= 0 && starts(p, "step_")) copy(b->slurm_step, sizeof b->slurm_step, p.s + 5, p.len - 5);
}

/* A deeper part says more than the one before it; a container more than a unit. */
static void claim(struct belonging *b, enum belonging_kind kind, const char *id, size_t len) {
    if (kind < b->kind || (kind == BELONGS_TO_SESSION && b->kind == BELONGS_TO_UNIT)) return;
    b->kind = kind;
    copy(b->id, sizeof b->id, id, len);
}

static void host_part(struct part p, struct belonging *b) {
    int64_t uid;
    if (number_after(p, "user-", ".slice", &uid))
        b->uid = uid;
    else if (starts(p, "lxc.payload."))
        claim(b, BELONGS_TO_LXC, p.s + 12, p.len - 12);
    else if (starts(p, "session-") && ends(p, ".scope"))
        claim(b, BELONGS_TO_SESSION, p.s + 8, p.len - 14);
    else if (starts(p, "user@") && ends(p, ".service"))
        return; /* the user's own manager: what lies below it counts */
    else if (ends(p, ".service") || ends(p, ".scope"))
        claim(b, BELONGS_TO_UNIT, p.s, p.len);
}

#define DEPTH_MAX 32

static void path_parse(const char *path, size_t len, struct belonging *b) {
    struct part parts[DEPTH_MAX];
    size_t depth = 0;
    for (size_t i = 0; i < len && depth < DEPTH_MAX;) {
        size_t n = 0;
        while (i + n < len && path[i + n] != '/') n++;
        if (n) parts[depth++] = (struct part){path + i, n};
        i += n + 1;
    }
    for (size_t i = 0; i < depth; i++) {
        struct belonging found = {0};
        pod_of(parts[i], b);
        slurm_of(parts[i], b);
        if (i > 0 && parts[i - 1].len == 3 && starts(parts[i - 1], "lxc"))
            claim(b, BELONGS_TO_LXC, parts[i].s, parts[i].len);
        if (container_of(parts[i], parts, i, &found))
            claim(b, found.kind, found.id, BELONGING_ID_HEX);
        else
            host_part(parts[i], b);
    }
}

void belonging_parse(const char *cgroup, struct belonging *ret) {
    *ret = (struct belonging){.uid = -1, .slurm_job = -1};
    while (*cgroup) {
        size_t len = strcspn(cgroup, "\n");
        const char *first = memchr(cgroup, ':', len);
        const char *second = first ? memchr(first + 1, ':', (size_t)(cgroup + len - first - 1)) : NULL;
        if (second) path_parse(second + 1, (size_t)(cgroup + len - second - 1), ret);
        cgroup += len + (cgroup[len] == '\n');
    }
    if (ret->slurm_job < 0 || ret->kind > BELONGS_TO_SLURM) return;
    ret->kind = BELONGS_TO_SLURM;
    snprintf(ret->id, sizeof ret->id, "%lld%s%s", (long long)ret->slurm_job, *ret->slurm_step ? "." : "",
             ret->slurm_step);
}

const char *belonging_kind_name(enum belonging_kind kind) {
    static const char *const names[BELONGING_KINDS] = {"none",       "session", "unit",   "lxc",    "slurm",
                                                       "containerd", "crio",    "podman", "docker", "job"};
    return (unsigned)kind < BELONGING_KINDS ? names[kind] : "none";
}
