/* Who asks, and what he may. Root and whoever may use the engine's socket could do everything anyway; whose container it is may
 * do everything with it; an administrator may start, stop, remove and read logs, but not run anything as somebody else. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/wire_code.h"
#include "node/account.h"
#include "node/control_own.h"

void control_who_done(struct control_who *w) {
    buf_done(&w->keep);
    buf_done(&w->groups);
}

static bool uses_engine(const char *socket, const struct seal_context *who) {
    struct stat st;
    if (who->uid == 0) return true;
    if (stat(socket, &st) < 0) return false;
    if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IWUSR) && st.st_uid == who->uid)) return true;
    bool is_in = st.st_gid == who->gid;
    for (unsigned i = 0; i < who->groups; i++) {
        const uint8_t *g = who->group + 4ul * i;
        is_in |= st.st_gid == (g[0] | (gid_t)g[1] << 8 | (gid_t)g[2] << 16 | (gid_t)g[3] << 24);
    }
    return is_in && (st.st_mode & S_IWGRP);
}

int control_who_account(struct control *c, struct error *e) {
    struct control_who *w = &c->who;
    char user[64];
    if (!c->call.account[0])
        return fail(e, -EPERM, "no account is named: use `gpumgr containers` on the machine itself, or sign in");
    int r = account_find(&c->settings, c->where->dir, c->call.account, c->call.is_admin, user, sizeof user, e);
    if (r >= 0) r = account_login(user, c->call.account, &w->keep, &w->login, e);
    if (r < 0) return r;
    snprintf(w->account, sizeof w->account, "%s", c->call.account);
    w->is_admin = c->call.is_admin;
    w->uses_engine = uses_engine(c->socket, &w->login);
    return 0;
}

/* A number without a name has no groups but the one that is known of it. */
static void login_of_number(struct control_who *w, uint32_t uid, uint32_t gid) {
    static const uint8_t none[4];
    w->login = (struct seal_context){
        .uid = uid, .gid = gid, .umask = 022, .group = none, .user = "", .cwd = "/", .origin = "socket"};
}

void control_login(uint32_t uid, uint32_t gid, struct control_who *ret) {
    struct error ignored;
    char user[64];
    account_name(uid, user, sizeof user);
    if (account_login(user, "", &ret->keep, &ret->login, &ignored) < 0 || ret->login.uid != uid)
        login_of_number(ret, uid, gid);
}

/* His groups are the kernel's word, too: they may be others than a login of his would find. */
void control_who_local(struct control *c, int fd, uint32_t uid, uint32_t gid) {
    struct control_who *w = &c->who;
    gid_t groups[SEAL_GROUPS];
    socklen_t n = sizeof groups;
    control_login(uid, gid, w);
    w->login.gid = gid;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) == 0) {
        buf_clear(&w->groups);
        buf_puts(&w->groups, "");
        for (size_t i = 0; i < n / sizeof groups[0]; i++) out_u32(&w->groups, groups[i]);
        w->login.groups = (unsigned)(n / sizeof groups[0]);
        w->login.group = (const uint8_t *)w->groups.s;
    }
    w->uses_engine = uses_engine(c->socket, &w->login);
}

/* ---- what he may ---- */

/* Accounts that share one Unix user are told apart by their names; whoever sits at the machine as that user is him. */
static bool is_his(const struct control_who *w, const struct control_seen *s) {
    bool is_same = !w->account[0] || !s->account[0] || strcmp(w->account, s->account) == 0;
    return s->is_ours && s->uid == w->login.uid && is_same;
}

bool control_may_enter(const struct control_who *w, const struct control_seen *s) {
    return w->uses_engine || is_his(w, s);
}

static int refuse(const struct control_who *w, const struct control_seen *s, enum container_verb v, struct error *e) {
    char user[64];
    if (!s->is_ours)
        return fail(e, -EPERM, "container %s was started through the engine itself: %s is for those who may use it",
                    s->name, container_verb_name(v));
    account_name(s->uid, user, sizeof user);
    return fail(e, -EPERM, "container %s is %s's: %s is not for %s", s->name, s->account[0] ? s->account : user,
                container_verb_name(v),
                w->account[0]      ? w->account
                : w->login.user[0] ? w->login.user
                                   : "you");
}

bool control_is_for_admins(enum container_verb v) {
    return v == CONTAINER_VERB_START || v == CONTAINER_VERB_STOP || v == CONTAINER_VERB_RESTART ||
           v == CONTAINER_VERB_REMOVE || v == CONTAINER_VERB_LOG;
}

int control_may(const struct control_who *w, const struct control_seen *s, enum container_verb v, struct error *e) {
    if (!s->is_gpu && !s->is_ours)
        return fail(e, -EPERM, "container %s has nothing to do with GPUs: gpumgr leaves it alone", s->name);
    if (s->run[0] && v != CONTAINER_VERB_LOG)
        return fail(e, -EBUSY, "container %s is that of job %.*s: `gpumgr cancel %.*s` ends it", s->name,
                    (int)strcspn(s->run, "."), s->run, (int)strcspn(s->run, "."), s->run);
    if (control_may_enter(w, s) || (w->is_admin && control_is_for_admins(v))) return 0;
    return refuse(w, s, v, e);
}
