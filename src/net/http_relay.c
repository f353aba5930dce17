#include "net/http_relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/listen.h"
#include "net/tls.h"

#define CONNS_MAX 128
#define READ_AHEAD (128 * 1024)
#define PIECE (64 * 1024)     /* of what goes up: fewer, larger ones are cheaper than as they came */
#define WRITE_LOW (64 * 1024) /* bytes in the output below which more are asked for */
#define IDLE_NS (60 * NS_PER_S)
#define HEAD_NS (30 * NS_PER_S)
#define STALL_NS (60 * NS_PER_S)
#define LINGER_NS (2 * NS_PER_S)
#define LISTENERS_MAX 8

enum state {
    HEAD,   /* waits for a request */
    PASS,   /* one is on its way, or its answer */
    TUNNEL, /* bytes both ways */
    FLUSH,  /* the last answer goes out */
    LINGER, /* closed for writing; what still comes is thrown away */
    DEAD,
};

struct relay_conn {
    struct relay_conn *next, **back, *next_dead;
    struct relay *relay;
    struct bufferevent *bev;
    int fd;
    enum state state;
    struct in6_addr address;
    bool is_processing, is_ended; /* is_ended: the browser has sent all */
    bool is_last;                 /* closed after this answer */
    int64_t deadline_ns, moved_ns;
    size_t looked, queued; /* queued: bytes in the output when it was last looked at */
    struct buf bytes;      /* the request's head */
    struct http_pass request;
    /* what goes up */
    void *up, *ctx;
    bool is_open, is_again; /* is_again: this request was sent to one that was kept, and may be sent once more */
    struct buf head_up;     /* not sent yet */
    size_t head_sent;
    int64_t left_up; /* of the request's body; -1 chunked */
    bool is_up_done;
    struct http_chunks chunks_up;
    /* what comes down */
    struct buf head_down;
    size_t looked_down, owed; /* owed: bytes from up that have not left */
    bool has_answer, is_kept; /* is_kept: what is behind keeps alive */
    int64_t left_down;
    struct http_chunks chunks_down;
};

struct relay {
    struct loop *loop;
    struct relay_service service;
    struct tls *tls;
    struct evconnlistener *listeners[LISTENERS_MAX];
    unsigned listener_count, count;
    struct relay_conn *conns, *dead;
    struct event *reaper, *ticker;
};

static void process(struct relay_conn *c);

/* ---- the end of a connection ---- */

static size_t output_of(const struct relay_conn *c) { return evbuffer_get_length(bufferevent_get_output(c->bev)); }

static void close_up(struct relay_conn *c) {
    void *up = c->up;
    c->up = NULL;
    c->is_open = false;
    c->owed = 0;
    if (up) c->relay->service.close(up);
}

static void kill_conn(struct relay_conn *c) {
    if (c->state == DEAD) return;
    c->state = DEAD;
    c->relay->count--;
    close_up(c);
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
    c->next_dead = c->relay->dead;
    c->relay->dead = c;
    event_active(c->relay->reaper, EV_TIMEOUT, 0);
}

static void conn_free(struct relay_conn *c) {
    if (c->state != DEAD) c->relay->count--;
    close_up(c);
    if (c->relay->service.gone) c->relay->service.gone(c->relay->service.ctx, c);
    *c->back = c->next;
    if (c->next) c->next->back = c->back;
    bufferevent_free(c->bev);
    buf_done(&c->bytes);
    buf_done(&c->head_up);
    buf_done(&c->head_down);
    free(c);
}

static void reap(evutil_socket_t fd, short what, void *ctx) {
    struct relay *r = ctx;
    while (r->dead) {
        struct relay_conn *c = r->dead;
        r->dead = c->next_dead;
        conn_free(c);
    }
}

/* All is said: goes, when the output is empty. */
static void finish(struct relay_conn *c) {
    if (c->state == DEAD) return;
    close_up(c);
    c->state = FLUSH;
    c->moved_ns = clock_boot_ns();
    c->queued = output_of(c);
    if (c->queued) return;
    if (c->is_ended) {
        kill_conn(c);
        return;
    }
    c->state = LINGER;
    c->deadline_ns = clock_boot_ns() + LINGER_NS;
    shutdown(c->fd, SHUT_WR);
}

static void next_request(struct relay_conn *c) {
    if (!c->is_kept) close_up(c);
    c->state = HEAD;
    c->looked = c->looked_down = c->head_sent = 0;
    c->has_answer = c->is_again = false;
    buf_clear(&c->head_up);
    buf_clear(&c->head_down);
    c->deadline_ns = clock_boot_ns() + IDLE_NS;
    if (c->is_ended && !evbuffer_get_length(bufferevent_get_input(c->bev)))
        finish(c);
    else
        process(c);
}

static bool is_answered(const struct relay_conn *c) { return c->has_answer && c->left_down == 0; }

/* The answer is whole. If the request is not, nobody can tell where the next one would begin. */
static void answered(struct relay_conn *c) {
    if (c->is_last || !c->is_up_done)
        finish(c);
    else
        next_request(c);
}

/* ---- replies of our own ---- */

void relay_reply(struct relay_conn *c, int status, const char *fields, const char *type, const void *body, size_t len) {
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (c->state == DEAD) return;
    bool is_head = c->request.method && strcmp(c->request.method, "HEAD") == 0;
    bool has_body = c->request.length != 0; /* it was not read: the connection cannot go on */
    c->is_last |= has_body || !c->request.head.keeps_alive;
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n%s%s%s%s%s\r\n",
                        status, http_phrase(status), len, type ? "Content-Type: " : "", type ? type : "",
                        type ? "\r\n" : "", fields ? fields : "", c->is_last ? "Connection: close\r\n" : "");
    if (!is_head && len) evbuffer_add(out, body, len);
    c->is_up_done = true;
    c->is_kept = c->up != NULL && c->is_open;
    c->state = PASS;
    answered(c);
}

static void refuse(struct relay_conn *c, int code, const char *sentence) {
    c->request = (struct http_pass){.method = "GET", .target = "/"};
    c->is_last = true;
    relay_reply(c, http_status_of(code), NULL, "text/plain; charset=utf-8", sentence, strlen(sentence));
}

/* ---- up ---- */

/* A part of the request's body; returns how much of it was taken. */
static size_t body_up(struct relay_conn *c, const char *bytes, size_t n) {
    struct relay_service *s = &c->relay->service;
    if (c->left_up >= 0) {
        if ((int64_t)n > c->left_up) n = (size_t)c->left_up;
        c->left_up -= (int64_t)n;
        c->is_up_done = c->left_up == 0;
    } else {
        AUTO(buf_done) struct buf unused = {0};
        struct error e;
        long took = http_chunks_take(&c->chunks_up, bytes, n, SIZE_MAX, &unused, &e);
        if (took < 0) {
            kill_conn(c);
            return 0;
        }
        n = (size_t)took;
        c->is_up_done = c->chunks_up.state == HTTP_CHUNKS_END;
    }
    if (n) s->write(c->up, bytes, n);
    return n;
}

static void pump_up(struct relay_conn *c) {
    struct relay_service *s = &c->relay->service;
    struct evbuffer *in = bufferevent_get_input(c->bev);
    if (!c->up || !c->is_open) return;
    size_t room = s->room(c->up), n = c->head_up.len - c->head_sent;
    if (n > room) n = room;
    if (n) s->write(c->up, c->head_up.s + c->head_sent, n);
    c->head_sent += n;
    if (c->head_sent < c->head_up.len) return;
    while (c->state == PASS || c->state == TUNNEL) {
        room = s->room(c->up);
        n = evbuffer_get_length(in) < PIECE ? evbuffer_get_length(in) : PIECE;
        if (n > room) n = room;
        if (!n || (c->state == PASS && c->is_up_done)) break;
        const char *bytes = (const char *)evbuffer_pullup(in, (ssize_t)n);
        if (c->state == TUNNEL)
            s->write(c->up, bytes, n);
        else
            n = body_up(c, bytes, n);
        if (!n) break;
        c->moved_ns = clock_boot_ns();
        if (c->state != DEAD) evbuffer_drain(in, n);
    }
    if (c->state == TUNNEL && c->is_ended && !evbuffer_get_length(in)) s->end(c->up);
}

static void open_up(struct relay_conn *c) {
    struct error e;
    c->is_open = false;
    c->owed = 0;
    c->head_sent = 0;
    int r = c->relay->service.open(c->relay->service.ctx, c, &c->up, &e);
    if (r >= 0) return;
    c->up = NULL;
    c->relay->service.failed(c->relay->service.ctx, c, r, e.text);
}

void relay_pass(struct relay_conn *c, const struct buf *head) {
    const struct http_pass *p = &c->request;
    buf_clear(&c->head_up);
    buf_add(&c->head_up, head->s, head->len);
    if (p->length > 0) buf_printf(&c->head_up, "Content-Length: %lld\r\n", (long long)p->length);
    if (p->length < 0) buf_puts(&c->head_up, "Transfer-Encoding: chunked\r\n");
    if (p->is_websocket) buf_puts(&c->head_up, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    buf_puts(&c->head_up, "\r\n");
    c->head_sent = 0;
    c->left_up = p->length;
    c->chunks_up = c->chunks_down = (struct http_chunks){0};
    c->is_up_done = p->length == 0;
    c->is_last = !p->head.keeps_alive;
    c->state = PASS;
    c->moved_ns = clock_boot_ns();
    c->deadline_ns = INT64_MAX;
    if (p->head.expects_continue) evbuffer_add(bufferevent_get_output(c->bev), "HTTP/1.1 100 Continue\r\n\r\n", 25);
    c->is_again = c->up != NULL && p->length == 0; /* one that was kept may be about to close */
    if (c->up)
        pump_up(c);
    else
        open_up(c);
}

/* ---- down ---- */

/* A part of the answer's body, as it came: returns how much of it was of it, negative when it is none. */
static long body_down(struct relay_conn *c, const char *bytes, size_t n, struct error *e) {
    if (c->left_down == -1) {
        AUTO(buf_done) struct buf unused = {0};
        long took = http_chunks_take(&c->chunks_down, bytes, n, SIZE_MAX, &unused, e);
        if (took >= 0 && c->chunks_down.state == HTTP_CHUNKS_END) c->left_down = 0;
        return took;
    }
    if (c->left_down >= 0) {
        if ((int64_t)n > c->left_down) n = (size_t)c->left_down;
        c->left_down -= (int64_t)n;
    }
    return (long)n;
}

static void put_down(struct relay_conn *c, const void *bytes, size_t n) {
    if (!output_of(c)) c->moved_ns = clock_boot_ns();
    evbuffer_add(bufferevent_get_output(c->bev), bytes, n);
    c->owed += n;
}

static void begin_answer(struct relay_conn *c, const struct http_pass *p) {
    AUTO(buf_done) struct buf head = {0};
    bool is_tunnel = p->status == 101;
    c->relay->service.response(c->relay->service.ctx, c, p, &head);
    bool has_length = http_field(&p->head, "content-length") != NULL;
    if (has_length && p->status != 204 && !is_tunnel)
        buf_printf(&head, "Content-Length: %lld\r\n", (long long)p->head.length);
    if (p->head.is_chunked && p->length == -1) buf_puts(&head, "Transfer-Encoding: chunked\r\n");
    if (p->length == HTTP_UNTIL_CLOSE) c->is_last = true;
    c->is_kept = p->head.keeps_alive && p->length != HTTP_UNTIL_CLOSE;
    if (is_tunnel)
        buf_puts(&head, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (c->is_last)
        buf_puts(&head, "Connection: close\r\n");
    else if (c->request.head.minor == 0)
        buf_puts(&head, "Connection: keep-alive\r\n");
    buf_puts(&head, "\r\n");
    if (!output_of(c)) c->moved_ns = clock_boot_ns();
    evbuffer_add(bufferevent_get_output(c->bev), head.s, head.len);
    c->has_answer = true;
    c->left_down = p->length;
    if (is_tunnel) c->state = TUNNEL;
}

/* Bytes of the answer's head; returns how many of these were, or a negative errno. */
static long head_down(struct relay_conn *c, const char *bytes, size_t n, struct error *e) {
    size_t before = c->head_down.len;
    buf_add(&c->head_down, bytes, n);
    size_t seen = c->head_down.len < HTTP_HEAD_MAX + 1 ? c->head_down.len : HTTP_HEAD_MAX + 1;
    long end = http_head_find(c->head_down.s, seen, &c->looked_down, e);
    if (end <= 0) return end < 0 ? end : (long)n;
    struct http_pass p;
    int r = http_pass_response(c->head_down.s, (size_t)end, c->request.method, &p, e);
    if (r < 0) return r;
    if (p.status == 101 && !c->request.is_websocket)
        return fail(e, -EPROTO, "it changed to a protocol nobody asked for");
    if (p.status >= 200 || p.status == 101) begin_answer(c, &p); /* else: more is to come, and we said 100 ourselves */
    buf_clear(&c->head_down);
    c->looked_down = 0;
    return end - (long)before;
}

static void broken(struct relay_conn *c, int code, const char *sentence) {
    close_up(c);
    if (c->has_answer || c->state != PASS)
        kill_conn(c);
    else
        c->relay->service.failed(c->relay->service.ctx, c, code, sentence);
}

void relay_up_data(struct relay_conn *c, const void *data, size_t n) {
    const char *bytes = data;
    struct error e;
    while (n && c->up) {
        long took = 0;
        if (c->state == TUNNEL) {
            put_down(c, bytes, n);
            return;
        }
        if (c->state != PASS || is_answered(c)) { /* words that nobody asked for */
            close_up(c);
            if (c->state == PASS) answered(c);
            return;
        }
        if (!c->has_answer) {
            took = head_down(c, bytes, n, &e);
            if (took >= 0) c->relay->service.took(c->up, (size_t)took);
        } else {
            took = body_down(c, bytes, n, &e);
            if (took > 0) put_down(c, bytes, (size_t)took);
        }
        if (took < 0) {
            broken(c, -EPROTO, e.text);
            return;
        }
        bytes += took;
        n -= (size_t)took;
    }
    if (c->state == PASS && is_answered(c)) answered(c);
}

void relay_up_opened(struct relay_conn *c) {
    c->is_open = true;
    pump_up(c);
}

void relay_up_room(struct relay_conn *c) { pump_up(c); }

/* What is behind has nothing more to say. */
static void no_more(struct relay_conn *c, int code, const char *sentence) {
    if (c->state == TUNNEL || (c->state == PASS && c->has_answer && c->left_down == HTTP_UNTIL_CLOSE)) {
        finish(c);
    } else if (c->state == PASS && !c->has_answer && !c->head_down.len && c->is_again) {
        c->is_again = false; /* it was closed as the request came: asked again, once */
        close_up(c);
        open_up(c);
    } else if (c->state == PASS) {
        broken(c, code, sentence);
    } else {
        close_up(c);
    }
}

void relay_up_ended(struct relay_conn *c) { no_more(c, -ECONNRESET, "it closed the connection without an answer"); }

void relay_up_closed(struct relay_conn *c, int code, const char *sentence) {
    c->up = NULL;
    c->is_open = false;
    c->owed = 0;
    no_more(c, code ? code : -ECONNRESET, code && *sentence ? sentence : "it closed the connection without an answer");
}

/* ---- the browser's side ---- */

static void take_head(struct relay_conn *c) {
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t len = evbuffer_get_length(in);
    struct error e;
    if (!len) return;
    if (!c->looked) c->deadline_ns = clock_boot_ns() + HEAD_NS;
    if (len > HTTP_HEAD_MAX + 1) len = HTTP_HEAD_MAX + 1;
    const char *bytes = (const char *)evbuffer_pullup(in, (ssize_t)len);
    long end = http_head_find(bytes, len, &c->looked, &e);
    if (end == 0) return;
    if (end > 0) {
        buf_clear(&c->bytes);
        buf_add(&c->bytes, bytes, (size_t)end);
        evbuffer_drain(in, (size_t)end);
        c->looked = 0;
        end = http_pass_request(c->bytes.s, c->bytes.len, &c->request, &e);
    }
    if (end < 0)
        refuse(c, (int)end, e.text);
    else
        c->relay->service.request(c->relay->service.ctx, c, &c->request);
}

static void process(struct relay_conn *c) {
    if (c->is_processing) return;
    c->is_processing = true;
    for (;;) {
        struct evbuffer *in = bufferevent_get_input(c->bev);
        size_t before = evbuffer_get_length(in);
        enum state was = c->state;
        if (was == HEAD)
            take_head(c);
        else if (was == PASS || was == TUNNEL)
            pump_up(c);
        else if (was == LINGER || was == FLUSH)
            evbuffer_drain(in, before);
        if (c->state == DEAD || (c->state == was && evbuffer_get_length(in) == before)) break;
    }
    c->is_processing = false;
}

static void on_read(struct bufferevent *bev, void *ctx) { process(ctx); }

static void on_written(struct bufferevent *bev, void *ctx) {
    struct relay_conn *c = ctx;
    size_t left = output_of(c);
    c->moved_ns = clock_boot_ns();
    if (c->owed > left && c->up) {
        size_t n = c->owed - left;
        c->owed = left;
        c->relay->service.took(c->up, n);
    }
    if (c->state == FLUSH && !left) finish(c);
}

static void on_event(struct bufferevent *bev, short what, void *ctx) {
    struct relay_conn *c = ctx;
    if (what & BEV_EVENT_EOF) c->is_ended = true;
    bool goes_on = c->state == FLUSH || c->state == TUNNEL || (c->state == PASS && c->is_up_done);
    if (what & BEV_EVENT_ERROR || (c->is_ended && !goes_on))
        kill_conn(c);
    else if (c->state == TUNNEL)
        pump_up(c);
    else if (c->is_ended)
        c->is_last = true;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
                      void *ctx) {
    struct relay *r = ctx;
    const int one = 1;
    struct bufferevent *bev = NULL;
    if (r->count < CONNS_MAX)
        bev = r->tls ? tls_accept(r->tls, loop_base(r->loop), fd)
                     : bufferevent_socket_new(loop_base(r->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    struct relay_conn *c = calloc(1, sizeof *c);
    if (!c) abort();
    *c = (struct relay_conn){.next = r->conns,
                             .back = &r->conns,
                             .relay = r,
                             .bev = bev,
                             .fd = fd,
                             .deadline_ns = clock_boot_ns() + IDLE_NS};
    if (address->sa_family == AF_INET6) {
        c->address = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    } else {
        c->address.s6_addr[10] = c->address.s6_addr[11] = 0xff;
        memcpy(&c->address.s6_addr[12], &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    }
    if (c->next) c->next->back = &c->next;
    r->conns = c;
    r->count++;
    bufferevent_set_max_single_read(bev, READ_AHEAD);
    bufferevent_set_max_single_write(bev, READ_AHEAD);
    bufferevent_setcb(bev, on_read, on_written, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD);
    bufferevent_setwatermark(bev, EV_WRITE, WRITE_LOW, 0);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* A browser that takes nothing, or does not send what it said it would; a body that waits for what is behind is not its fault. */
static bool is_late(struct relay_conn *c, int64_t now_ns) {
    size_t left = output_of(c);
    if (c->state == HEAD || c->state == LINGER) return now_ns > c->deadline_ns;
    bool waits_for_us = !left && (c->state != PASS || c->is_up_done || !c->is_open ||
                                  evbuffer_get_length(bufferevent_get_input(c->bev)) > 0);
    if (waits_for_us || left < c->queued) c->moved_ns = now_ns;
    c->queued = left;
    return now_ns - c->moved_ns > STALL_NS;
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    struct relay *r = ctx;
    int64_t now_ns = clock_boot_ns();
    for (struct relay_conn *c = r->conns; c; c = c->next)
        if (c->state != DEAD && is_late(c, now_ns)) kill_conn(c);
    for (unsigned i = 0; i < r->listener_count; i++) evconnlistener_enable(r->listeners[i]);
}

/* ---- a port ---- */

/* No descriptors left: a pause, in which some connection may end. */
static void on_accept_error(struct evconnlistener *listener, void *ctx) { evconnlistener_disable(listener); }

static void add_listener(void *ctx, struct evconnlistener *l, const struct sockaddr *address) {
    struct relay *r = ctx;
    if (r->listener_count == LISTENERS_MAX) {
        evconnlistener_free(l);
        return;
    }
    r->listeners[r->listener_count++] = l;
    evconnlistener_set_cb(l, on_accept, r);
    evconnlistener_set_error_cb(l, on_accept_error);
}

int relay_new(struct loop *l, const char *address, struct tls *tls, const struct relay_service *service,
              struct relay **ret, struct error *e) {
    struct relay *r = calloc(1, sizeof *r);
    const struct timeval second = {.tv_sec = 1};
    if (!r) abort();
    *r = (struct relay){.loop = l, .service = *service, .tls = tls};
    r->reaper = event_new(loop_base(l), -1, 0, reap, r);
    r->ticker = event_new(loop_base(l), -1, EV_PERSIST, on_tick, r);
    if (!r->reaper || !r->ticker || event_add(r->ticker, &second) < 0) abort();
    int result = listen_tcp(loop_base(l), address, add_listener, r, e);
    if (result < 0)
        relay_free(r);
    else
        *ret = r;
    return result;
}

void relay_free(struct relay *r) {
    if (!r) return;
    for (unsigned i = 0; i < r->listener_count; i++) evconnlistener_free(r->listeners[i]);
    r->dead = NULL;
    for (struct relay_conn *c = r->conns, *next; c; c = next) {
        next = c->next;
        conn_free(c);
    }
    event_free(r->reaper);
    event_free(r->ticker);
    free(r);
}

void relay_cut(struct relay *r, bool (*fits)(void *ctx, const struct relay_conn *c), void *ctx) {
    for (struct relay_conn *c = r->conns; c; c = c->next)
        if (c->state != DEAD && (!fits || fits(ctx, c))) kill_conn(c);
}

unsigned relay_count(const struct relay *r) { return r->count; }

const struct http_pass *relay_request(const struct relay_conn *c) { return &c->request; }
void relay_address(const struct relay_conn *c, struct in6_addr *ret) { *ret = c->address; }
bool relay_is_tls(const struct relay_conn *c) { return c->relay->tls != NULL; }
void relay_set_ctx(struct relay_conn *c, void *ctx) {
    if (ctx != c->ctx) close_up(c);
    c->ctx = ctx;
}
void *relay_ctx(const struct relay_conn *c) { return c->ctx; }
