#include "node/account.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "model/wire_code.h"

#define FILE_MAX (1u << 20)
#define ENTRY_BYTES 16384
#define USERS_PATH 512
#define NAMES_KEPT 64u
#define NAME_NS (60 * NS_PER_S)

/* A user database may be far away: a name is asked for once a minute. */
void account_name(uint32_t uid, char *ret, size_t room) {
    static struct {
        int64_t until_ns;
        uint32_t uid;
        char name[64];
    } known[NAMES_KEPT];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of known; not held while the database is asked */
    char text[ENTRY_BYTES], name[sizeof known[0].name] = "";
    struct passwd entry, *found = NULL;
    unsigned at = uid % NAMES_KEPT;
    int64_t now_ns = clock_boot_ns();
    pthread_mutex_lock(&lock);
    if (known[at].uid == uid && now_ns < known[at].until_ns) memcpy(name, known[at].name, sizeof name);
    pthread_mutex_unlock(&lock);
    if (!*name) {
        if (getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 && found)
            snprintf(name, sizeof name, "%s", entry.pw_name);
        else
            snprintf(name, sizeof name, "%u", uid);
        pthread_mutex_lock(&lock);
        known[at].uid = uid;
        known[at].until_ns = now_ns + NAME_NS;
        memcpy(known[at].name, name, sizeof name);
        pthread_mutex_unlock(&lock);
    }
    snprintf(ret, room, "%s", name);
}

static int user_entry(const char *name, struct passwd *entry, char *text, size_t room, struct error *e) {
    struct passwd *found = NULL;
    int r = getpwnam_r(name, entry, text, room, &found);
    if (r) return fail_errno(e, r, "user %s", name);
    return found ? 0 : fail(e, -ENOENT, "there is no user %s on this machine", name);
}

/* The line "ACCOUNT USER" for this account; "" where there is none. */
static void look_up(char *text, const char *account, char *ret, size_t room) {
    ret[0] = 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *more, *name = strtok_r(line, " \t\r", &more), *user = name ? strtok_r(NULL, " \t\r", &more) : NULL;
        if (user && name[0] != '#' && strcmp(name, account) == 0) snprintf(ret, room, "%s", user);
    }
}

/* Whoever may write it may run jobs as anybody: it must be ours or root's alone. */
static int read_file(const char *path, const char *account, char *ret, size_t room, struct error *e) {
    struct stat st;
    AUTO(buf_done) struct buf text = {0};
    ret[0] = 0;
    if (stat(path, &st) < 0) return errno == ENOENT ? 0 : fail_errno(e, errno, "%s", path);
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022))
        return fail(e, -EPERM, "%s: must be root's, and nobody else may write it; it is not used", path);
    int r = file_read(path, FILE_MAX, &text, e);
    if (r < 0) return r;
    look_up(text.s, account, ret, room);
    return 0;
}

/* Not root: whatever runs, runs as us. */
static int only_owner(const char *user, struct error *e) {
    char owner[64];
    account_name(geteuid(), owner, sizeof owner);
    if (strcmp(user, owner) == 0) return 0;
    return fail(e, -EPERM, "gpumgr is not root here: it runs jobs as %s, and cannot run one as %s", owner, user);
}

/* Whom settings and file name for it; "": nobody. path gets the file's. */
static int map_account(const struct settings *s, const char *dir, const char *account, char path[static USERS_PATH],
                       char *ret, size_t room, struct error *e) {
    if (*s->jobs_users_file)
        snprintf(path, USERS_PATH, "%s", s->jobs_users_file);
    else
        snprintf(path, USERS_PATH, "%s/users", dir);
    int r = read_file(path, account, ret, room, e);
    if (r >= 0 && !*ret) snprintf(ret, room, "%s", s->jobs_run_as);
    return r;
}

int account_check(const struct settings *s, const char *dir, const char *account, const char *user, struct error *e) {
    char file[USERS_PATH], now[64];
    if (!*account || geteuid() != 0) return 0;
    int r = map_account(s, dir, account, file, now, sizeof now, e);
    if (r < 0 || strcmp(now, user) == 0) return r;
    return fail(e, -EPERM, "account %s no longer stands for the Unix user %s (%s): hand it in again", account, user,
                file);
}

int account_find(const struct settings *s, const char *dir, const char *account, bool is_admin, char *ret, size_t room,
                 struct error *e) {
    char file[USERS_PATH], text[ENTRY_BYTES];
    struct passwd entry;
    int r = map_account(s, dir, account, file, ret, room, e);
    if (r < 0) return r;
    if (!*ret && geteuid() != 0 && is_admin) account_name(geteuid(), ret, room);
    if (!*ret)
        return fail(e, -EPERM, "no Unix user is set for account %s: add a line \"%s USER\" to %s, or set jobs.run_as",
                    account, account, file);
    r = user_entry(ret, &entry, text, sizeof text, e);
    if (r < 0) return fail_in(e, r, "account %s", account);
    if (geteuid() != 0) return only_owner(ret, e);
    if (entry.pw_uid == 0)
        return fail(e, -EPERM, "account %s: jobs of the web and the API never run as root; set another user", account);
    return 0;
}

int account_login(const char *user, const char *account, struct buf *keep, struct seal_context *ret, struct error *e) {
    gid_t groups[SEAL_GROUPS];
    char entry_text[ENTRY_BYTES];
    struct passwd entry;
    int count = SEAL_GROUPS;
    int r = user_entry(user, &entry, entry_text, sizeof entry_text, e);
    if (r < 0) return r;
    if (geteuid() == 0 && getgrouplist(user, entry.pw_gid, groups, &count) < 0) count = SEAL_GROUPS;
    if (geteuid() != 0) count = 0;
    AUTO(buf_done) struct buf env = {0};
    /* As a login does: a user of services has a home that does not exist. */
    const char *home = access(entry.pw_dir, F_OK) == 0 ? entry.pw_dir : "/",
               *shell = *entry.pw_shell ? entry.pw_shell : "/bin/sh";
    const char *pairs[][2] = {
        {"HOME",    home                          },
        {"USER",    user                          },
        {"LOGNAME", user                          },
        {"SHELL",   shell                         },
        {"PATH",    "/usr/local/bin:/usr/bin:/bin"},
        {"LANG",    "C.UTF-8"                     },
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        buf_printf(&env, "%s=%s", pairs[i][0], pairs[i][1]);
        buf_add(&env, "", 1);
    }
    buf_clear(keep);
    buf_reserve(keep, env.len + 4ul * (size_t)count + strlen(home) + strlen(user) + strlen(account) + 64);
    struct seal_context c = {.uid = entry.pw_uid, .gid = entry.pw_gid, .umask = 022, .groups = (unsigned)count};
    c.group = (const uint8_t *)keep->s + keep->len;
    for (int i = 0; i < count; i++) out_u32(keep, groups[i]);
    c.environment = (struct job_words){keep->s + keep->len, env.len, ARRAY_LEN(pairs)};
    buf_add(keep, env.s, env.len);
    c.cwd = keep->s + keep->len;
    buf_add(keep, home, strlen(home) + 1);
    c.user = keep->s + keep->len;
    buf_add(keep, user, strlen(user) + 1);
    c.origin = keep->s + keep->len;
    buf_printf(keep, SEAL_ACCOUNT "%s", account);
    *ret = c;
    return 0;
}
