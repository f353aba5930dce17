#include "server/privilege.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Numbers that systemd sets aside for users that exist only while a service runs. */
#define UID_FIRST 61184u
#define UID_LAST 65519u

static bool is_spare(uid_t uid) { return uid >= UID_FIRST && uid <= UID_LAST; }

static bool is_taken(uid_t uid) {
    errno = 0;
    return getpwuid(uid) != NULL || getgrgid(uid) != NULL;
}

/* Not the same for two instances, most likely: what one server can reach the other should not. */
static uid_t spare_uid(const char *dir) {
    unsigned h = 2166136261u;
    for (; *dir; dir++) h = (h ^ (unsigned char)*dir) * 16777619u;
    for (unsigned n = 0; n <= UID_LAST - UID_FIRST; n++) {
        uid_t uid = UID_FIRST + (h + n) % (UID_LAST - UID_FIRST + 1);
        if (!is_taken(uid)) return uid;
    }
    return 0;
}

static int choose_user(struct privilege *p, const char *dir, const char *user, struct error *e) {
    struct stat st;
    errno = 0;
    const struct passwd *pw = getpwnam(user);
    if (pw && pw->pw_uid == 0)
        return fail(e, -EINVAL, "server.user: %s is root; the server runs as anybody but root", user);
    if (pw) {
        p->uid = pw->pw_uid;
        p->gid = pw->pw_gid;
        return 0;
    }
    if (errno && errno != ENOENT && errno != ESRCH)
        return fail_errno(e, errno, "server.user: %s cannot be looked up", user);
    p->is_nameless = true;
    bool had_one = lstat(p->state_dir, &st) == 0 && S_ISDIR(st.st_mode) && is_spare(st.st_uid) && !is_taken(st.st_uid);
    p->uid = had_one ? st.st_uid : spare_uid(dir);
    p->gid = p->uid;
    if (p->uid == 0)
        return fail(e, -ENOENT, "server.user: there is no user %s, and every number from %u to %u is taken", user,
                    UID_FIRST, UID_LAST);
    return 0;
}

/* A directory of the server's: opened, so that what is then changed is what was looked at. The one above belongs to the
 * instance's owner, and nobody else may write there. */
static int place_open(const char *path, mode_t mode, int *ret_fd, struct error *e) {
    if (mkdir(path, mode) < 0 && errno != EEXIST) return fail_errno(e, errno, "%s", path);
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0) return fail_errno(e, errno, "%s: is not a directory of ours", path);
    return 0;
}

static int own_place(const struct privilege *p, int fd, const char *path, mode_t mode, struct error *e) {
    struct stat st;
    if (fstat(fd, &st) < 0) return fail_errno(e, errno, "%s", path);
    if (st.st_uid != p->uid && !p->drops)
        return fail(e, -EPERM, "%s: belongs to uid %u, and this is uid %u", path, (unsigned)st.st_uid,
                    (unsigned)p->uid);
    if ((st.st_uid != p->uid || st.st_gid != p->gid) && p->drops && fchown(fd, p->uid, p->gid) < 0)
        return fail_errno(e, errno, "%s", path);
    if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0) return fail_errno(e, errno, "%s", path);
    return 0;
}

/* Files of a server that was another user: they follow. Only plain files with one name: another user could have made the
 * rest, and linked it to something that is not his. */
static int own_files(const struct privilege *p, int dir_fd, const char *path, struct error *e) {
    DIR *dir = fdopendir(dup(dir_fd));
    if (!dir) return fail_errno(e, errno, "%s", path);
    const struct dirent *d;
    int r = 0;
    while (r == 0 && (d = readdir(dir))) {
        struct stat st;
        AUTO(fd_done) int fd = openat(dir_fd, d->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) continue;
        if (st.st_uid == p->uid && st.st_gid == p->gid) continue;
        if (fchown(fd, p->uid, p->gid) < 0) r = fail_errno(e, errno, "%s/%s", path, d->d_name);
    }
    closedir(dir);
    return r;
}

int privilege_prepare(const struct instance *i, const char *user, struct privilege *ret, struct error *e) {
    struct privilege p = {.uid = geteuid(), .gid = getegid(), .owner = i->owner, .drops = geteuid() == 0};
    AUTO(fd_done) int state = -1;
    AUTO(fd_done) int sockets = -1;
    snprintf(p.state_dir, sizeof p.state_dir, "%s/server", i->dir);
    snprintf(p.socket_dir, sizeof p.socket_dir, "%s/server", i->run);
    int r = p.drops ? choose_user(&p, i->dir, user, e) : 0;
    if (r == 0) r = place_open(p.state_dir, 0700, &state, e);
    if (r == 0) r = place_open(p.socket_dir, 0755, &sockets, e);
    if (r == 0) r = own_place(&p, state, p.state_dir, 0700, e);
    if (r == 0) r = own_place(&p, sockets, p.socket_dir, 0755, e);
    if (r == 0 && p.drops) r = own_files(&p, state, p.state_dir, e);
    if (r < 0) return r;
    *ret = p;
    return 0;
}

static bool is_only(const struct privilege *p) {
    uid_t real, effective, saved;
    gid_t group, group_effective, group_saved;
    if (getresuid(&real, &effective, &saved) < 0 || getresgid(&group, &group_effective, &group_saved) < 0) return false;
    return real == p->uid && effective == p->uid && saved == p->uid && group == p->gid && group_effective == p->gid &&
           group_saved == p->gid && getgroups(0, NULL) == 0 && setuid(0) < 0;
}

int privilege_drop(const struct privilege *p, struct error *e) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_errno(e, errno, "no_new_privs");
    if (!p->drops) return 0;
    int orphan_signal = 0; /* the kernel forgets it with the uid; the supervisor's end is to end us still */
    pid_t parent = getppid();
    prctl(PR_GET_PDEATHSIG, &orphan_signal);
    if (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 || setresuid(p->uid, p->uid, p->uid) < 0)
        return fail_errno(e, errno, "cannot become uid %u", (unsigned)p->uid);
    if (!is_only(p)) return fail(e, -EPERM, "uid %u still has what root had; refusing to go on", (unsigned)p->uid);
    if (orphan_signal) prctl(PR_SET_PDEATHSIG, orphan_signal);
    if (orphan_signal && getppid() != parent) return fail(e, -ESRCH, "whoever started this is gone");
    return 0;
}
