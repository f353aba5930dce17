/* What http_server.c (listening, reading, time) and http_reply.c (answering) share of a connection. */
#pragma once

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/uio.h>

#include "net/http_server.h"

enum conn_state {
    CONN_HEAD,   /* waits for a request, or for the rest of its head */
    CONN_BODY,   /* for its body */
    CONN_BUSY,   /* it is with whoever answers */
    CONN_FLUSH,  /* the answer goes out */
    CONN_STREAM, /* an answer without an end */
    CONN_SOCKET, /* a WebSocket: net/http_socket.h */
    CONN_LINGER, /* closed for writing: what still comes is thrown away, or the last reply would be lost with it */
    CONN_DEAD,   /* to be freed by the reaper */
};

struct http_listener;

struct http_conn {
    struct http_conn *next, **back; /* of the server's list */
    struct http_conn *next_dead;
    struct http_server *server;
    struct bufferevent *bev;
    int fd;
    bool is_tls, is_processing;
    bool is_last, is_ended; /* closed after this reply; the other side has sent all */
    enum conn_state state;
    int64_t deadline_ns;
    size_t looked;     /* bytes of the input that hold no end of a head */
    size_t body_max;   /* of this request */
    size_t queued;     /* bytes in the output when it was last looked at, */
    int64_t moved_ns;  /* and when they last became fewer */
    size_t stream_max; /* bytes that may wait for a slow reader */
    struct http_chunks chunks;
    void *socket; /* of a WebSocket; until the connection is freed */
    struct http_request request;
};

struct http_server {
    struct loop *loop;
    struct http_service service;
    struct http_limits limits;
    struct http_listener *listeners;
    struct http_conn *conns, *dead;
    struct event *reaper, *ticker;
    unsigned count;
    bool is_draining;
    const char *common;
    int64_t date_s;
    char date[64];
};

/* Ends a connection soon: safe from anywhere, and a second time. */
void conn_kill(struct http_conn *c);
/* The reply is out: the next request, or the end. */
void conn_replied(struct http_conn *c);
size_t conn_output(const struct http_conn *c);

/* Of a WebSocket: bytes came, what was sent has left, time passed, the connection ends. */
void conn_socket_read(struct http_conn *c);
void conn_socket_written(struct http_conn *c);
void conn_socket_tick(struct http_conn *c, int64_t now_ns);
void conn_socket_free(struct http_conn *c);
