/* An HTTP port whose requests are passed on to something else, and its answers back, byte by byte: bodies of any size in bounded memory,
 * answers without a length, WebSockets. What is behind it, and who may, says whoever owns it. Belongs to the loop's thread.
 *
 * A connection has one thing behind it at a time (`up`), which is kept from one request to the next as long as both sides keep alive. The
 * owner opens it, and tells what comes from it by the relay_up_ functions; what goes to it, the relay says by the functions of relay_up. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_pass.h"
#include "net/loop.h"

struct relay;
struct relay_conn;
struct tls;

struct relay_service {
    void *ctx;
    /* A request's head came: answered by relay_reply, or passed on by relay_pass, at once. */
    void (*request)(void *ctx, struct relay_conn *c, const struct http_pass *p);
    /* The answer's head came: appends it as the browser is to see it, all but what says how the body is sent, and no empty line. */
    void (*response)(void *ctx, struct relay_conn *c, const struct http_pass *p, struct buf *head);
    /* Opens what is behind; relay_up_opened or relay_up_closed follows. Negative: at once, with a sentence. */
    int (*open)(void *ctx, struct relay_conn *c, void **ret_up, struct error *e);
    /* It could not be reached, or gave no answer: answered by relay_reply. */
    void (*failed)(void *ctx, struct relay_conn *c, int code, const char *sentence);
    /* The connection ends: what relay_set_ctx gave can go. May be NULL. */
    void (*gone)(void *ctx, struct relay_conn *c);
    size_t (*room)(void *up);
    void (*write)(void *up, const void *bytes, size_t n); /* at most room */
    void (*took)(void *up, size_t n);                     /* bytes that came from it have left */
    void (*end)(void *up);                                /* no more will be written */
    void (*close)(void *up);                              /* and nothing is told of it any more */
};

/* address: HOST:PORT. tls may be NULL. The service is copied. */
int relay_new(struct loop *l, const char *address, struct tls *tls, const struct relay_service *service,
              struct relay **ret, struct error *e) MUST_CHECK;
void relay_free(struct relay *r); /* accepts NULL; connections are cut off */
/* Ends connections that fit, all of them where `fits` is NULL. */
void relay_cut(struct relay *r, bool (*fits)(void *ctx, const struct relay_conn *c), void *ctx);
unsigned relay_count(const struct relay *r);

/* ---- for `request` and `failed` ---- */

void relay_reply(struct relay_conn *c, int status, const char *fields, const char *type, const void *body, size_t len);
/* head: the request as it goes on, with all lines but those that say how the body is sent, and no empty line. */
void relay_pass(struct relay_conn *c, const struct buf *head);

const struct http_pass *relay_request(const struct relay_conn *c);
void relay_address(const struct relay_conn *c, struct in6_addr *ret);
bool relay_is_tls(const struct relay_conn *c);
/* For whom the request is. What is behind was opened for him: another one's request on the same connection (a proxy before us keeps
 * few for all its browsers) is not sent there. */
void relay_set_ctx(struct relay_conn *c, void *ctx);
void *relay_ctx(const struct relay_conn *c);

/* ---- what is behind tells ---- */

void relay_up_opened(struct relay_conn *c);
void relay_up_data(struct relay_conn *c, const void *bytes, size_t n);
void relay_up_room(struct relay_conn *c);
void relay_up_ended(struct relay_conn *c);
void relay_up_closed(struct relay_conn *c, int code, const char *sentence); /* `up` is not valid any more */
