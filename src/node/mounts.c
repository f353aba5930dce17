#include "node/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

static gid_t group_at(const struct seal_context *who, unsigned i) {
    const uint8_t *g = who->group + 4ul * i;
    return g[0] | (gid_t)g[1] << 8 | (gid_t)g[2] << 16 | (gid_t)g[3] << 24;
}

static bool is_below(const char *path, const char *roots) {
    char real[PATH_MAX], list[512], *rest;
    snprintf(list, sizeof list, "%s", roots);
    for (char *root = strtok_r(list, ",", &rest); root; root = strtok_r(NULL, ",", &rest)) {
        if (!realpath(root, real)) continue;
        size_t n = strlen(real);
        if (strcmp(real, "/") == 0 || (strncmp(path, real, n) == 0 && (path[n] == '/' || !path[n]))) return true;
    }
    return false;
}

/* In a child that has become the user: what he cannot open, his job does not get. EROFS: he may read it, not more. */
_Noreturn static void open_as_user(const struct seal_context *who, const char *source, bool is_readonly, int to) {
    gid_t groups[SEAL_GROUPS];
    for (unsigned i = 0; i < who->groups; i++) groups[i] = group_at(who, i);
    if (geteuid() == 0 && (setgroups(who->groups, groups) < 0 || setresgid(who->gid, who->gid, who->gid) < 0 ||
                           setresuid(who->uid, who->uid, who->uid) < 0)) {
        (void)!fd_send(to, -1, EPERM);
        _exit(1);
    }
    int fd = open(source, O_PATH | O_CLOEXEC), errnum = fd < 0 ? errno : 0;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
        errnum = errno;
    else if (fd >= 0 && !is_readonly && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
        errnum = EROFS;
    (void)!fd_send(to, errnum && errnum != EROFS ? -1 : fd, errnum);
    _exit(0);
}

/* What he opened is put into the run's directory, where only we may change anything: a path of his could lead somewhere else by
 * the time the engine looks. */
static int pin(const struct mounts *all, int fd, bool is_dir, struct mount_of *m, struct error *e) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (geteuid() != 0) { /* his own gpumgr: whom could he deceive? */
        ssize_t n = readlink(link, m->source, sizeof m->source - 1);
        m->source[n > 0 ? n : 0] = 0;
        return n > 0 ? 0 : fail_errno(e, errno, "mounts");
    }
    char place[PATH_MAX];
    snprintf(place, sizeof place, "%.4000s/mount.%u", all->dir, all->count);
    memcpy(m->source, place, sizeof m->source);
    int made = is_dir ? mkdir(m->source, 0700) : mknod(m->source, S_IFREG | 0600, 0);
    if (made < 0 && errno != EEXIST) return fail_errno(e, errno, "%s", m->source);
    if (mount(link, m->source, NULL, MS_BIND, NULL) < 0) return fail_errno(e, errno, "%s", m->source);
    return 0;
}

static int split_mount(const char *word, char *source, size_t room, struct mount_of *m, struct error *e) {
    size_t n = strcspn(word, ":");
    if (n >= room || word[n] != ':') return fail(e, -EINVAL, "mounts: %s is not SOURCE:TARGET[:ro]", word);
    snprintf(source, room, "%.*s", (int)n, word);
    size_t t = strcspn(word + n + 1, ":");
    snprintf(m->target, sizeof m->target, "%.*s", (int)t, word + n + 1);
    m->is_readonly = strcmp(word + n + 1 + t, ":ro") == 0;
    return 0;
}

/* The descriptor of what its user opened; a negative errno. *ret_is_his: he may do with it what the mount would let him. */
static int ask_user(const struct seal_context *who, const char *source, bool is_readonly, bool *ret_is_his,
                    struct error *e) {
    int pair[2], errnum = EAGAIN;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno(e, errno, "a socket");
    pid_t child = fork();
    if (child == 0) open_as_user(who, source, is_readonly, pair[1]);
    close(pair[1]);
    int fd = child > 0 ? fd_receive(pair[0], &errnum) : -1;
    close(pair[0]);
    if (child > 0) waitpid(child, NULL, 0);
    *ret_is_his = errnum == 0;
    return fd < 0 ? fail_errno(e, errnum, "mounts: %s", source) : fd;
}

static int take(struct mounts *all, const char *word, struct error *e) {
    char source[PATH_MAX], link[40], real[PATH_MAX];
    struct mount_of *m = &all->of[all->count];
    struct stat st;
    if (all->count == MOUNTS_MAX) return fail(e, -E2BIG, "mounts: more than %d", MOUNTS_MAX);
    int r = split_mount(word, source, sizeof source, m, e);
    if (r < 0) return r;
    bool is_his = false;
    AUTO(fd_done) int fd = ask_user(all->who, source, m->is_readonly, &is_his, e);
    if (fd < 0) return fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, real, sizeof real - 1);
    if (len <= 0 || fstat(fd, &st) < 0) return fail_errno(e, errno, "mounts: %s", source);
    real[len] = 0;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return fail(e, -EPERM, "mounts: %s is neither a directory nor a file", source);
    if (!is_below(real, all->roots))
        return fail(e, -EPERM, "mounts: %s is not below one of jobs.mount_roots (%s)", real, all->roots);
    if (!is_his) return fail(e, -EACCES, "mounts: %s: you may read it, but not write there; mount it with :ro", source);
    r = pin(all, fd, S_ISDIR(st.st_mode), m, e);
    if (r >= 0) all->count++;
    return r;
}

int mounts_take_all(struct mounts *m, const struct job_words *words, struct error *e) {
    int r = 0;
    for (const char *at = NULL; r >= 0 && (at = job_word_next(words, at));) r = take(m, at, e);
    return r;
}

/* ---- for the engine ---- */

void mounts_put(const struct mounts *m, struct buf *b) {
    json_key(b, "Mounts");
    json_open(b, '[');
    for (unsigned i = 0; i < m->count; i++) {
        json_open(b, '{');
        json_pair_str(b, "Type", "bind");
        json_pair_str(b, "Source", m->of[i].source);
        json_pair_str(b, "Target", m->of[i].target);
        json_pair_bool(b, "ReadOnly", m->of[i].is_readonly);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void mounts_put_groups(const struct seal_context *who, struct buf *b) {
    char text[16];
    json_key(b, "GroupAdd");
    json_open(b, '[');
    for (unsigned i = 0; i < who->groups; i++) {
        snprintf(text, sizeof text, "%u", group_at(who, i));
        json_str(b, text);
    }
    json_close(b, ']');
}

/* ---- later ---- */

bool mounts_is_root(const char *path) {
    struct statx st;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 &&
           (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

bool mounts_are_bound(const char *dir, unsigned count) {
    char path[PATH_MAX];
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%.4000s/mount.%u", dir, i);
        if (!mounts_is_root(path)) return false;
    }
    return true;
}

void mounts_let_go(const char *dir) {
    char path[PATH_MAX];
    for (unsigned i = 0; i < MOUNTS_MAX; i++) {
        snprintf(path, sizeof path, "%.4000s/mount.%u", dir, i);
        (void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
        if (rmdir(path) < 0 && errno == ENOTDIR) unlink(path);
    }
}
