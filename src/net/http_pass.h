/* Heads of HTTP/1.1 that are passed on: any method and target of a request, and responses. Strict about where a message ends, as
 * net/http_parse.h is; all else stays as it came. Pure. */
#pragma once

#include "net/http_parse.h"

#define HTTP_UNTIL_CLOSE (-2) /* of a response: its body is all that comes */

struct http_pass {
    const char *method, *target; /* of a request; the target as it was sent */
    int status;                  /* of a response */
    const char *phrase;
    struct http_head head; /* fields and framing: path, query and method mean nothing */
    int64_t length;        /* of the body: -1 chunked, or HTTP_UNTIL_CLOSE */
    bool is_websocket;     /* a request that asks to become one */
};

int http_pass_request(char *bytes, size_t len, struct http_pass *ret, struct error *e) MUST_CHECK;
/* to: the method that it answers. A switch of protocols has no body: what comes after it is not ours to understand. */
int http_pass_response(char *bytes, size_t len, const char *to, struct http_pass *ret, struct error *e) MUST_CHECK;

/* Whether a field is for the next stop only, or says how the body is sent. */
bool http_pass_is_hop(const struct http_head *h, const char *name);
