/* Who calls, and what he may do. Accounts, sessions and tokens are kept in memory beside the state file, so that a
 * request costs a look-up; the file is changed first, the memory after the commit. Everything here belongs to the loop's
 * thread. Secrets are never kept, only their hashes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "server/auth_limit.h"
#include "server/auth_rules.h"
#include "server/auth_store.h"
#include "server/auth_work.h"
#include "server/state.h"

#define AUTH_SESSION_IDLE_S (30ll * 24 * 3600)
#define AUTH_LINK_S (15ll * 60)
#define AUTH_FIRST_LINK_S (24ll * 3600)

/* What a route asks for. */
enum auth_need {
    OPEN,       /* nothing */
    LOCAL_OPEN, /* nothing on loopback and Unix listeners; else any sign-in */
    MEMBER,     /* somebody who is signed in */
    ADMIN
};

enum auth_means { BY_NOTHING, BY_SESSION, BY_TOKEN, BY_PEER };

/* A request as far as it matters here. Headers that were not sent are NULL. */
struct auth_ask {
    const char *cookie, *authorization, *host, *origin, *fetch_site, *csrf, *content_type;
    const char *address; /* of the caller, as text; "unix" on the Unix socket */
    bool is_mutating;    /* not GET or HEAD */
    bool has_body;
    bool is_unix, is_loopback; /* where it came in */
    bool is_tls;               /* as the browser sees it: also behind a trusted proxy that says so */
    uid_t uid;                 /* on a Unix socket */
};

struct caller {
    enum auth_role role; /* ROLE_NOBODY: not signed in */
    enum auth_means means;
    int64_t user;            /* id of the account; 0: a Unix user who has none yet */
    int64_t id;              /* of the session or the token */
    char name[RULES_NAME];   /* "" for nobody */
    char csrf[SECRETS_TEXT]; /* what a page must send with X-CSRF-Token; only with a session */
    uid_t uid;               /* BY_PEER */
    char unix_name[RULES_NAME];
    bool is_named; /* the machine has a user of that number */
};

enum auth_verdict { AUTH_GOOD, AUTH_UNAUTHENTICATED, AUTH_FORBIDDEN, AUTH_CSRF, AUTH_BAD_REQUEST };

struct auth_setup {
    struct state *state;
    uid_t owner;            /* of the instance: an administrator on the Unix socket, as root is */
    const char *base_path;  /* "/" or "/gpumgr"; the text must stay */
    const char *public_url; /* or "" */
};

struct auth;

/* Loads what is kept. Before state_start. */
int auth_new(const struct auth_setup *setup, struct auth **ret, struct error *e) MUST_CHECK;
void auth_free(struct auth *a); /* accepts NULL */

/* Before the first request: the thread for passwords. */
int auth_start(struct auth *a, state_post_fn post, void *loop, struct error *e) MUST_CHECK;

/* Who calls. AUTH_GOOD, with ROLE_NOBODY when there is no sign-in or an old cookie; a token that is wrong, revoked or
 * expired is AUTH_UNAUTHENTICATED with a sentence, since nobody sends one by mistake. */
enum auth_verdict auth_identify(struct auth *a, const struct auth_ask *ask, int64_t now_s, struct caller *ret,
                                struct error *e);

/* Whether he may. A mutating call with a cookie must also carry its CSRF token and come from a page of ours. */
enum auth_verdict auth_permit(const struct auth *a, const struct auth_ask *ask, const struct caller *caller,
                              enum auth_need need, struct error *e);

/* Every minute: writes when sessions and tokens were last used, forgets what has expired. */
void auth_tick(struct auth *a, int64_t now_s);
/* Before the end: the same, up to the last second. */
void auth_flush(struct auth *a, int64_t now_s);

/* One line of the audit log, written soon: every mutating call has one, refused ones too. */
/* Before a call of somebody who is signed in is carried out; NULL: too much waits. Ended by auth_audit_end. */
struct audit_open *auth_audit_begin(struct auth *a, const struct caller *caller, const char *address,
                                    const char *method, const char *path, int64_t now_s);
void auth_audit_end(struct auth *a, struct audit_open *open, int status);
void auth_audit(struct auth *a, const struct caller *caller, const char *address, const char *method, const char *path,
                int status, int64_t now_s);

/* ---- for the handlers (accounts*.c): the memory follows the file ---- */

struct state *auth_state(struct auth *a);
struct limit *auth_limit(struct auth *a);
struct work *auth_work(struct auth *a);
const struct auth_setup *auth_setup(const struct auth *a);

const struct account *auth_account(const struct auth *a, int64_t id);
const struct account *auth_account_named(const struct auth *a, const char *name);
void auth_put_account(struct auth *a, const struct account *account);
void auth_drop_account(struct auth *a, int64_t id); /* with its sessions and tokens */
void auth_put_session(struct auth *a, const struct session *s);
bool auth_drop_session(struct auth *a, int64_t id);
void auth_drop_sessions_of(struct auth *a, int64_t user, int64_t but); /* all but one (0: all) */
void auth_put_token(struct auth *a, const struct token *t);
bool auth_drop_token(struct auth *a, int64_t id);

/* Somebody who was let in before: whether he is still signed in, and still who he was; his rights become those that he has now. */
bool auth_is_still(const struct auth *a, struct caller *who, int64_t now_s);
bool auth_is_empty(const struct auth *a); /* no account at all: the first start */
const struct account *auth_accounts(const struct auth *a, size_t *ret_count);
const struct session *auth_sessions(const struct auth *a, size_t *ret_count);
const struct token *auth_tokens(const struct auth *a, size_t *ret_count);
