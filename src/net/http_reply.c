/* Answers. A reply is tried on the socket at once and only its rest is queued: most fit into the socket's buffer, and a
 * stream to five hundred readers costs one system call each instead of three. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "net/http_conn.h"

/* What every reply says to a browser: no page of ours may be framed, sniffed, or fetch from elsewhere. */
#define FIXED_FIELDS                                                                                                   \
    "Content-Security-Policy: default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; "          \
    "form-action 'self'; frame-ancestors 'none'\r\n"                                                                   \
    "X-Content-Type-Options: nosniff\r\n"                                                                              \
    "X-Frame-Options: DENY\r\n"                                                                                        \
    "Referrer-Policy: no-referrer\r\n"                                                                                 \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                                      \
    "Cross-Origin-Resource-Policy: same-origin\r\n"

/* ---- shared bytes ---- */

struct http_shared *http_shared_new(const void *bytes, size_t len) {
    struct http_shared *s = malloc(sizeof *s + len);
    if (!s) abort();
    s->holders = 1;
    s->len = len;
    memcpy(s->bytes, bytes, len);
    return s;
}

void http_shared_drop(struct http_shared *s) {
    if (s && --s->holders == 0) free(s);
}

static void release(const void *bytes, size_t len, void *ctx) { http_shared_drop(ctx); }

/* ---- bytes out ---- */

size_t conn_output(const struct http_conn *c) { return evbuffer_get_length(bufferevent_get_output(c->bev)); }

/* Sends what the socket takes; returns how much that was. A broken socket takes nothing: its event tells. */
static size_t send_now(struct http_conn *c, const struct iovec *parts, int count) {
    if (c->is_tls || conn_output(c) > 0) return 0;
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
    ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : (size_t)n;
}

static void queue_shared(struct http_conn *c, struct http_shared *s, size_t from) {
    if (from >= s->len) return;
    s->holders++;
    if (evbuffer_add_reference(bufferevent_get_output(c->bev), s->bytes + from, s->len - from, release, s) < 0) abort();
}

/* Head and body, whole. The body's bytes are copied unless they are shared. */
static void put_out(struct http_conn *c, const struct buf *head, const void *body, size_t len,
                    struct http_shared *shared) {
    struct iovec parts[2] = {
        {head->s,                 head->len},
        {(void *)(uintptr_t)body, len      }
    };
    size_t sent = send_now(c, parts, len ? 2 : 1);
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (sent < head->len) evbuffer_add(out, head->s + sent, head->len - sent);
    size_t from = sent > head->len ? sent - head->len : 0;
    if (shared)
        queue_shared(c, shared, from);
    else if (from < len)
        evbuffer_add(out, (const char *)body + from, len - from);
}

/* ---- the head of a reply ---- */

static const char *date_now(struct http_server *s) {
    int64_t now_s = clock_real_ns() / NS_PER_S;
    if (now_s != s->date_s) {
        time_t t = (time_t)now_s;
        struct tm tm;
        gmtime_r(&t, &tm);
        /* not strftime's names: they depend on the locale */
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        snprintf(s->date, sizeof s->date, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday, tm.tm_mday,
                 months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        s->date_s = now_s;
    }
    return s->date;
}

void http_add_field(struct http_request *r, const char *name, const char *fmt, ...) {
    va_list ap;
    buf_puts(&r->fields, name);
    buf_puts(&r->fields, ": ");
    size_t from = r->fields.len;
    va_start(ap, fmt);
    buf_vprintf(&r->fields, fmt, ap);
    va_end(ap);
    for (char *s = r->fields.s + from; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = ' ';
    buf_puts(&r->fields, "\r\n");
}

/* len -1: there is no end. */
static void write_head(struct http_request *r, int status, const char *type, long long len, struct buf *head) {
    struct http_conn *c = r->conn;
    buf_reserve(head, 1024 + r->fields.len);
    buf_printf(head, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, http_phrase(status), date_now(c->server));
    if (type) buf_printf(head, "Content-Type: %s\r\n", type);
    if (len >= 0 && status != 204 && status != 304) buf_printf(head, "Content-Length: %lld\r\n", len);
    if (c->is_last || len < 0)
        buf_puts(head, "Connection: close\r\n");
    else if (r->head.minor == 0)
        buf_puts(head, "Connection: keep-alive\r\n");
    if (!r->fields.s || !strstr(r->fields.s, "Cache-Control: ")) buf_puts(head, "Cache-Control: no-store\r\n");
    buf_puts(head, FIXED_FIELDS);
    if (c->server->common) buf_puts(head, c->server->common);
    if (r->fields.len) buf_add(head, r->fields.s, r->fields.len);
    buf_puts(head, "\r\n");
}

static void reply(struct http_request *r, int status, const char *type, const void *body, size_t len,
                  struct http_shared *shared) {
    struct http_conn *c = r->conn;
    r->gone = NULL;
    if (c->state == CONN_DEAD) return;
    /* what was not read of a request cannot be told from the next one */
    if (c->state == CONN_HEAD || c->state == CONN_BODY || !r->head.keeps_alive || c->server->is_draining)
        c->is_last = true;
    AUTO(buf_done) struct buf head = {0};
    write_head(r, status, type, (long long)len, &head);
    bool has_body = r->head.method != HTTP_HEAD && status != 204 && status != 304;
    put_out(c, &head, body, has_body ? len : 0, has_body ? shared : NULL);
    c->state = CONN_FLUSH;
    c->queued = conn_output(c);
    c->moved_ns = clock_boot_ns();
    if (!c->queued) conn_replied(c);
}

void http_reply(struct http_request *r, int status, const char *type, const void *body, size_t len) {
    reply(r, status, type, body, len, NULL);
}

void http_reply_shared(struct http_request *r, int status, const char *type, struct http_shared *body) {
    reply(r, status, type, body->bytes, body->len, body);
}

void http_on_gone(struct http_request *r, void (*gone)(struct http_request *r)) { r->gone = gone; }

/* ---- streams ---- */

void http_stream_begin(struct http_request *r, const char *type) {
    struct http_conn *c = r->conn;
    if (c->state == CONN_DEAD) return;
    AUTO(buf_done) struct buf head = {0};
    c->is_last = true;
    write_head(r, 200, type, -1, &head);
    put_out(c, &head, NULL, 0, NULL);
    c->state = CONN_STREAM;
    c->stream_max = c->server->limits.stream_queue;
    c->moved_ns = clock_boot_ns();
    /* a slow reader's bytes wait here, where they are counted, and not by the megabyte in the kernel */
    int room = (int)c->server->limits.stream_queue;
    setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    buf_done(&r->body);
}

void http_stream_write(struct http_request *r, struct http_shared *bytes) {
    struct http_conn *c = r->conn;
    if (c->state != CONN_STREAM) return;
    size_t waiting = conn_output(c);
    if (!waiting && bytes->len + c->server->limits.stream_queue > c->stream_max)
        c->stream_max = bytes->len + c->server->limits.stream_queue;
    if (waiting + bytes->len > c->stream_max) {
        conn_kill(c);
        return;
    }
    if (!waiting) c->moved_ns = clock_boot_ns();
    struct iovec part = {bytes->bytes, bytes->len};
    queue_shared(c, bytes, send_now(c, &part, 1));
}

size_t http_stream_room(const struct http_request *r) {
    const struct http_conn *c = r->conn;
    size_t waiting = conn_output(c), most = c->server->limits.stream_queue;
    return c->state == CONN_STREAM && waiting < most ? most - waiting : 0;
}

void http_stream_end(struct http_request *r) {
    struct http_conn *c = r->conn;
    r->gone = NULL;
    if (c->state != CONN_STREAM) return;
    c->state = CONN_FLUSH;
    if (!conn_output(c)) conn_replied(c);
}
