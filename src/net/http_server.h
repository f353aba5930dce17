/* HTTP/1.1 for the server: connections, limits, replies. Requests come whole (head and body) to one function, which
 * answers at once, later, or by a stream that goes on until one side ends it. Everything here belongs to the loop's
 * thread; another thread answers by loop_post. One request of a connection is under way at a time.
 *
 * A request's memory is its connection's: it is valid until it was answered, or until its `gone` callback was called. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_parse.h"
#include "net/loop.h"

#define HTTP_BODY_MAX (1024 * 1024)

/* What one side may ask of the other; all sizes in bytes. */
struct http_limits {
    unsigned connections; /* beyond these an idle one makes room, or the new one is closed */
    unsigned per_address; /* of one address beyond loopback that is no proxy's */
    int64_t idle_ns;      /* between two requests */
    int64_t request_ns;   /* from a request's first byte to its last */
    int64_t stall_ns;     /* a reader that takes nothing for so long is gone */
    size_t stream_queue;  /* what waits for the reader of a stream */
};
extern const struct http_limits http_usual_limits;

struct http_server;
struct http_conn;
struct tls;

/* Who is at the other end. */
struct http_peer {
    bool is_unix, is_loopback, is_tls; /* is_loopback: the listener's own address is one */
    uid_t uid;                         /* of a Unix socket's other end */
    struct in6_addr address;           /* IPv4 as ::ffff:a.b.c.d; of a Unix socket :: */
};

struct http_request {
    struct http_head head;
    struct buf body;
    struct http_peer peer;
    void *ctx; /* for whoever answers later */
    /* private */
    struct http_conn *conn;
    struct buf bytes, fields;
    void (*gone)(struct http_request *r);
};

struct http_service {
    /* After the head: how large a body may be; its route is known then. */
    size_t (*body_max)(void *ctx, const struct http_request *r);
    void (*serve)(void *ctx, struct http_request *r);
    /* A request that could not even be parsed: says what a refusal looks like. */
    void (*refuse)(void *ctx, struct http_request *r, int status, const char *sentence);
    /* A proxy's address: it may have as many connections as there are. NULL: nobody is one. */
    bool (*is_proxy)(void *ctx, const struct in6_addr *address);
    void *ctx;
};

/* Bytes that many replies share; freed with the last of them. */
struct http_shared {
    unsigned holders;
    size_t len;
    char bytes[];
};
struct http_shared *http_shared_new(const void *bytes, size_t len); /* one holder */
void http_shared_drop(struct http_shared *s);                       /* accepts NULL */

int http_server_new(struct loop *l, const struct http_service *service, struct http_server **ret, struct error *e)
    MUST_CHECK;
void http_server_free(struct http_server *s); /* accepts NULL; every open request's `gone` is called */

/* address: HOST:PORT or [V6]:PORT, * for all; each address that the host's name has is listened on. tls may be NULL. */
int http_listen_tcp(struct http_server *s, const char *address, struct tls *tls, struct error *e) MUST_CHECK;
int http_listen_unix(struct http_server *s, const char *path, mode_t mode, struct error *e) MUST_CHECK;

/* What is listened on by TCP, one "http://127.0.0.1:7000" a line: ports that were left to the system are filled in. */
void http_addresses(const struct http_server *s, struct buf *ret);

/* Whether anybody but this machine can reach a listener that speaks plain HTTP. */
bool http_is_exposed(const struct http_server *s);

/* No new connections; idle ones are closed, the others after their reply; streams end at once. http_is_drained: all over. */
void http_drain(struct http_server *s);
bool http_is_drained(const struct http_server *s);

/* Other limits than the usual ones. */
void http_set_limits(struct http_server *s, const struct http_limits *limits);

/* Lines that all replies carry, besides the fixed ones of http_reply.c; each ends with CRLF. The text must stay. */
void http_set_common(struct http_server *s, const char *lines);

/* "192.0.2.1", "2001:db8::1" */
void http_address_text(const struct in6_addr *a, char *ret, size_t room);

unsigned http_connections(const struct http_server *s);

/* ---- replies ---- */

/* A further header line of the reply to come. The value must not hold line breaks (they become blanks). */
void http_add_field(struct http_request *r, const char *name, const char *fmt, ...) PRINTF(3, 4);

/* Answers. type may be NULL where there is no body. The bytes are copied; shared ones are held until they are out. */
void http_reply(struct http_request *r, int status, const char *type, const void *body, size_t len);
void http_reply_shared(struct http_request *r, int status, const char *type, struct http_shared *body);

/* For an answer that comes later: called once if the connection ends before it. */
void http_on_gone(struct http_request *r, void (*gone)(struct http_request *r));

/* A reply without an end: its bytes go out as they are written. A reader that is too slow is dropped: `gone` follows. */
void http_stream_begin(struct http_request *r, const char *type);
void http_stream_write(struct http_request *r, struct http_shared *bytes);
/* How much can be written before anybody is too slow. */
size_t http_stream_room(const struct http_request *r);
void http_stream_end(struct http_request *r);
