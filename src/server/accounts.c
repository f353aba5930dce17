#include "server/accounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/server.h"
#include "server/signin.h"

/* ---- shared ---- */

int64_t accounts_now_s(void) { return clock_real_ns() / NS_PER_S; }

int accounts_may_make(const struct caller *who, struct error *e) {
    if (who->means != BY_TOKEN || who->role == ROLE_ADMIN) return 0;
    return fail(e, -EACCES,
                "a program's token cannot make links, tokens or passwords; sign in, or call `gpumgr token`");
}

static int own_account(struct sql *db, int64_t id, struct account *ret, struct error *e) {
    int r = store_account(db, id, ret, e);
    if (r == 0 && ret->is_disabled) return fail(e, -EACCES, "the account %s is disabled", ret->name);
    return r;
}

int accounts_own(struct sql *db, const struct caller *who, uid_t owner, int64_t now_s, struct account *ret,
                 struct error *e) {
    if (who->means != BY_PEER) return own_account(db, who->user, ret, e);
    bool is_master = who->uid == 0 || who->uid == owner;
    /* Whoever has a range of numbers for his containers could else make thousands. */
    if (!who->is_named && !is_master)
        return fail(e, -EACCES, "uid %u is no user of this machine, so it gets no account", (unsigned)who->uid);
    int r = store_unix_account(db, who->unix_name, who->uid, is_master ? ROLE_ADMIN : ROLE_MEMBER, now_s, ret, e);
    if (r < 0 || !is_master || (ret->role == ROLE_ADMIN && !ret->is_disabled)) return r;
    ret->role = ROLE_ADMIN; /* whatever was done to the account: root and the owner can do everything anyway */
    ret->is_disabled = false;
    return store_put_account(db, ret, e);
}

int accounts_submit(struct call *c, state_work_fn work, state_done_fn done, void *job, struct error *e) {
    int r = state_submit(auth_state(c->server->auth), work, done, job, e);
    if (r == 0) return CALL_LATER;
    free(job);
    return r;
}

int accounts_id(const char *what, const char *text, int64_t *ret, struct error *e) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18 || text[n]) return fail(e, -ENOENT, "there is no %s %.40s", what, text);
    *ret = strtoll(text, NULL, 10);
    return 0;
}

void accounts_put_time(struct buf *b, const char *key, int64_t time_s) {
    json_key(b, key);
    if (time_s)
        json_int(b, time_s);
    else
        json_nil(b);
}

int accounts_limit(struct call *c, const struct limit_policy *p, uint64_t key, struct error *e) {
    int64_t wait_ms = limit_try(auth_limit(c->server->auth), p, key, clock_boot_ns() / NS_PER_MS);
    if (wait_ms == 0) return 0;
    long long wait_s = (long long)(wait_ms + 999) / 1000;
    http_add_field(c->request, "Retry-After", "%lld", wait_s);
    return fail(e, -EAGAIN, "too many tries; wait %lld s", wait_s);
}

/* ---- who is signed in ---- */

int accounts_session(struct call *c, struct error *e) {
    const struct caller *who = &c->who;
    const struct account *account = who->user ? auth_account(c->server->auth, who->user) : NULL;
    json_open(&c->out, '{');
    json_key(&c->out, "user");
    if (who->role == ROLE_NOBODY) {
        json_nil(&c->out);
    } else {
        json_open(&c->out, '{');
        json_pair_str(&c->out, "name", who->name);
        json_pair_str(&c->out, "role", auth_role_name(who->role));
        json_pair_bool(&c->out, "unix", who->means == BY_PEER || (account && account->uid >= 0));
        json_pair_bool(&c->out, "has_password", account && *account->password);
        json_close(&c->out, '}');
    }
    json_key(&c->out, "csrf");
    if (*who->csrf)
        json_str(&c->out, who->csrf);
    else
        json_nil(&c->out);
    json_pair_str(&c->out, "version", GPUMGR_VERSION);
    json_pair_str(&c->out, "host", c->server->host);
    json_close(&c->out, '}');
    return 0;
}

/* ---- signing in ---- */

const struct route_field accounts_sign_in_body[] = {
    {"link",      FIELD_TEXT, false, "The secret of a one-time link: what stands after the #"},
    {"user",      FIELD_TEXT, false, "Or an account's name"},
    {"password",           FIELD_TEXT, false, "and its password, if it has one"},
    {NULL}
};

struct sign_in {
    struct call *call;
    char secret[SECRETS_TEXT], kept[SECRETS_PASSWORD], password[RULES_PASSWORD_MAX + 1];
    uint8_t link[SECRETS_HASH];
    bool by_link, fits;
    uint64_t address_key, account_key;
    struct session session;
    struct account account;
    int64_t ended, replaced, now_s;
};

static void sign_in_free(struct sign_in *s) {
    secrets_forget(s, sizeof *s);
    free(s);
}

static int write_sign_in(struct sql *db, void *ctx, struct error *e) {
    struct sign_in *s = ctx;
    int r = s->by_link ? store_use_link(db, s->link, s->now_s, &s->account, e)
                       : own_account(db, s->account.id, &s->account, e);
    if (r < 0) return r;
    s->session.user = s->account.id;
    if (s->replaced) {
        r = store_drop_session(db, s->replaced, e);
        if (r < 0 && r != -ENOENT) return r;
    }
    return store_add_session(db, &s->session, &s->ended, e);
}

static void refuse_sign_in(struct call *c, const char *sentence) {
    struct error e;
    call_end(c, fail(&e, -ENOKEY, "%s", sentence), &e);
}

static void set_cookie(struct call *c, const char *value, int64_t age_s) {
    const char *base = c->server->base_path;
    char name[RULES_COOKIE_NAME];
    if (!c->request) return;
    rules_cookie_name(c->is_tls, base, http_field(&c->request->head, "host"), name);
    http_add_field(c->request, "Set-Cookie", "%s=%s; Path=%s; Max-Age=%lld; HttpOnly; SameSite=Strict%s", name, value,
                   base, (long long)age_s, c->is_tls ? "; Secure" : "");
}

/* Nobody can guess a link, so a right one need not wait for those who try; a wrong one counts as a try. */
static void refuse_link(struct sign_in *s, const struct error *e) {
    struct error limited;
    struct call *c = s->call;
    int r = c->request ? accounts_limit(c, limit_policy_of(c->address), s->address_key, &limited) : 0;
    if (r < 0)
        call_end(c, r, &limited);
    else
        refuse_sign_in(c, e->text);
}

static void sign_in_written(void *ctx, int result, const struct error *e) {
    struct sign_in *s = ctx;
    struct call *c = s->call;
    struct auth *a = c->server->auth;
    if (result == -ENOENT && s->by_link) {
        refuse_link(s, e);
    } else if (result == -ENOENT || result == -EACCES) {
        refuse_sign_in(c, "the user or the password is wrong");
    } else if (result < 0) {
        call_end(c, result, e);
    } else {
        if (s->ended) auth_drop_session(a, s->ended);
        if (s->replaced) auth_drop_session(a, s->replaced);
        auth_put_session(a, &s->session);
        limit_good(auth_limit(a), s->address_key);
        if (s->account_key) limit_good(auth_limit(a), s->account_key);
        if (s->by_link) signin_used(c->server);
        set_cookie(c, s->secret, AUTH_SESSION_IDLE_S);
        snprintf(c->who.name, sizeof c->who.name, "%s", s->account.name); /* for the audit log */
        call_end(c, 204, NULL);
    }
    sign_in_free(s);
}

static void check_password(void *ctx) {
    struct sign_in *s = ctx;
    s->fits = secrets_password_fits(s->kept, s->password) && s->account.id;
    secrets_forget(s->password, sizeof s->password);
}

static void password_checked(void *ctx) {
    struct sign_in *s = ctx;
    struct error e;
    const struct account *now = s->fits ? auth_account(s->call->server->auth, s->account.id) : NULL;
    /* the account may have changed while we were hashing */
    if (!now || now->is_disabled || strcmp(now->password, s->kept) != 0) {
        refuse_sign_in(s->call, "the user or the password is wrong");
        sign_in_free(s);
        return;
    }
    int r = state_submit(auth_state(s->call->server->auth), write_sign_in, sign_in_written, s, &e);
    if (r == 0) return;
    call_end(s->call, r, &e);
    sign_in_free(s);
}

/* An account that there is not costs the same time: its hash is one that no password fits. */
static void take_account(struct sign_in *s, const struct auth *a, const char *name) {
    const struct account *account = auth_account_named(a, name);
    bool may = account && !account->is_disabled && *account->password;
    s->account = may ? *account : (struct account){0};
    snprintf(s->kept, sizeof s->kept, "%s", may ? account->password : secrets_no_password());
}

static int begin_password(struct sign_in *s, struct error *e) {
    struct call *c = s->call;
    struct auth *a = c->server->auth;
    const char *user = call_field(c, "user"), *password = call_field(c, "password");
    if (!user || !password) return fail(e, -EINVAL, "a link is needed, or a user and a password");
    if (strlen(user) >= RULES_NAME || strlen(password) > RULES_PASSWORD_MAX)
        return fail(e, -EINVAL, "the user or the password is too long");
    s->account_key = limit_key_account(auth_limit(a), user);
    int r = accounts_limit(c, &limit_of_account, s->account_key, e);
    if (r < 0) return r;
    take_account(s, a, user);
    snprintf(s->password, sizeof s->password, "%s", password);
    return work_submit(auth_work(a), check_password, password_checked, s, e);
}

static int begin_link(struct sign_in *s, const char *link, struct error *e) {
    s->by_link = true;
    secrets_hash("link", link, s->link);
    return state_submit(auth_state(s->call->server->auth), write_sign_in, sign_in_written, s, e);
}

/* What is remembered of a browser, for the list of sessions. */
static void describe(struct session *session, const struct call *c) {
    const char *agent = http_field(&c->request->head, "user-agent");
    snprintf(session->address, sizeof session->address, "%s", c->address);
    snprintf(session->agent, sizeof session->agent, "%s", agent ? agent : "");
}

int accounts_sign_in(struct call *c, struct error *e) {
    const char *link = call_field(c, "link");
    if (link && (call_field(c, "user") || call_field(c, "password")))
        return fail(e, -EINVAL, "give a link, or a user and a password, not both");
    uint64_t key = limit_key_address(auth_limit(c->server->auth), c->address);
    int r = link ? 0 : accounts_limit(c, limit_policy_of(c->address), key, e);
    if (r < 0) return r;
    struct sign_in *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->call = c;
    s->address_key = key;
    s->now_s = s->session.created = s->session.seen = accounts_now_s();
    s->replaced = c->who.means == BY_SESSION ? c->who.id : 0;
    describe(&s->session, c);
    secrets_make(s->secret);
    secrets_hash("session", s->secret, s->session.hash);
    r = link ? begin_link(s, link, e) : begin_password(s, e);
    if (r == 0) return CALL_LATER;
    sign_in_free(s);
    return r;
}

/* ---- signing out ---- */

struct sign_out {
    struct call *call;
    int64_t id;
};

static int write_sign_out(struct sql *db, void *ctx, struct error *e) {
    const struct sign_out *s = ctx;
    int r = store_drop_session(db, s->id, e);
    return r == -ENOENT ? 0 : r;
}

static void signed_out(void *ctx, int result, const struct error *e) {
    struct sign_out *s = ctx;
    if (result >= 0) {
        auth_drop_session(s->call->server->auth, s->id);
        set_cookie(s->call, "", 0);
    }
    call_end(s->call, result < 0 ? result : 204, e);
    free(s);
}

int accounts_sign_out(struct call *c, struct error *e) {
    if (c->who.means != BY_SESSION) return fail(e, -EINVAL, "there is no session here to end");
    struct sign_out *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct sign_out){.call = c, .id = c->who.id};
    return accounts_submit(c, write_sign_out, signed_out, s, e);
}

/* ---- links ---- */

const struct route_field accounts_link_body[] = {
    {"user", FIELD_TEXT, false, "Whose link; only administrators may name another than themselves"},
    {NULL}
};

struct link {
    struct call *call;
    struct caller who;
    uid_t owner;
    char secret[SECRETS_TEXT], user[RULES_NAME]; /* user "": the caller himself */
    int64_t now_s, expires;
    struct account account;
};

static int write_link(struct sql *db, void *ctx, struct error *e) {
    struct link *l = ctx;
    uint8_t hash[SECRETS_HASH];
    int r = *l->user ? store_find_account(db, l->user, &l->account, e)
                     : accounts_own(db, &l->who, l->owner, l->now_s, &l->account, e);
    if (r < 0) return r;
    if (l->account.is_disabled) return fail(e, -EACCES, "the account %s is disabled", l->account.name);
    secrets_hash("link", l->secret, hash);
    return store_add_link(db, l->account.id, hash, l->now_s, l->expires, false, e);
}

static void link_written(void *ctx, int result, const struct error *e) {
    struct link *l = ctx;
    struct buf *b = &l->call->out;
    if (result >= 0) {
        AUTO(buf_done) struct buf url = {0};
        signin_urls(l->call->server, l->secret, &url);
        url.s[strcspn(url.s, "\n")] = 0;
        auth_put_account(l->call->server->auth, &l->account);
        json_open(b, '{');
        json_pair_str(b, "user", l->account.name);
        json_pair_str(b, "role", auth_role_name(l->account.role));
        json_key(b, "url_path");
        char path[300];
        snprintf(path, sizeof path, "%ssignin#%s", l->call->server->base_path, l->secret);
        json_str(b, path);
        json_pair_str(b, "url", url.s);
        json_pair_int(b, "expires", l->expires);
        json_close(b, '}');
        secrets_forget(path, sizeof path);
    }
    call_end(l->call, result < 0 ? result : 201, e);
    secrets_forget(l, sizeof *l);
    free(l);
}

int accounts_link(struct call *c, struct error *e) {
    const char *user = call_field(c, "user");
    bool is_other = user && strcmp(user, c->who.name) != 0;
    if (is_other && c->who.role != ROLE_ADMIN)
        return fail(e, -EACCES, "only an administrator may make a link for somebody else");
    int r = accounts_may_make(&c->who, e);
    if (r == 0 && is_other) r = rules_check_name("user", user, e);
    if (r < 0) return r;
    struct link *l = calloc(1, sizeof *l);
    if (!l) abort();
    l->call = c;
    l->who = c->who;
    l->owner = auth_setup(c->server->auth)->owner;
    l->now_s = accounts_now_s();
    l->expires = l->now_s + AUTH_LINK_S;
    if (is_other) snprintf(l->user, sizeof l->user, "%s", user);
    secrets_make(l->secret);
    return accounts_submit(c, write_link, link_written, l, e);
}
