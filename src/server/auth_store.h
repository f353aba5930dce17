/* Accounts, links, sessions and tokens as rows of the state file. All functions run on the store thread (or before it
 * starts); times are unix seconds. Refusals that a person meets are sentences. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/auth_rules.h"
#include "server/secrets.h"
#include "server/state_sql.h"

enum auth_role { ROLE_NOBODY, ROLE_MEMBER, ROLE_ADMIN };

const char *auth_role_name(enum auth_role r);             /* "member" */
bool auth_role_parse(const char *s, enum auth_role *ret); /* member or admin */

enum {
    STORE_ACCOUNTS_MAX = 10000,
    STORE_SESSIONS_MAX = 4096, /* the one unused longest gives way */
    STORE_SESSIONS_EACH = 64,
    STORE_TOKENS_MAX = 4096,
    STORE_TOKENS_EACH = 64,
    STORE_LINKS_EACH = 16, /* open at the same time; the oldest gives way */
};

#define STORE_TOKEN_SHOWN_S (30ll * 24 * 3600) /* an expired token is still listed for so long */

struct account {
    int64_t id, uid, created; /* uid: -1 when it is no Unix user's */
    enum auth_role role;
    bool is_disabled;
    char name[RULES_NAME];
    char password[SECRETS_PASSWORD]; /* "": none, links only */
};

struct session {
    int64_t id, user, created, seen, written; /* written: what the file says of seen */
    uint8_t hash[SECRETS_HASH];
    char address[48], agent[160];
};

struct token {
    int64_t id, user, created, expires, seen, written; /* expires 0: never */
    enum auth_role role;
    uint8_t hash[SECRETS_HASH];
    char name[101];
};

/* Every row, at the start. */
struct store_reader {
    void *ctx;
    void (*account)(void *ctx, const struct account *a);
    void (*session)(void *ctx, const struct session *s);
    void (*token)(void *ctx, const struct token *t);
};
int store_read_all(struct sql *db, const struct store_reader *r, struct error *e) MUST_CHECK;

/* Accounts. store_add fills in the id; -EEXIST: the name is taken. */
int store_add_account(struct sql *db, struct account *a, struct error *e) MUST_CHECK;
int store_account(struct sql *db, int64_t id, struct account *ret, struct error *e) MUST_CHECK;
int store_find_account(struct sql *db, const char *name, struct account *ret, struct error *e) MUST_CHECK;
/* The account of a Unix user, made when there is none. When uid was another name's before (a new user with an old
 * number) that account is left behind: it loses the uid. */
int store_unix_account(struct sql *db, const char *name, int64_t uid, enum auth_role role, int64_t now_s,
                       struct account *ret, struct error *e) MUST_CHECK;
/* Role, password, uid and whether it may sign in. The last administrator stays one: -EBUSY. */
int store_put_account(struct sql *db, const struct account *a, struct error *e) MUST_CHECK;
int store_drop_account(struct sql *db, int64_t id, struct error *e) MUST_CHECK;

/* One-time links. store_use_link: the account it signs in, and the link is gone; -ENOENT for every kind of bad one. */
int store_add_link(struct sql *db, int64_t user, const uint8_t hash[SECRETS_HASH], int64_t now_s, int64_t expires,
                   bool is_first, struct error *e) MUST_CHECK;
int store_use_link(struct sql *db, const uint8_t hash[SECRETS_HASH], int64_t now_s, struct account *ret,
                   struct error *e) MUST_CHECK;
/* 1: the link of the first start still waits. */
int store_first_link_waits(struct sql *db, int64_t now_s, struct error *e) MUST_CHECK;

/* Sessions. Adding one may end older ones: *ret_ended is the id of the one that gave way, or 0. */
int store_add_session(struct sql *db, struct session *s, int64_t *ret_ended, struct error *e) MUST_CHECK;
int store_drop_session(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
int store_drop_sessions_of(struct sql *db, int64_t user, int64_t but, struct error *e) MUST_CHECK;
int store_session_seen(struct sql *db, int64_t id, int64_t seen, struct error *e) MUST_CHECK;

int store_add_token(struct sql *db, struct token *t, struct error *e) MUST_CHECK;
int store_drop_token(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
int store_token_seen(struct sql *db, int64_t id, int64_t seen, struct error *e) MUST_CHECK;

/* What has expired: links, sessions idle since `idle_before`, tokens. */
int store_trim(struct sql *db, int64_t now_s, int64_t idle_before, struct error *e) MUST_CHECK;
