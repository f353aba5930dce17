/* One request on its way through a route: who asks, what was given, what will be answered. The route's tables say which
 * parameters and fields there may be; what is not in them was refused before the handler sees the call.
 *
 * A handler writes JSON to `out` and returns
 *   0          200 with `out`, or 204 where it is empty
 *   a status   the same with that status (201, 202)
 *   negative   the errno's reply with the sentence of e; `out` is dropped
 *   CALL_LATER it keeps the call and ends it by call_end, from the loop's thread, once
 *   CALL_DONE  it has answered by http_reply or a stream and wants no more of the call */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_read.h"
#include "net/http_server.h"
#include "server/auth.h"
#include "server/state.h"

struct audit_open;
struct server;
struct route;

/* The caller's own answer may also be -EKEYREJECTED (csrf) or -ENOKEY (unauthenticated). */
enum { CALL_LATER = 1, CALL_DONE = 2 };
enum { CALL_PARAMS_MAX = 2, CALL_FIELDS_MAX = 16 };

struct call {
    struct server *server;
    struct http_request *request; /* NULL once the caller is gone: what is written then goes nowhere */
    const struct route *route;
    struct caller who;
    const char *param[CALL_PARAMS_MAX]; /* what stands in the path for {name}, in order */
    struct buf out, room;               /* room: where the params lie */
    char address[48];                   /* of the caller; "unix" on the Unix socket */
    bool is_mutating;                   /* neither GET nor HEAD: it goes into the audit log */
    bool is_tls;                        /* as the browser sees it: also by the word of a trusted proxy */
    bool takes_gzip;                    /* and is far enough away for it to be worth the time */
    bool is_packed;                     /* out is gzip'd already */
    struct audit_open *audit;           /* its line of the audit log, begun before it is carried out; NULL: none yet */
    void *ctx;                          /* for a handler that answers later */
    /* private: values of the query's and the body's fields in the order of the route's tables */
    char *query[CALL_FIELDS_MAX], *body[CALL_FIELDS_MAX];
};

/* A query parameter's or a body field's value as text; NULL: not given. name must be in the route's table. */
const char *call_query(const struct call *c, const char *name);
bool call_query_is_true(const struct call *c, const char *name); /* given, and neither 0 nor false */
/* The header Idempotency-Key, by which the same call may be made again; "": there is none. */
int call_key(const struct call *c, const char **ret, struct error *e) MUST_CHECK;
const char *call_field(const struct call *c, const char *name);

/* As a number within bounds, or `otherwise` when it is not given. */
int call_query_number(const struct call *c, const char *name, double least, double most, double otherwise, double *ret,
                      struct error *e) MUST_CHECK;
int call_field_number(const struct call *c, const char *name, double least, double most, double otherwise, double *ret,
                      struct error *e) MUST_CHECK;

/* Packs an answer if that is asked for and worth it. On any thread, for a handler that answers later; call_end does it for
 * the rest. */
void call_pack(struct call *c, struct buf *out);

/* Ends a call that was kept. */
void call_end(struct call *c, int result, const struct error *e);
/* Has `work` done on the store thread and `done` after it, with a copy of *ctx that `done` frees. CALL_LATER, or negative: neither
 * will be called. */
int call_store(struct call *c, const void *ctx, size_t size, state_work_fn work, state_done_fn done, struct error *e)
    MUST_CHECK;

/* An answer in the form that all errors have; code: a stable word. The call itself goes on until call_end or CALL_DONE. */
void call_refuse(struct call *c, int status, const char *code, const char *sentence);
void call_refuse_request(struct http_request *r, int status, const char *code, const char *sentence);
const char *call_code_of(int status);

/* For the router. */
struct call *call_new(struct server *s, struct http_request *r, const struct route *route);
void call_free(struct call *c);
int call_read_query(struct call *c, struct error *e) MUST_CHECK;
int call_read_body(struct call *c, struct error *e) MUST_CHECK;
