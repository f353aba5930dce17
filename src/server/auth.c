#include "server/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/audit.h"
#include "server/unix_names.h"

#define SEEN_LAG_S 300      /* how far behind the file may be with when something was last used */
#define AUDIT_TRIM_TICKS 60 /* it reads the whole table: once an hour */
#define COOKIES_MAX 4       /* of one name that are looked at */

/* Rows in the order of their ids, which only grow. A key is the beginning of a hash: looking through a few thousand of
 * them in one piece of memory costs less than the parsing of the request did. */
struct auth {
    struct auth_setup setup;
    struct limit limit;
    struct account *accounts;
    struct session *sessions;
    struct token *tokens;
    uint64_t *session_keys, *token_keys;
    size_t account_count, session_count, token_count;
    struct unix_names names;
    struct work *work;
    struct audit_gate gate;
    unsigned ticks;
};

static void *grown(void *rows, size_t count, size_t size) {
    if (count & (count - 1)) return rows; /* room is a power of two */
    void *more = realloc(rows, (count ? count * 2 : 1) * size);
    if (!more) abort();
    return more;
}

static uint64_t key_of(const uint8_t *hash) {
    uint64_t k;
    memcpy(&k, hash, sizeof k);
    return k;
}

/* ---- the memory ---- */

bool auth_is_empty(const struct auth *a) { return a->account_count == 0; }

const struct account *auth_accounts(const struct auth *a, size_t *ret_count) {
    *ret_count = a->account_count;
    return a->accounts;
}

const struct session *auth_sessions(const struct auth *a, size_t *ret_count) {
    *ret_count = a->session_count;
    return a->sessions;
}

const struct token *auth_tokens(const struct auth *a, size_t *ret_count) {
    *ret_count = a->token_count;
    return a->tokens;
}

/* Where an id is, or would be. Each row begins with its id. */
static size_t place_of(const void *rows, size_t count, size_t size, int64_t id) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (*(const int64_t *)(const void *)((const char *)rows + middle * size) < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct account *auth_account(const struct auth *a, int64_t id) {
    size_t i = place_of(a->accounts, a->account_count, sizeof *a->accounts, id);
    return i < a->account_count && a->accounts[i].id == id ? &a->accounts[i] : NULL;
}

const struct account *auth_account_named(const struct auth *a, const char *name) {
    for (size_t i = 0; i < a->account_count; i++)
        if (strcmp(a->accounts[i].name, name) == 0) return &a->accounts[i];
    return NULL;
}

void auth_put_account(struct auth *a, const struct account *account) {
    size_t i = place_of(a->accounts, a->account_count, sizeof *a->accounts, account->id);
    /* a uid belongs to one account: whoever had it before has lost it */
    for (size_t j = 0; account->uid >= 0 && j < a->account_count; j++)
        if (a->accounts[j].uid == account->uid) a->accounts[j].uid = -1;
    if (i == a->account_count || a->accounts[i].id != account->id) {
        a->accounts = grown(a->accounts, a->account_count, sizeof *a->accounts);
        memmove(a->accounts + i + 1, a->accounts + i, (a->account_count++ - i) * sizeof *a->accounts);
    }
    a->accounts[i] = *account;
}

static void remove_session(struct auth *a, size_t i) {
    size_t after = --a->session_count - i;
    memmove(a->sessions + i, a->sessions + i + 1, after * sizeof *a->sessions);
    memmove(a->session_keys + i, a->session_keys + i + 1, after * sizeof *a->session_keys);
}

static void remove_token(struct auth *a, size_t i) {
    size_t after = --a->token_count - i;
    memmove(a->tokens + i, a->tokens + i + 1, after * sizeof *a->tokens);
    memmove(a->token_keys + i, a->token_keys + i + 1, after * sizeof *a->token_keys);
}

void auth_drop_sessions_of(struct auth *a, int64_t user, int64_t but) {
    for (size_t i = a->session_count; i-- > 0;)
        if (a->sessions[i].user == user && a->sessions[i].id != but) remove_session(a, i);
}

void auth_drop_account(struct auth *a, int64_t id) {
    size_t i = place_of(a->accounts, a->account_count, sizeof *a->accounts, id);
    if (i == a->account_count || a->accounts[i].id != id) return;
    auth_drop_sessions_of(a, id, 0);
    for (size_t t = a->token_count; t-- > 0;)
        if (a->tokens[t].user == id) remove_token(a, t);
    memmove(a->accounts + i, a->accounts + i + 1, (--a->account_count - i) * sizeof *a->accounts);
}

void auth_put_session(struct auth *a, const struct session *s) {
    a->sessions = grown(a->sessions, a->session_count, sizeof *a->sessions);
    a->session_keys = grown(a->session_keys, a->session_count, sizeof *a->session_keys);
    a->sessions[a->session_count] = *s;
    a->session_keys[a->session_count++] = key_of(s->hash);
}

bool auth_drop_session(struct auth *a, int64_t id) {
    size_t i = place_of(a->sessions, a->session_count, sizeof *a->sessions, id);
    if (i == a->session_count || a->sessions[i].id != id) return false;
    remove_session(a, i);
    return true;
}

void auth_put_token(struct auth *a, const struct token *t) {
    a->tokens = grown(a->tokens, a->token_count, sizeof *a->tokens);
    a->token_keys = grown(a->token_keys, a->token_count, sizeof *a->token_keys);
    a->tokens[a->token_count] = *t;
    a->token_keys[a->token_count++] = key_of(t->hash);
}

bool auth_drop_token(struct auth *a, int64_t id) {
    size_t i = place_of(a->tokens, a->token_count, sizeof *a->tokens, id);
    if (i == a->token_count || a->tokens[i].id != id) return false;
    remove_token(a, i);
    return true;
}

static struct session *find_session(struct auth *a, const uint8_t hash[SECRETS_HASH]) {
    uint64_t key = key_of(hash);
    for (size_t i = 0; i < a->session_count; i++)
        if (a->session_keys[i] == key && secrets_equal(a->sessions[i].hash, hash, SECRETS_HASH)) return &a->sessions[i];
    return NULL;
}

static struct token *find_token(struct auth *a, const uint8_t hash[SECRETS_HASH]) {
    uint64_t key = key_of(hash);
    for (size_t i = 0; i < a->token_count; i++)
        if (a->token_keys[i] == key && secrets_equal(a->tokens[i].hash, hash, SECRETS_HASH)) return &a->tokens[i];
    return NULL;
}

/* ---- start and end ---- */

static void read_account(void *ctx, const struct account *account) { auth_put_account(ctx, account); }
static void read_session(void *ctx, const struct session *s) { auth_put_session(ctx, s); }
static void read_token(void *ctx, const struct token *t) { auth_put_token(ctx, t); }

static int read_all(struct sql *db, void *ctx, struct error *e) {
    const struct store_reader reader = {ctx, read_account, read_session, read_token};
    return store_read_all(db, &reader, e);
}

int auth_new(const struct auth_setup *setup, struct auth **ret, struct error *e) {
    struct auth *a = calloc(1, sizeof *a);
    if (!a) abort();
    a->setup = *setup;
    secrets_random(&a->limit.seed, sizeof a->limit.seed);
    int r = state_run(setup->state, read_all, a, e);
    if (r < 0) {
        auth_free(a);
        return r;
    }
    *ret = a;
    return 0;
}

void auth_free(struct auth *a) {
    if (!a) return;
    work_free(a->work);
    free(a->accounts);
    free(a->sessions);
    free(a->tokens);
    free(a->session_keys);
    free(a->token_keys);
    free(a);
}

int auth_start(struct auth *a, state_post_fn post, void *loop, struct error *e) {
    return work_new(post, loop, &a->work, e);
}

struct work *auth_work(struct auth *a) {
    return a->work;
}
struct state *auth_state(struct auth *a) {
    return a->setup.state;
}
struct limit *auth_limit(struct auth *a) {
    return &a->limit;
}
const struct auth_setup *auth_setup(const struct auth *a) { return &a->setup; }

/* ---- who calls ---- */

static void be(struct caller *ret, const struct account *account, enum auth_means means, enum auth_role role,
               int64_t id) {
    ret->role = role;
    ret->means = means;
    ret->user = account->id;
    ret->id = id;
    snprintf(ret->name, sizeof ret->name, "%s", account->name);
}

/* A script at another port of this host can set a cookie of our name for a path of ours, and so bring in a session of its maker's
 * before the true one. Who comes with sessions of two accounts is nobody. */
static void by_cookie(struct auth *a, const struct auth_ask *ask, int64_t now_s, struct caller *ret) {
    const struct caller nobody = *ret;
    char secret[SECRETS_TEXT], name[RULES_COOKIE_NAME];
    uint8_t hash[SECRETS_HASH];
    rules_cookie_name(ask->is_tls, a->setup.base_path, ask->host, name);
    for (int n = 0; n < COOKIES_MAX && ask->cookie; n++) {
        if (!rules_cookie(ask->cookie, name, n, secret, sizeof secret)) continue;
        if (!rules_is_secret(secret)) continue;
        secrets_hash("session", secret, hash);
        struct session *s = find_session(a, hash);
        const struct account *account = s ? auth_account(a, s->user) : NULL;
        if (!account || account->is_disabled || now_s - s->seen > AUTH_SESSION_IDLE_S) continue;
        if (ret->means == BY_SESSION && ret->user == account->id) continue;
        if (ret->means == BY_SESSION) {
            *ret = nobody;
            return;
        }
        if (now_s > s->seen) s->seen = now_s;
        be(ret, account, BY_SESSION, account->role, s->id);
        secrets_hash_text("csrf", secret, ret->csrf);
    }
}

static bool has_session(const struct auth *a, int64_t id) {
    size_t n;
    const struct session *of = auth_sessions(a, &n);
    for (size_t i = 0; i < n; i++)
        if (of[i].id == id) return true;
    return false;
}

static bool has_token(const struct auth *a, int64_t id, int64_t now_s) {
    size_t n;
    const struct token *of = auth_tokens(a, &n);
    for (size_t i = 0; i < n; i++)
        if (of[i].id == id && (!of[i].expires || of[i].expires > now_s)) return true;
    return false;
}

bool auth_is_still(const struct auth *a, struct caller *who, int64_t now_s) {
    if (who->means == BY_PEER) return true;
    const struct account *account = auth_account(a, who->user);
    if (!account || account->is_disabled) return false;
    if (account->role < who->role) who->role = account->role;
    return who->means == BY_SESSION ? has_session(a, who->id) : who->means == BY_TOKEN && has_token(a, who->id, now_s);
}

static enum auth_verdict by_token(struct auth *a, const struct auth_ask *ask, int64_t now_s, struct caller *ret,
                                  struct error *e) {
    char text[RULES_TOKEN + 1];
    uint8_t hash[SECRETS_HASH];
    struct token *t = NULL;
    if (rules_bearer(ask->authorization, text, sizeof text) && rules_is_token(text)) {
        secrets_hash("token", text, hash);
        t = find_token(a, hash);
    }
    const struct account *account = t ? auth_account(a, t->user) : NULL;
    if (!account || account->is_disabled || (t->expires && t->expires <= now_s)) {
        fail(e, -EACCES, "this token is not valid: it was revoked, it expired, or it was never made here");
        return AUTH_UNAUTHENTICATED;
    }
    if (now_s > t->seen) t->seen = now_s;
    /* who loses his role loses it for his programs as well */
    be(ret, account, BY_TOKEN, t->role < account->role ? t->role : account->role, t->id);
    return AUTH_GOOD;
}

static const struct account *account_of_uid(const struct auth *a, const char *name, uid_t uid) {
    for (size_t i = 0; i < a->account_count; i++)
        if (a->accounts[i].uid == (int64_t)uid && rules_is_name_of(a->accounts[i].name, name, uid))
            return &a->accounts[i];
    return NULL;
}

static enum auth_verdict by_peer(struct auth *a, const struct auth_ask *ask, int64_t now_s, struct caller *ret,
                                 struct error *e) {
    char name[RULES_NAME];
    ret->is_named = unix_name(&a->names, ask->uid, now_s, name);
    const struct account *account = account_of_uid(a, name, ask->uid);
    bool is_master = ask->uid == 0 || ask->uid == a->setup.owner;
    if (account && account->is_disabled && !is_master) {
        fail(e, -EACCES, "the account %s is disabled", account->name);
        return AUTH_FORBIDDEN;
    }
    ret->uid = ask->uid;
    snprintf(ret->unix_name, sizeof ret->unix_name, "%s", name);
    if (account) {
        be(ret, account, BY_PEER, is_master ? ROLE_ADMIN : account->role, 0);
        return AUTH_GOOD;
    }
    ret->role = is_master ? ROLE_ADMIN : ROLE_MEMBER;
    ret->means = BY_PEER;
    if (auth_account_named(a, name))
        rules_numbered_name(name, ask->uid, ret->name);
    else
        snprintf(ret->name, sizeof ret->name, "%s", name);
    return AUTH_GOOD;
}

enum auth_verdict auth_identify(struct auth *a, const struct auth_ask *ask, int64_t now_s, struct caller *ret,
                                struct error *e) {
    *ret = (struct caller){0};
    if (rules_is_bearer(ask->authorization)) return by_token(a, ask, now_s, ret, e);
    if (ask->is_unix) return by_peer(a, ask, now_s, ret, e);
    by_cookie(a, ask, now_s, ret);
    return AUTH_GOOD;
}

/* ---- what he may do ---- */

/* What is open (signing in) acts for nobody who is signed in: there the origin is enough. */
static enum auth_verdict check_page(const struct auth *a, const struct auth_ask *ask, const struct caller *caller,
                                    enum auth_need need, struct error *e) {
    const struct rules_origin origin = {ask->origin, ask->fetch_site, ask->host, a->setup.public_url, ask->is_tls};
    if (!rules_is_same_origin(&origin)) {
        fail(e, -EACCES, "this call did not come from a page of this server; behind a proxy, set server.public_url");
        return AUTH_CSRF;
    }
    if (caller->means == BY_SESSION && need != OPEN && (!ask->csrf || !secrets_same_text(ask->csrf, caller->csrf))) {
        fail(e, -EACCES, "the X-CSRF-Token header must carry the value that GET /api/v1/session gives");
        return AUTH_CSRF;
    }
    return AUTH_GOOD;
}

enum auth_verdict auth_permit(const struct auth *a, const struct auth_ask *ask, const struct caller *caller,
                              enum auth_need need, struct error *e) {
    bool is_local = ask->is_unix || (ask->is_loopback && rules_is_local_host(ask->host));
    enum auth_role role = need == ADMIN                                         ? ROLE_ADMIN
                          : need == MEMBER || (need == LOCAL_OPEN && !is_local) ? ROLE_MEMBER
                                                                                : ROLE_NOBODY;
    if (role > ROLE_NOBODY && caller->role == ROLE_NOBODY) {
        fail(e, -EACCES, "sign in first: `gpumgr web` on this machine gives a link, `gpumgr token` a program's token");
        return AUTH_UNAUTHENTICATED;
    }
    if (caller->role < role) {
        fail(e, -EPERM, "only an administrator may do this");
        return AUTH_FORBIDDEN;
    }
    if (!ask->is_mutating) return AUTH_GOOD;
    if (ask->has_body && !rules_is_json(ask->content_type)) {
        fail(e, -EINVAL, "the Content-Type of a body must be application/json");
        return AUTH_BAD_REQUEST;
    }
    /* Programs without a page behind them send neither header; then only a session needs protection. */
    if (caller->means == BY_SESSION || (caller->means == BY_NOTHING && (ask->origin || ask->fetch_site)))
        return check_page(a, ask, caller, need, e);
    return AUTH_GOOD;
}

/* ---- what is written behind ---- */

struct seen {
    struct auth *a;
    int64_t now_s;
    size_t session_count, token_count;
    int64_t (*sessions)[2], (*tokens)[2];
    bool trims_audit;
};

static void seen_free(struct seen *s) {
    free(s->sessions);
    free(s->tokens);
    free(s);
}

static int write_seen(struct sql *db, void *ctx, struct error *e) {
    const struct seen *s = ctx;
    int r = 0;
    for (size_t i = 0; i < s->session_count && r >= 0; i++)
        r = store_session_seen(db, s->sessions[i][0], s->sessions[i][1], e);
    for (size_t i = 0; i < s->token_count && r >= 0; i++) r = store_token_seen(db, s->tokens[i][0], s->tokens[i][1], e);
    if (r >= 0) r = store_trim(db, s->now_s, s->now_s - AUTH_SESSION_IDLE_S, e);
    if (r >= 0 && s->trims_audit) r = audit_trim(db, AUDIT_KEEP, AUDIT_KEEP_NOBODY, e);
    return r;
}

static void seen_written(void *ctx, int result, const struct error *e) {
    struct seen *s = ctx;
    struct auth *a = s->a;
    for (size_t i = 0; i < s->session_count && result >= 0; i++) {
        size_t at = place_of(a->sessions, a->session_count, sizeof *a->sessions, s->sessions[i][0]);
        if (at < a->session_count && a->sessions[at].id == s->sessions[i][0])
            a->sessions[at].written = s->sessions[i][1];
    }
    for (size_t i = 0; i < s->token_count && result >= 0; i++) {
        size_t at = place_of(a->tokens, a->token_count, sizeof *a->tokens, s->tokens[i][0]);
        if (at < a->token_count && a->tokens[at].id == s->tokens[i][0]) a->tokens[at].written = s->tokens[i][1];
    }
    seen_free(s);
}

static void forget_expired(struct auth *a, int64_t now_s) {
    for (size_t i = a->session_count; i-- > 0;)
        if (now_s - a->sessions[i].seen > AUTH_SESSION_IDLE_S) remove_session(a, i);
    for (size_t i = a->token_count; i-- > 0;)
        if (a->tokens[i].expires && a->tokens[i].expires <= now_s - STORE_TOKEN_SHOWN_S) remove_token(a, i);
}

/* What the file does not know yet, if it is behind by so much. */
static struct seen *seen_new(struct auth *a, int64_t now_s, int64_t lag_s) {
    struct seen *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->a = a;
    s->now_s = now_s;
    s->sessions = calloc(a->session_count + 1, sizeof *s->sessions);
    s->tokens = calloc(a->token_count + 1, sizeof *s->tokens);
    if (!s->sessions || !s->tokens) abort();
    for (size_t i = 0; i < a->session_count; i++)
        if (a->sessions[i].seen - a->sessions[i].written >= lag_s) {
            s->sessions[s->session_count][0] = a->sessions[i].id;
            s->sessions[s->session_count++][1] = a->sessions[i].seen;
        }
    for (size_t i = 0; i < a->token_count; i++)
        if (a->tokens[i].seen - a->tokens[i].written >= lag_s) {
            s->tokens[s->token_count][0] = a->tokens[i].id;
            s->tokens[s->token_count++][1] = a->tokens[i].seen;
        }
    return s;
}

void auth_tick(struct auth *a, int64_t now_s) {
    struct error ignored; /* the next minute comes */
    forget_expired(a, now_s);
    struct seen *s = seen_new(a, now_s, SEEN_LAG_S);
    s->trims_audit = a->ticks++ % AUDIT_TRIM_TICKS == 0;
    if (state_submit(a->setup.state, write_seen, seen_written, s, &ignored) < 0) seen_free(s);
}

/* The loop is over: nobody would call `done`. */
static int write_last(struct sql *db, void *ctx, struct error *e) {
    int r = write_seen(db, ctx, e);
    seen_free(ctx);
    return r;
}

void auth_flush(struct auth *a, int64_t now_s) {
    struct error ignored;
    struct seen *s = seen_new(a, now_s, 1);
    if (state_submit(a->setup.state, write_last, NULL, s, &ignored) < 0) seen_free(s);
}

static const char *means_of(const struct caller *caller) {
    static const char *const means[] = {
        [BY_NOTHING] = "", [BY_SESSION] = "session", [BY_TOKEN] = "token", [BY_PEER] = "unix"};
    return means[caller->means];
}

struct audit_open *auth_audit_begin(struct auth *a, const struct caller *caller, const char *address,
                                    const char *method, const char *path, int64_t now_s) {
    return audit_begin(a->setup.state, &(struct audit_line){.time = now_s,
                                                            .user = caller->name,
                                                            .means = means_of(caller),
                                                            .address = address,
                                                            .method = method,
                                                            .path = path});
}

void auth_audit_end(struct auth *a, struct audit_open *open, int status) { audit_end(a->setup.state, open, status); }

void auth_audit(struct auth *a, const struct caller *caller, const char *address, const char *method, const char *path,
                int status, int64_t now_s) {
    int64_t left_out = 0;
    char words[64];
    struct audit_line line = {.time = now_s,
                              .user = caller->name,
                              .means = means_of(caller),
                              .address = address,
                              .method = method,
                              .path = path,
                              .status = status};
    if (!*caller->name && !audit_gate(&a->gate, now_s, &left_out)) return;
    audit_add(a->setup.state, &line);
    if (!left_out) return;
    snprintf(words, sizeof words, "%lld more calls before this one", (long long)left_out);
    line = (struct audit_line){
        .time = now_s, .user = "", .means = "", .address = "", .method = "", .path = words, .status = 0};
    audit_add(a->setup.state, &line);
}
