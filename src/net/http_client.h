/* HTTP out, one request a call: an API over TCP, TLS or a Unix socket (ours, Docker's), a webhook, and mail by SMTP. It
 * blocks its caller up to the given time, so daemons call it from a thread of their own. libcurl is known in
 * http_client.c only. Redirects are not followed; a body beyond its limit is an error, never cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

#define HTTP_CLIENT_HEADERS_MAX 16

/* A header line of the answer that is wanted, too; "" where it did not come, or does not fit. */
struct http_wanted {
    const char *name;
    char value[64];
};

struct http_ask {
    const char *method;    /* NULL: GET */
    const char *url;       /* http:// or https://; with unix_path the host in it is not looked up */
    const char *unix_path; /* NULL: TCP */
    const char *headers[HTTP_CLIENT_HEADERS_MAX]; /* "Name: value"; NULL ends */
    const void *body;                             /* NULL: none */
    size_t body_len;
    size_t most;              /* bytes of the answer; 0: 16 MiB */
    int connect_ms, total_ms; /* 0: 5 s to connect, 30 s in all; total_ms -1: no end (streams) */
    const char *ca_file;      /* NULL: the system's */
    bool no_link_local;       /* 169.254.0.0/16, fe80::/10, where clouds tell secrets, are refused, by whatever name */
    struct http_wanted *wanted;
    size_t wanted_count;
    /* Streams: called with each piece as it comes; a negative result ends it and is returned. Then the answer's body stays
     * empty, unless its status is an error's. */
    int (*piece)(void *ctx, const char *bytes, size_t n);
    bool (*is_over)(void *ctx); /* asked about once a second and at every piece; may be NULL */
    void *ctx;
};

struct http_answer {
    int status;
    struct buf body;
    char type[64], location[256];
};

void http_answer_done(struct http_answer *a);

/* 0 when an answer came, whatever its status; else a negative errno (-ECONNREFUSED, -ETIMEDOUT, -EMSGSIZE, ...) and a
 * sentence that names the host but no secret of the URL. */
int http_ask(const struct http_ask *ask, struct http_answer *ret, struct error *e) MUST_CHECK;

struct mail {
    const char *url;             /* smtp://host:25, smtps://host:465; STARTTLS is used where it is offered */
    const char *user, *password; /* NULL: none */
    const char *ca_file;         /* who vouches for the server; NULL or "": those of this machine */
    const char *from, *to;       /* to: several with commas */
    const char *message;         /* headers, an empty line, text */
    size_t len;
    int total_ms;
};
int mail_send(const struct mail *m, struct error *e) MUST_CHECK;

/* Once, before threads. */
int http_client_start(struct error *e) MUST_CHECK;
