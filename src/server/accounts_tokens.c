/* Tokens of programs, and the sessions of people: what signs in without asking, listed and taken back. Everybody has his
 * own; an administrator may see and end everybody's. Of what is another's a member learns nothing, not even that it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/accounts.h"
#include "server/server.h"

#define TOKEN_LIFE_MAX_S (10ll * 366 * 24 * 3600)

const struct route_field accounts_token_body[] = {
    {"name",      FIELD_TEXT, true, "What it is for; each of a user's tokens has another name"},
    {"role",       FIELD_TEXT, false, "member (the default) or admin; at most the maker's"},
    {"expires_s",           FIELD_NUMBER, false, "Seconds until it ends; 0 or absent: until it is revoked"},
    {NULL}
};
const struct route_field accounts_all_query[] = {
    {"all",  FIELD_BOOL, false, "true: everybody's, for administrators"},
    {NULL}
};

static const char *name_of(const struct call *c, int64_t user) {
    const struct account *a = auth_account(c->server->auth, user);
    return a ? a->name : "";
}

/* Whether the list is to hold everybody's. */
static int wants_all(const struct call *c, bool *ret, struct error *e) {
    const char *all = call_query(c, "all");
    *ret = all && strcmp(all, "true") == 0;
    if (all && !*ret && strcmp(all, "false") != 0) return fail(e, -EINVAL, "all: must be true or false");
    if (*ret && c->who.role != ROLE_ADMIN) return fail(e, -EACCES, "only an administrator may see everybody's");
    return 0;
}

/* ---- tokens ---- */

static void put_token(struct buf *b, const struct call *c, const struct token *t) {
    json_open(b, '{');
    json_pair_int(b, "id", t->id);
    json_pair_str(b, "name", t->name);
    json_pair_str(b, "user", name_of(c, t->user));
    json_pair_str(b, "role", auth_role_name(t->role));
    json_pair_int(b, "created", t->created);
    accounts_put_time(b, "expires", t->expires);
    accounts_put_time(b, "last_used", t->seen);
    json_close(b, '}');
}

int accounts_tokens(struct call *c, struct error *e) {
    bool is_all;
    size_t count;
    const struct token *tokens = auth_tokens(c->server->auth, &count);
    int r = wants_all(c, &is_all, e);
    if (r < 0) return r;
    json_open(&c->out, '{');
    json_key(&c->out, "tokens");
    json_open(&c->out, '[');
    for (size_t i = 0; i < count; i++)
        if (is_all || (c->who.user && tokens[i].user == c->who.user)) put_token(&c->out, c, &tokens[i]);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    return 0;
}

struct make {
    struct call *call;
    struct caller who;
    uid_t owner;
    char text[RULES_TOKEN];
    struct token token;
    struct account account;
};

static int write_token(struct sql *db, void *ctx, struct error *e) {
    struct make *m = ctx;
    int r = accounts_own(db, &m->who, m->owner, m->token.created, &m->account, e);
    if (r < 0) return r;
    if (m->token.role > m->account.role) return fail(e, -EACCES, "a token has at most the role of its maker");
    m->token.user = m->account.id;
    return store_add_token(db, &m->token, e);
}

static void token_written(void *ctx, int result, const struct error *e) {
    struct make *m = ctx;
    struct buf *b = &m->call->out;
    if (result >= 0) {
        auth_put_account(m->call->server->auth, &m->account);
        auth_put_token(m->call->server->auth, &m->token);
        json_open(b, '{');
        json_pair_int(b, "id", m->token.id);
        json_pair_str(b, "name", m->token.name);
        json_pair_str(b, "user", m->account.name);
        json_pair_str(b, "role", auth_role_name(m->token.role));
        accounts_put_time(b, "expires", m->token.expires);
        json_pair_str(b, "token", m->text);
        json_close(b, '}');
    }
    call_end(m->call, result < 0 ? result : 201, e);
    secrets_forget(m, sizeof *m);
    free(m);
}

static int read_wish(const struct call *c, struct token *ret, struct error *e) {
    const char *name = call_field(c, "name"), *role = call_field(c, "role");
    double life_s = 0;
    int r = accounts_may_make(&c->who, e);
    if (r == 0) r = rules_check_label("name", name, e);
    if (r == 0) r = call_field_number(c, "expires_s", 0, (double)TOKEN_LIFE_MAX_S, 0, &life_s, e);
    if (r < 0) return r;
    ret->role = ROLE_MEMBER;
    if (role && !auth_role_parse(role, &ret->role)) return fail(e, -EINVAL, "role: must be member or admin");
    if (ret->role > c->who.role) return fail(e, -EACCES, "a token has at most the role of its maker");
    snprintf(ret->name, sizeof ret->name, "%s", name);
    ret->created = accounts_now_s();
    ret->expires = life_s > 0 ? ret->created + (int64_t)life_s : 0;
    return 0;
}

int accounts_token_make(struct call *c, struct error *e) {
    struct token wish = {0};
    int r = read_wish(c, &wish, e);
    if (r < 0) return r;
    struct make *m = calloc(1, sizeof *m);
    if (!m) abort();
    m->call = c;
    m->who = c->who;
    m->owner = auth_setup(c->server->auth)->owner;
    m->token = wish;
    memcpy(m->text, TOKEN_PREFIX, sizeof TOKEN_PREFIX);
    secrets_make(m->text + sizeof TOKEN_PREFIX - 1);
    secrets_hash("token", m->text, m->token.hash);
    return accounts_submit(c, write_token, token_written, m, e);
}

/* ---- what is ended ---- */

struct end {
    struct call *call;
    int64_t id;
};

static int submit_end(struct call *c, int64_t id, state_work_fn work, state_done_fn done, struct error *e) {
    struct end *end = calloc(1, sizeof *end);
    if (!end) abort();
    *end = (struct end){.call = c, .id = id};
    return accounts_submit(c, work, done, end, e);
}

static int write_token_end(struct sql *db, void *ctx, struct error *e) {
    return store_drop_token(db, ((struct end *)ctx)->id, e);
}

static void token_ended(void *ctx, int result, const struct error *e) {
    struct end *end = ctx;
    if (result >= 0) auth_drop_token(end->call->server->auth, end->id);
    call_end(end->call, result < 0 ? result : 204, e);
    free(end);
}

int accounts_token_end(struct call *c, struct error *e) {
    int64_t id;
    size_t count;
    const struct token *tokens = auth_tokens(c->server->auth, &count);
    int r = accounts_id("token", c->param[0], &id, e);
    if (r < 0) return r;
    for (size_t i = 0; i < count; i++)
        if (tokens[i].id == id && (tokens[i].user == c->who.user || c->who.role == ROLE_ADMIN))
            return submit_end(c, id, write_token_end, token_ended, e);
    return fail(e, -ENOENT, "there is no token %lld", (long long)id);
}

/* ---- sessions ---- */

static void put_session(struct buf *b, const struct call *c, const struct session *s) {
    json_open(b, '{');
    json_pair_int(b, "id", s->id);
    json_pair_str(b, "user", name_of(c, s->user));
    json_pair_int(b, "created", s->created);
    json_pair_int(b, "last_seen", s->seen);
    json_pair_str(b, "address", s->address);
    json_pair_str(b, "agent", s->agent);
    json_pair_bool(b, "is_current", c->who.means == BY_SESSION && c->who.id == s->id);
    json_close(b, '}');
}

int accounts_sessions(struct call *c, struct error *e) {
    bool is_all;
    size_t count;
    const struct session *sessions = auth_sessions(c->server->auth, &count);
    int r = wants_all(c, &is_all, e);
    if (r < 0) return r;
    json_open(&c->out, '{');
    json_key(&c->out, "sessions");
    json_open(&c->out, '[');
    for (size_t i = 0; i < count; i++)
        if (is_all || (c->who.user && sessions[i].user == c->who.user)) put_session(&c->out, c, &sessions[i]);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    return 0;
}

static int write_session_end(struct sql *db, void *ctx, struct error *e) {
    return store_drop_session(db, ((struct end *)ctx)->id, e);
}

static void session_ended(void *ctx, int result, const struct error *e) {
    struct end *end = ctx;
    if (result >= 0) auth_drop_session(end->call->server->auth, end->id);
    call_end(end->call, result < 0 ? result : 204, e);
    free(end);
}

int accounts_session_end(struct call *c, struct error *e) {
    int64_t id;
    size_t count;
    const struct session *sessions = auth_sessions(c->server->auth, &count);
    int r = accounts_id("session", c->param[0], &id, e);
    if (r < 0) return r;
    for (size_t i = 0; i < count; i++)
        if (sessions[i].id == id && (sessions[i].user == c->who.user || c->who.role == ROLE_ADMIN))
            return submit_end(c, id, write_session_end, session_ended, e);
    return fail(e, -ENOENT, "there is no session %lld", (long long)id);
}
