/* Accounts, for administrators; a password also for whoever it belongs to; and the audit log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/accounts.h"
#include "server/audit.h"
#include "server/server.h"

#define UID_MAX_EVER 4294967294.0

const struct route_field accounts_user_body[] = {
    {"role",      FIELD_TEXT, false, "member or admin"},
    {"disabled",      FIELD_BOOL, false, "true: nobody can sign in with it; its sessions end"},
    {"uid",           FIELD_NUMBER, false, "The Unix user of this machine whose account it is"},
    {NULL}
};
const struct route_field accounts_password_body[] = {
    {"password", FIELD_TEXT, true, "The new one, of 8 to 256 bytes; empty: none, links only"},
    {"current",      FIELD_TEXT, false, "The one before, when it is one's own"},
    {NULL         }
};
const struct route_field accounts_audit_query[] = {
    {"before", FIELD_NUMBER, false, "Lines older than this id: `next` of the reply before"},
    {"limit",   FIELD_NUMBER, false, "How many, up to 1000 (100)"},
    {NULL       }
};

static void put_account(struct buf *b, const struct account *a) {
    json_open(b, '{');
    json_pair_str(b, "name", a->name);
    json_pair_str(b, "role", auth_role_name(a->role));
    json_key(b, "uid");
    if (a->uid < 0)
        json_nil(b);
    else
        json_int(b, a->uid);
    json_pair_bool(b, "disabled", a->is_disabled);
    json_pair_bool(b, "has_password", *a->password != 0);
    json_pair_int(b, "created", a->created);
    json_close(b, '}');
}

int accounts_users(struct call *c, struct error *e) {
    size_t count;
    const struct account *accounts = auth_accounts(c->server->auth, &count);
    json_open(&c->out, '{');
    json_key(&c->out, "users");
    json_open(&c->out, '[');
    for (size_t i = 0; i < count; i++) put_account(&c->out, &accounts[i]);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    return 0;
}

static int find(const struct call *c, const struct account **ret, struct error *e) {
    *ret = auth_account_named(c->server->auth, c->param[0]);
    return *ret ? 0 : fail(e, -ENOENT, "there is no account %.60s", c->param[0]);
}

int accounts_user(struct call *c, struct error *e) {
    const struct account *a;
    int r = find(c, &a, e);
    if (r == 0) put_account(&c->out, a);
    return r;
}

/* ---- made and changed ---- */

struct put {
    struct call *call;
    char name[RULES_NAME];
    enum auth_role role;            /* ROLE_NOBODY: as it is; a new one is a member */
    int64_t uid;                    /* -1: as it is */
    bool has_disabled, is_disabled; /* */
    bool is_new;
    struct account account;
    int64_t now_s;
};

static int write_put(struct sql *db, void *ctx, struct error *e) {
    struct put *p = ctx;
    struct account *a = &p->account;
    int r = store_find_account(db, p->name, a, e);
    p->is_new = r == -ENOENT;
    if (r < 0 && !p->is_new) return r;
    if (p->is_new) {
        *a = (struct account){.uid = -1, .role = ROLE_MEMBER, .created = p->now_s};
        snprintf(a->name, sizeof a->name, "%s", p->name);
        r = store_add_account(db, a, e);
        if (r < 0) return r;
    }
    if (p->role != ROLE_NOBODY) a->role = p->role;
    if (p->uid >= 0) a->uid = p->uid;
    if (p->has_disabled) a->is_disabled = p->is_disabled;
    r = store_put_account(db, a, e);
    return r == 0 && a->is_disabled ? store_drop_sessions_of(db, a->id, 0, e) : r;
}

static void put_written(void *ctx, int result, const struct error *e) {
    struct put *p = ctx;
    struct auth *a = p->call->server->auth;
    if (result >= 0) {
        auth_put_account(a, &p->account);
        if (p->account.is_disabled) auth_drop_sessions_of(a, p->account.id, 0);
        put_account(&p->call->out, &p->account);
    }
    call_end(p->call, result < 0 ? result : p->is_new ? 201 : 200, e);
    free(p);
}

int accounts_user_put(struct call *c, struct error *e) {
    const char *role = call_field(c, "role"), *disabled = call_field(c, "disabled");
    enum auth_role parsed = ROLE_NOBODY;
    double uid = -1;
    int r = rules_check_name("user", c->param[0], e);
    if (r == 0) r = call_field_number(c, "uid", 0, UID_MAX_EVER, -1, &uid, e);
    if (r < 0) return r;
    if (uid != (double)(int64_t)uid) return fail(e, -EINVAL, "uid: must be a whole number");
    if (role && !auth_role_parse(role, &parsed)) return fail(e, -EINVAL, "role: must be member or admin");
    struct put *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->call = c;
    p->role = parsed;
    p->uid = (int64_t)uid;
    p->has_disabled = disabled != NULL;
    p->is_disabled = disabled && strcmp(disabled, "true") == 0;
    p->now_s = accounts_now_s();
    snprintf(p->name, sizeof p->name, "%s", c->param[0]);
    return accounts_submit(c, write_put, put_written, p, e);
}

/* ---- removed ---- */

struct drop {
    struct call *call;
    int64_t id;
};

static int write_drop(struct sql *db, void *ctx, struct error *e) {
    return store_drop_account(db, ((struct drop *)ctx)->id, e);
}

static void dropped(void *ctx, int result, const struct error *e) {
    struct drop *d = ctx;
    if (result >= 0) auth_drop_account(d->call->server->auth, d->id);
    call_end(d->call, result < 0 ? result : 204, e);
    free(d);
}

int accounts_user_drop(struct call *c, struct error *e) {
    const struct account *a;
    int r = find(c, &a, e);
    if (r < 0) return r;
    struct drop *d = calloc(1, sizeof *d);
    if (!d) abort();
    *d = (struct drop){.call = c, .id = a->id};
    return accounts_submit(c, write_drop, dropped, d, e);
}

/* ---- passwords ---- */

struct password {
    struct call *call;
    int64_t user, session; /* session: the one that stays */
    char current[RULES_PASSWORD_MAX + 1], fresh[RULES_PASSWORD_MAX + 1];
    char was[SECRETS_PASSWORD], kept[SECRETS_PASSWORD];
    bool asks_current, is_wrong;
    int hashed;
    struct error error;
    struct account account;
};

static void password_free(struct password *p) {
    secrets_forget(p, sizeof *p);
    free(p);
}

static void hash_password(void *ctx) {
    struct password *p = ctx;
    p->is_wrong = p->asks_current && !secrets_password_fits(p->was, p->current);
    if (!p->is_wrong && *p->fresh) p->hashed = secrets_password_keep(p->fresh, p->kept, &p->error);
}

static int write_password(struct sql *db, void *ctx, struct error *e) {
    struct password *p = ctx;
    int r = store_account(db, p->user, &p->account, e);
    if (r < 0) return r;
    snprintf(p->account.password, sizeof p->account.password, "%s", p->kept);
    r = store_put_account(db, &p->account, e);
    return r == 0 ? store_drop_sessions_of(db, p->user, p->session, e) : r;
}

static void password_written(void *ctx, int result, const struct error *e) {
    struct password *p = ctx;
    struct auth *a = p->call->server->auth;
    if (result >= 0) {
        auth_put_account(a, &p->account);
        auth_drop_sessions_of(a, p->user, p->session);
    }
    call_end(p->call, result < 0 ? result : 204, e);
    password_free(p);
}

static void password_hashed(void *ctx) {
    struct password *p = ctx;
    int r = p->hashed;
    if (p->is_wrong) r = fail(&p->error, -EACCES, "the current password is wrong");
    if (r == 0) r = state_submit(auth_state(p->call->server->auth), write_password, password_written, p, &p->error);
    if (r == 0) return;
    call_end(p->call, r, &p->error);
    password_free(p);
}

/* Who changes his own gives the one he has: a session that somebody left open is not enough to keep others out. */
static int read_passwords(struct call *c, const struct account *a, struct password *p, struct error *e) {
    const char *fresh = call_field(c, "password"), *current = call_field(c, "current");
    bool is_own = c->who.user == a->id && c->who.means != BY_PEER;
    p->asks_current = is_own && *a->password;
    int r = fresh && *fresh ? rules_check_password(fresh, e) : 0;
    if (r < 0) return r;
    if (p->asks_current && (!current || strlen(current) > RULES_PASSWORD_MAX))
        return fail(e, -EACCES, "the current password is needed to change it");
    snprintf(p->fresh, sizeof p->fresh, "%s", fresh);
    snprintf(p->current, sizeof p->current, "%s", current ? current : "");
    snprintf(p->was, sizeof p->was, "%s", a->password);
    if (!p->asks_current) return 0;
    return accounts_limit(c, &limit_of_account, limit_key_account(auth_limit(c->server->auth), a->name), e);
}

int accounts_password(struct call *c, struct error *e) {
    const struct account *a = auth_account_named(c->server->auth, c->param[0]);
    bool is_own = a && a->id == c->who.user;
    if (!is_own && c->who.role != ROLE_ADMIN)
        return fail(e, -EACCES, "only an administrator may set somebody else's password");
    int r = accounts_may_make(&c->who, e);
    if (r < 0) return r;
    if (!a) return fail(e, -ENOENT, "there is no account %.60s", c->param[0]);
    struct password *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->call = c;
    p->user = a->id;
    p->session = is_own && c->who.means == BY_SESSION ? c->who.id : 0;
    r = read_passwords(c, a, p, e);
    if (r == 0) r = work_submit(auth_work(c->server->auth), hash_password, password_hashed, p, e);
    if (r == 0) return CALL_LATER;
    password_free(p);
    return r;
}

/* ---- the audit log ---- */

struct page {
    struct call *call;
    int64_t before, next;
    int limit;
    struct buf rows;
};

static int read_page(struct sql *db, void *ctx, struct error *e) {
    struct page *p = ctx;
    return audit_read(db, p->before, p->limit, &p->rows, &p->next, e);
}

static void page_read(void *ctx, int result, const struct error *e) {
    struct page *p = ctx;
    struct buf *b = &p->call->out;
    if (result >= 0) {
        buf_puts(b, "{\"audit\":");
        buf_add(b, p->rows.s, p->rows.len);
        buf_puts(b, ",\"next\":");
        if (p->next)
            buf_printf(b, "%lld}", (long long)p->next);
        else
            buf_puts(b, "null}");
    }
    call_end(p->call, result < 0 ? result : 200, e);
    buf_done(&p->rows);
    free(p);
}

int accounts_audit(struct call *c, struct error *e) {
    double before = 0, limit = 100;
    int r = call_query_number(c, "before", 1, 9e15, 0, &before, e);
    if (r == 0) r = call_query_number(c, "limit", 1, AUDIT_PAGE_MAX, 100, &limit, e);
    if (r < 0) return r;
    struct page *p = calloc(1, sizeof *p);
    if (!p) abort();
    *p = (struct page){.call = c, .before = (int64_t)before, .limit = (int)limit};
    return accounts_submit(c, read_page, page_read, p, e);
}
