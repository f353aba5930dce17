#include "net/http_socket.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/http_conn.h"

#define PING_NS (30 * NS_PER_S)

struct http_socket {
    struct http_socket_events events;
    void *ctx;
    struct websocket in;
    int64_t ping_ns;         /* when the last one was sent */
    bool is_paused, is_full; /* is_full: room is told of when there is some */
};

static void put_out(struct http_conn *c, const struct buf *b) {
    if (!conn_output(c)) c->moved_ns = clock_boot_ns();
    evbuffer_add(bufferevent_get_output(c->bev), b->s, b->len);
}

static void say(struct http_conn *c, enum websocket_opcode opcode, const void *bytes, size_t n) {
    AUTO(buf_done) struct buf b = {0};
    websocket_put(&b, opcode, bytes, n);
    put_out(c, &b);
}

/* Says why, and closes when that is out. */
static void hang_up(struct http_conn *c, int code, const char *reason) {
    AUTO(buf_done) struct buf b = {0};
    if (c->state != CONN_SOCKET) return;
    websocket_put_close(&b, code, reason);
    put_out(c, &b);
    c->state = CONN_FLUSH;
    c->is_last = true;
    bufferevent_enable(c->bev, EV_READ); /* what still comes is thrown away */
}

void conn_socket_free(struct http_conn *c) {
    struct http_socket *s = c->socket;
    if (!s) return;
    c->socket = NULL;
    websocket_done(&s->in);
    if (s->events.gone) s->events.gone(s->ctx);
    free(s);
}

static void answer_close(struct http_conn *c, const struct websocket_message *m) {
    hang_up(c, m->code, "");
    struct http_socket *s = c->socket;
    void (*gone)(void *) = s->events.gone;
    s->events.gone = NULL;
    if (gone) gone(s->ctx);
}

static void take_message(struct http_conn *c, const struct websocket_message *m) {
    struct http_socket *s = c->socket;
    switch (m->opcode) {
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY: s->events.message(s->ctx, m->bytes, m->len, m->opcode == WEBSOCKET_TEXT); break;
    case WEBSOCKET_PING:
        if (http_socket_room(&c->request)) say(c, WEBSOCKET_PONG, m->bytes, m->len);
        break;
    case WEBSOCKET_CLOSE: answer_close(c, m); break;
    default: break;
    }
}

void conn_socket_read(struct http_conn *c) {
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct http_socket *s = c->socket;
    while (c->state == CONN_SOCKET && !s->is_paused && evbuffer_get_length(in)) {
        struct websocket_message m;
        struct error e;
        int code = WEBSOCKET_PROTOCOL;
        size_t n = evbuffer_get_contiguous_space(in), taken = 0;
        int r = websocket_take(&s->in, evbuffer_pullup(in, (ssize_t)n), n, &taken, &m, &code, &e);
        evbuffer_drain(in, taken);
        if (r > 0) take_message(c, &m);
        if (r < 0) {
            const struct websocket_message bad = {.code = code};
            hang_up(c, code, e.text);
            answer_close(c, &bad); /* is over already: tells whoever has it */
        }
    }
    if (c->state != CONN_SOCKET) evbuffer_drain(in, evbuffer_get_length(in));
}

void conn_socket_written(struct http_conn *c) {
    struct http_socket *s = c->socket;
    if (!s->is_full) return;
    s->is_full = false;
    if (s->events.room) s->events.room(s->ctx);
}

void conn_socket_tick(struct http_conn *c, int64_t now_ns) {
    struct http_socket *s = c->socket;
    if (now_ns - s->ping_ns < PING_NS || conn_output(c)) return;
    s->ping_ns = now_ns;
    say(c, WEBSOCKET_PING, NULL, 0);
}

int http_socket_begin(struct http_request *r, const struct http_socket_events *events, void *ctx, const char *protocol,
                      struct error *e) {
    struct http_conn *c = r->conn;
    char accept[WEBSOCKET_ACCEPT];
    int result = websocket_asked(&r->head, e);
    if (result < 0) return result;
    if (c->state != CONN_BUSY) return fail(e, -EPIPE, "the caller is gone");
    struct http_socket *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct http_socket){.events = *events, .ctx = ctx, .ping_ns = clock_boot_ns()};
    s->in.max = HTTP_SOCKET_MESSAGE_MAX;
    AUTO(buf_done) struct buf head = {0};
    websocket_accept(http_field(&r->head, "sec-websocket-key"), accept);
    buf_printf(&head,
               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Accept: %s\r\n",
               accept);
    if (protocol) buf_printf(&head, "Sec-WebSocket-Protocol: %s\r\n", protocol);
    buf_puts(&head, "\r\n");
    r->gone = NULL;
    c->socket = s;
    c->state = CONN_SOCKET;
    c->deadline_ns = INT64_MAX;
    put_out(c, &head);
    buf_done(&r->body);
    return 0;
}

void http_socket_send(struct http_request *r, const void *bytes, size_t n, bool is_text) {
    struct http_conn *c = r->conn;
    if (c->state != CONN_SOCKET) return;
    say(c, is_text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY, bytes, n);
    ((struct http_socket *)c->socket)->is_full = true;
}

size_t http_socket_room(const struct http_request *r) {
    const struct http_conn *c = r->conn;
    size_t waiting = conn_output(c), most = c->server->limits.stream_queue;
    return c->state == CONN_SOCKET && waiting < most ? most - waiting : 0;
}

void http_socket_pause(struct http_request *r, bool is_paused) {
    struct http_conn *c = r->conn;
    if (c->state != CONN_SOCKET) return;
    struct http_socket *s = c->socket;
    bool was = s->is_paused;
    s->is_paused = is_paused;
    if (is_paused)
        bufferevent_disable(c->bev, EV_READ);
    else
        bufferevent_enable(c->bev, EV_READ);
    if (was && !is_paused) bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

void http_socket_end(struct http_request *r, int code, const char *reason) {
    struct http_conn *c = r->conn;
    if (!c->socket) return;
    ((struct http_socket *)c->socket)->events.gone = NULL;
    hang_up(c, code, reason);
}
