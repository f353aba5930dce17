#include "server/auth_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

static const char *const role_names[] = {[ROLE_NOBODY] = "nobody", [ROLE_MEMBER] = "member", [ROLE_ADMIN] = "admin"};

const char *auth_role_name(enum auth_role r) { return (size_t)r < ARRAY_LEN(role_names) ? role_names[r] : "nobody"; }

bool auth_role_parse(const char *s, enum auth_role *ret) {
    for (size_t i = ROLE_MEMBER; i < ARRAY_LEN(role_names); i++)
        if (strcmp(s, role_names[i]) == 0) {
            *ret = (enum auth_role)i;
            return true;
        }
    return false;
}

/* What the file says a role is: nothing but the two that there are. */
static enum auth_role role_of(int64_t n) {
    return n == ROLE_ADMIN ? ROLE_ADMIN : n == ROLE_MEMBER ? ROLE_MEMBER : ROLE_NOBODY;
}

/* ---- rows ---- */

#define ACCOUNT_COLUMNS "id,name,role,uid,password,is_disabled,created"

static void account_of(const struct sql_row *row, struct account *ret) {
    *ret = (struct account){
        .id = sql_row_int(row, 0),
        .role = role_of(sql_row_int(row, 2)),
        .uid = sql_row_is_null(row, 3) ? -1 : sql_row_int(row, 3),
        .is_disabled = sql_row_int(row, 5) != 0,
        .created = sql_row_int(row, 6),
    };
    snprintf(ret->name, sizeof ret->name, "%s", sql_row_text(row, 1));
    snprintf(ret->password, sizeof ret->password, "%s", sql_row_text(row, 4));
}

static int take_account(const struct sql_row *row, void *ctx, struct error *e) {
    account_of(row, ctx);
    return 0;
}

static int read_account(const struct sql_row *row, void *ctx, struct error *e) {
    const struct store_reader *r = ctx;
    struct account a;
    account_of(row, &a);
    r->account(r->ctx, &a);
    return 0;
}

static int read_session(const struct sql_row *row, void *ctx, struct error *e) {
    const struct store_reader *r = ctx;
    struct session s = {.id = sql_row_int(row, 0),
                        .user = sql_row_int(row, 2),
                        .created = sql_row_int(row, 3),
                        .seen = sql_row_int(row, 4),
                        .written = sql_row_int(row, 4)};
    if (!sql_row_hash(row, 1, s.hash)) return 0;
    snprintf(s.address, sizeof s.address, "%s", sql_row_text(row, 5));
    snprintf(s.agent, sizeof s.agent, "%s", sql_row_text(row, 6));
    r->session(r->ctx, &s);
    return 0;
}

static int read_token(const struct sql_row *row, void *ctx, struct error *e) {
    const struct store_reader *r = ctx;
    struct token t = {.id = sql_row_int(row, 0),
                      .user = sql_row_int(row, 2),
                      .role = role_of(sql_row_int(row, 4)),
                      .created = sql_row_int(row, 5),
                      .expires = sql_row_int(row, 6),
                      .seen = sql_row_int(row, 7),
                      .written = sql_row_int(row, 7)};
    if (!sql_row_hash(row, 1, t.hash)) return 0;
    snprintf(t.name, sizeof t.name, "%s", sql_row_text(row, 3));
    r->token(r->ctx, &t);
    return 0;
}

int store_read_all(struct sql *db, const struct store_reader *reader, struct error *e) {
    struct store_reader r = *reader;
    int n = sql_each(db, read_account, &r, e, "SELECT " ACCOUNT_COLUMNS " FROM users ORDER BY id", "");
    if (n >= 0)
        n = sql_each(db, read_session, &r, e,
                     "SELECT id,hash,user,created,seen,address,agent FROM sessions ORDER BY id", "");
    if (n >= 0)
        n = sql_each(db, read_token, &r, e,
                     "SELECT id,hash,user,name,role,created,expires,seen FROM tokens ORDER BY id", "");
    return n < 0 ? n : 0;
}

/* ---- accounts ---- */

int store_add_account(struct sql *db, struct account *a, struct error *e) {
    int64_t count;
    int r = sql_int(db, &count, e, "SELECT count(*) FROM users", "");
    if (r < 0) return r;
    if (count >= STORE_ACCOUNTS_MAX) return fail(e, -ENOSPC, "there are %d accounts already", STORE_ACCOUNTS_MAX);
    const char *password = *a->password ? a->password : NULL;
    if (a->uid < 0)
        r = sql_do(db, e, "INSERT INTO users(name,role,password,is_disabled,created) VALUES(?,?,?,?,?)", "sisii",
                   a->name, (int64_t)a->role, password, (int64_t)a->is_disabled, a->created);
    else
        r = sql_do(db, e, "INSERT INTO users(name,role,uid,password,is_disabled,created) VALUES(?,?,?,?,?,?)", "siisii",
                   a->name, (int64_t)a->role, a->uid, password, (int64_t)a->is_disabled, a->created);
    if (r == -EEXIST) return fail(e, -EEXIST, "there is an account %s already", a->name);
    if (r >= 0) a->id = sql_last_id(db);
    return r < 0 ? r : 0;
}

int store_account(struct sql *db, int64_t id, struct account *ret, struct error *e) {
    int n = sql_each(db, take_account, ret, e, "SELECT " ACCOUNT_COLUMNS " FROM users WHERE id=?", "i", id);
    return n < 0 ? n : n == 0 ? fail(e, -ENOENT, "there is no such account") : 0;
}

int store_find_account(struct sql *db, const char *name, struct account *ret, struct error *e) {
    int n = sql_each(db, take_account, ret, e, "SELECT " ACCOUNT_COLUMNS " FROM users WHERE name=?", "s", name);
    return n < 0 ? n : n == 0 ? fail(e, -ENOENT, "there is no account %s", name) : 0;
}

/* The name, or, where somebody else has that one (the administrator's own account, say), the name with the number. */
static int free_unix_name(struct sql *db, const char *name, int64_t uid, char ret[RULES_NAME], struct error *e) {
    struct account other;
    snprintf(ret, RULES_NAME, "%s", name);
    int r = store_find_account(db, ret, &other, e);
    if (r == -ENOENT) return 0;
    if (r < 0) return r;
    rules_numbered_name(name, uid, ret);
    return 0;
}

int store_unix_account(struct sql *db, const char *name, int64_t uid, enum auth_role role, int64_t now_s,
                       struct account *ret, struct error *e) {
    struct account a = {0};
    int n = sql_each(db, take_account, &a, e, "SELECT " ACCOUNT_COLUMNS " FROM users WHERE uid=?", "i", uid);
    if (n < 0) return n;
    if (n > 0 && rules_is_name_of(a.name, name, uid)) {
        *ret = a;
        return 0;
    }
    if (n > 0) n = sql_do(db, e, "UPDATE users SET uid=NULL WHERE id=?", "i", a.id);
    if (n < 0) return n;
    a = (struct account){.uid = uid, .role = role, .created = now_s};
    int r = free_unix_name(db, name, uid, a.name, e);
    if (r == 0) r = store_add_account(db, &a, e);
    if (r == 0) *ret = a;
    return r;
}

/* After the change and before the commit: somebody must be able to mend things. */
static int keep_an_admin(struct sql *db, struct error *e) {
    int64_t admins;
    int r =
        sql_int(db, &admins, e, "SELECT count(*) FROM users WHERE role=? AND is_disabled=0", "i", (int64_t)ROLE_ADMIN);
    if (r < 0) return r;
    return admins ? 0 : fail(e, -EBUSY, "this is the last administrator; make another one first");
}

int store_put_account(struct sql *db, const struct account *a, struct error *e) {
    int r = sql_do(db, e, "UPDATE users SET role=?,password=?,is_disabled=?,uid=iif(?<0,NULL,?) WHERE id=?", "isiiii",
                   (int64_t)a->role, *a->password ? a->password : NULL, (int64_t)a->is_disabled, a->uid, a->uid, a->id);
    if (r == -EEXIST) return fail(e, -EEXIST, "uid %lld has an account already", (long long)a->uid);
    if (r < 0) return r;
    return r == 0 ? fail(e, -ENOENT, "there is no account %s", a->name) : keep_an_admin(db, e);
}

int store_drop_account(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM users WHERE id=?", "i", id);
    if (r < 0) return r;
    return r == 0 ? fail(e, -ENOENT, "there is no such account") : keep_an_admin(db, e);
}

/* ---- links ---- */

int store_add_link(struct sql *db, int64_t user, const uint8_t hash[SECRETS_HASH], int64_t now_s, int64_t expires,
                   bool is_first, struct error *e) {
    int r = sql_do(db, e, "INSERT INTO links(hash,user,created,expires,is_first) VALUES(?,?,?,?,?)", "hiiii", hash,
                   user, now_s, expires, (int64_t)is_first);
    if (r >= 0)
        r = sql_do(db, e,
                   "DELETE FROM links WHERE user=? AND is_first=0 AND id NOT IN"
                   " (SELECT id FROM links WHERE user=? AND is_first=0 ORDER BY id DESC LIMIT ?)",
                   "iii", user, user, (int64_t)STORE_LINKS_EACH);
    return r < 0 ? r : 0;
}

int store_use_link(struct sql *db, const uint8_t hash[SECRETS_HASH], int64_t now_s, struct account *ret,
                   struct error *e) {
    static const char sentence[] = "this sign-in link is not valid: it was used, it expired, or it was never made here";
    int n =
        sql_each(db, take_account, ret, e,
                 "SELECT " ACCOUNT_COLUMNS " FROM users WHERE id=(SELECT user FROM links WHERE hash=? AND expires>?)",
                 "hi", hash, now_s);
    if (n < 0) return n;
    if (n == 0 || ret->is_disabled) return fail(e, -ENOENT, "%s", sentence);
    int r = sql_do(db, e, "DELETE FROM links WHERE hash=?", "h", hash);
    return r < 0 ? r : 0;
}

int store_first_link_waits(struct sql *db, int64_t now_s, struct error *e) {
    int64_t n;
    int r = sql_int(db, &n, e, "SELECT count(*) FROM links WHERE is_first=1 AND expires>?", "i", now_s);
    return r < 0 ? r : n > 0;
}

/* ---- sessions ---- */

/* Ends the one unused longest when there are too many: of this account, or of all. */
static int make_room(struct sql *db, int64_t user, int64_t *ret_ended, struct error *e) {
    int64_t own = 0, all = 0;
    *ret_ended = 0;
    int r = sql_int(db, &own, e, "SELECT count(*) FROM sessions WHERE user=?", "i", user);
    if (r == 0) r = sql_int(db, &all, e, "SELECT count(*) FROM sessions", "");
    if (r < 0 || (own < STORE_SESSIONS_EACH && all < STORE_SESSIONS_MAX)) return r;
    if (own >= STORE_SESSIONS_EACH)
        r = sql_int(db, ret_ended, e, "SELECT id FROM sessions WHERE user=? ORDER BY seen,id LIMIT 1", "i", user);
    else
        r = sql_int(db, ret_ended, e, "SELECT id FROM sessions ORDER BY seen,id LIMIT 1", "");
    return r < 0 ? r : store_drop_session(db, *ret_ended, e);
}

int store_add_session(struct sql *db, struct session *s, int64_t *ret_ended, struct error *e) {
    int r = make_room(db, s->user, ret_ended, e);
    if (r >= 0)
        r = sql_do(db, e, "INSERT INTO sessions(hash,user,created,seen,address,agent) VALUES(?,?,?,?,?,?)", "hiiiss",
                   s->hash, s->user, s->created, s->seen, s->address, s->agent);
    if (r < 0) return r;
    s->id = sql_last_id(db);
    s->written = s->seen;
    return 0;
}

int store_drop_session(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM sessions WHERE id=?", "i", id);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no session %lld", (long long)id) : 0;
}

int store_drop_sessions_of(struct sql *db, int64_t user, int64_t but, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM sessions WHERE user=? AND id<>?", "ii", user, but);
    if (r >= 0) r = sql_do(db, e, "DELETE FROM links WHERE user=?", "i", user);
    return r < 0 ? r : 0;
}

int store_session_seen(struct sql *db, int64_t id, int64_t seen, struct error *e) {
    int r = sql_do(db, e, "UPDATE sessions SET seen=? WHERE id=?", "ii", seen, id);
    return r < 0 ? r : 0;
}

/* ---- tokens ---- */

int store_add_token(struct sql *db, struct token *t, struct error *e) {
    int64_t own = 0, all = 0;
    int r = sql_int(db, &own, e, "SELECT count(*) FROM tokens WHERE user=?", "i", t->user);
    if (r == 0) r = sql_int(db, &all, e, "SELECT count(*) FROM tokens", "");
    if (r < 0) return r;
    if (own >= STORE_TOKENS_EACH || all >= STORE_TOKENS_MAX)
        return fail(e, -EBUSY, "there are too many tokens already; revoke some first");
    r = sql_do(db, e, "INSERT INTO tokens(hash,user,name,role,created,expires,seen) VALUES(?,?,?,?,?,?,0)", "hisiii",
               t->hash, t->user, t->name, (int64_t)t->role, t->created, t->expires);
    if (r == -EEXIST) return fail(e, -EEXIST, "there is a token %s already", t->name);
    if (r >= 0) t->id = sql_last_id(db);
    return r < 0 ? r : 0;
}

int store_drop_token(struct sql *db, int64_t id, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM tokens WHERE id=?", "i", id);
    return r < 0 ? r : r == 0 ? fail(e, -ENOENT, "there is no token %lld", (long long)id) : 0;
}

int store_token_seen(struct sql *db, int64_t id, int64_t seen, struct error *e) {
    int r = sql_do(db, e, "UPDATE tokens SET seen=? WHERE id=?", "ii", seen, id);
    return r < 0 ? r : 0;
}

int store_trim(struct sql *db, int64_t now_s, int64_t idle_before, struct error *e) {
    int r = sql_do(db, e, "DELETE FROM links WHERE expires<=?", "i", now_s);
    if (r >= 0) r = sql_do(db, e, "DELETE FROM sessions WHERE seen<?", "i", idle_before);
    if (r >= 0)
        r = sql_do(db, e, "DELETE FROM tokens WHERE expires>0 AND expires<=?", "i", now_s - STORE_TOKEN_SHOWN_S);
    return r < 0 ? r : 0;
}
