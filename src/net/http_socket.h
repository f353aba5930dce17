/* A WebSocket on the server's HTTP: a route's handler answers a request with one, and has messages both ways from then on. All of it
 * belongs to the loop's thread. The request stays the handle, as with streams (net/http_server.h).
 *
 *   if (http_socket_begin(r, &events, ctx, e) < 0) ...     101, or a sentence why not
 *   http_socket_send(r, bytes, n, is_text)                  at most http_socket_room(r) bytes; `room` tells of more
 *   http_socket_pause(r, true)                              what the browser sends waits there (its own back-pressure)
 *   http_socket_end(r, WEBSOCKET_NORMAL, "...")             says why and closes; `gone` is not called any more
 *
 * Pings are answered here, and sent every half minute; a browser that takes nothing for http_limits.stall_ns is gone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/http_server.h"
#include "net/websocket.h"

#define HTTP_SOCKET_MESSAGE_MAX (256u << 10)

struct http_socket_events {
    void (*message)(void *ctx, const void *bytes, size_t n, bool is_text);
    void (*room)(void *ctx); /* what was sent has left; may be NULL */
    void (*gone)(void *ctx); /* once: the browser closed, or its connection ended. The request is not valid after it */
};

/* The request must be one that nobody has answered. protocol: what Sec-WebSocket-Protocol says, or NULL. */
int http_socket_begin(struct http_request *r, const struct http_socket_events *events, void *ctx, const char *protocol,
                      struct error *e) MUST_CHECK;
void http_socket_send(struct http_request *r, const void *bytes, size_t n, bool is_text);
size_t http_socket_room(const struct http_request *r);
void http_socket_pause(struct http_request *r, bool is_paused);
void http_socket_end(struct http_request *r, int code, const char *reason);
