/* The routes of people and programs: signing in and out, links, tokens, sessions, accounts, the audit log. Each answers one
 * route (call.h says what it may return). What changes something is written before it is answered. */
#pragma once

#include "base/error.h"
#include "server/auth.h"
#include "server/call.h"
#include "server/routes.h"

/* accounts.c */
int accounts_session(struct call *c, struct error *e);
int accounts_sign_in(struct call *c, struct error *e);
int accounts_sign_out(struct call *c, struct error *e);
int accounts_link(struct call *c, struct error *e);

/* accounts_tokens.c */
int accounts_tokens(struct call *c, struct error *e);
int accounts_token_make(struct call *c, struct error *e);
int accounts_token_end(struct call *c, struct error *e);
int accounts_sessions(struct call *c, struct error *e);
int accounts_session_end(struct call *c, struct error *e);

/* accounts_users.c */
int accounts_users(struct call *c, struct error *e);
int accounts_user(struct call *c, struct error *e);
int accounts_user_put(struct call *c, struct error *e);
int accounts_user_drop(struct call *c, struct error *e);
int accounts_password(struct call *c, struct error *e);
int accounts_audit(struct call *c, struct error *e);

/* What they take. */
extern const struct route_field accounts_sign_in_body[], accounts_link_body[], accounts_token_body[],
    accounts_all_query[], accounts_user_body[], accounts_password_body[], accounts_audit_query[];

/* ---- shared by these files ---- */

int64_t accounts_now_s(void);

/* Whether this caller may make what signs in: sessions and Unix users may; a token may when it is an administrator's, or
 * whoever found one could stay for ever. */
int accounts_may_make(const struct caller *who, struct error *e) MUST_CHECK;

/* On the store thread: the caller's own account; a Unix user who has none gets one. */
int accounts_own(struct sql *db, const struct caller *who, uid_t owner, int64_t now_s, struct account *ret,
                 struct error *e) MUST_CHECK;

/* Hands a job to the store; when it cannot be taken the job is freed and the call refused. CALL_LATER, or negative. */
int accounts_submit(struct call *c, state_work_fn work, state_done_fn done, void *job, struct error *e) MUST_CHECK;

/* "17" as an id; -ENOENT with a sentence for anything else. */
int accounts_id(const char *what, const char *text, int64_t *ret, struct error *e) MUST_CHECK;

void accounts_put_time(struct buf *b, const char *key, int64_t time_s); /* null for 0 */

/* Has it been tried too often? Then -EAGAIN, a sentence, and the header Retry-After. */
int accounts_limit(struct call *c, const struct limit_policy *p, uint64_t key, struct error *e) MUST_CHECK;
