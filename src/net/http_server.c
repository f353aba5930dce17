/* Listening, reading, and the passing of time. */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http_conn.h"
#include "net/listen.h"
#include "net/tls.h"

#define LINGER_NS (2 * NS_PER_S)
#define READ_AHEAD (64 * 1024) /* bytes of a connection that are read before anyone asks for them */

const struct http_limits http_usual_limits = {.connections = 1024,
                                              .per_address = 128,
                                              .idle_ns = 60 * NS_PER_S,
                                              .request_ns = 30 * NS_PER_S,
                                              .stall_ns = 30 * NS_PER_S,
                                              .stream_queue = 256 * 1024};

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct evconnlistener *listener;
    struct tls *tls;
    bool is_unix, is_loopback;
    char url[96]; /* of TCP */
    char path[108];
};

/* ---- the end of a connection ---- */

void conn_kill(struct http_conn *c) {
    if (c->state == CONN_DEAD) return;
    c->state = CONN_DEAD;
    c->server->count--; /* it makes room at once */
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
    c->next_dead = c->server->dead;
    c->server->dead = c;
    event_active(c->server->reaper, EV_TIMEOUT, 0);
}

static void conn_free(struct http_conn *c) {
    struct http_request *r = &c->request;
    if (r->gone) {
        void (*gone)(struct http_request *) = r->gone;
        r->gone = NULL;
        gone(r);
    }
    conn_socket_free(c);
    *c->back = c->next;
    if (c->next) c->next->back = c->back;
    if (c->state != CONN_DEAD) c->server->count--;
    bufferevent_free(c->bev);
    buf_done(&r->bytes);
    buf_done(&r->body);
    buf_done(&r->fields);
    free(c);
}

static void reap(evutil_socket_t fd, short what, void *ctx) {
    struct http_server *s = ctx;
    while (s->dead) {
        struct http_conn *c = s->dead;
        s->dead = c->next_dead;
        conn_free(c);
    }
}

/* ---- a request comes in ---- */

static void request_reset(struct http_conn *c) {
    struct http_request *r = &c->request;
    buf_done(&r->body); /* a large one is not kept for the next */
    buf_clear(&r->fields);
    r->ctx = NULL;
    c->looked = 0;
    c->chunks = (struct http_chunks){0};
    c->state = CONN_HEAD;
    c->deadline_ns = clock_boot_ns() + c->server->limits.idle_ns;
}

static void refuse(struct http_conn *c, int code, const char *sentence) {
    if (c->state == CONN_HEAD) c->request.head = (struct http_head){.minor = 1, .path = "", .query = ""};
    c->request.head.keeps_alive = false;
    c->server->service.refuse(c->server->service.ctx, &c->request, http_status_of(code), sentence);
}

static void serve(struct http_conn *c) {
    c->state = CONN_BUSY;
    c->deadline_ns = INT64_MAX;
    c->server->service.serve(c->server->service.ctx, &c->request);
}

static void take_head(struct http_conn *c) {
    struct http_request *r = &c->request;
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t len = evbuffer_get_length(in);
    struct error e;
    if (!len) return;
    if (!c->looked) c->deadline_ns = clock_boot_ns() + c->server->limits.request_ns;
    if (len > HTTP_HEAD_MAX + 1) len = HTTP_HEAD_MAX + 1;
    const char *bytes = (const char *)evbuffer_pullup(in, (ssize_t)len);
    long end = bytes ? http_head_find(bytes, len, &c->looked, &e) : fail(&e, -ENOMEM, "no memory");
    if (end == 0) return;
    if (end > 0) {
        buf_clear(&r->bytes);
        buf_add(&r->bytes, bytes, (size_t)end);
        evbuffer_drain(in, (size_t)end);
        end = http_head_parse(r->bytes.s, r->bytes.len, &r->head, &e);
    }
    if (end < 0) {
        refuse(c, (int)end, e.text);
        return;
    }
    c->body_max = c->server->service.body_max(c->server->service.ctx, r);
    if (r->head.length > 0 && (uint64_t)r->head.length > c->body_max) {
        fail(&e, -EFBIG, "the body is larger than %zu bytes", c->body_max);
        refuse(c, -EFBIG, e.text);
        return;
    }
    c->state = CONN_BODY;
    if (r->head.expects_continue && !evbuffer_get_length(in))
        bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

static void take_body(struct http_conn *c) {
    struct http_request *r = &c->request;
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct error e;
    if (!r->head.is_chunked) {
        size_t want = (size_t)r->head.length - r->body.len, have = evbuffer_get_length(in),
               n = have < want ? have : want;
        buf_reserve(&r->body, n);
        evbuffer_remove(in, r->body.s + r->body.len, n);
        r->body.len += n;
        r->body.s[r->body.len] = 0;
        if (n == want) serve(c);
        return;
    }
    while (evbuffer_get_length(in)) {
        size_t n = evbuffer_get_contiguous_space(in);
        const char *bytes = (const char *)evbuffer_pullup(in, (ssize_t)n);
        long took = http_chunks_take(&c->chunks, bytes, n, c->body_max, &r->body, &e);
        if (took < 0) {
            refuse(c, (int)took, e.text);
            return;
        }
        evbuffer_drain(in, (size_t)took);
        if (c->chunks.state != HTTP_CHUNKS_END) continue;
        serve(c);
        return;
    }
}

/* Goes on as long as something changes: a reply that went out at once makes room for the next request. */
static void process(struct http_conn *c) {
    if (c->is_processing) return;
    c->is_processing = true;
    for (;;) {
        struct evbuffer *in = bufferevent_get_input(c->bev);
        size_t before = evbuffer_get_length(in);
        enum conn_state was = c->state;
        if (was == CONN_HEAD)
            take_head(c);
        else if (was == CONN_BODY)
            take_body(c);
        else if (was == CONN_SOCKET)
            conn_socket_read(c);
        else if (was == CONN_LINGER || was == CONN_STREAM)
            evbuffer_drain(in, before);
        if (c->state == CONN_DEAD || (c->state == was && evbuffer_get_length(in) == before)) break;
    }
    c->is_processing = false;
}

void conn_replied(struct http_conn *c) {
    if (!c->is_last && !c->is_ended) {
        request_reset(c);
        if (c->server->is_draining)
            conn_kill(c);
        else if (!c->is_processing)
            process(c);
        return;
    }
    if (c->is_ended) {
        conn_kill(c);
        return;
    }
    c->state = CONN_LINGER;
    c->deadline_ns = clock_boot_ns() + LINGER_NS;
    shutdown(c->fd, SHUT_WR);
}

static void on_read(struct bufferevent *bev, void *ctx) { process(ctx); }

static void on_written(struct bufferevent *bev, void *ctx) {
    struct http_conn *c = ctx;
    if (c->state == CONN_FLUSH) conn_replied(c);
    if (c->state == CONN_SOCKET) conn_socket_written(c);
}

static void on_event(struct bufferevent *bev, short what, void *ctx) {
    struct http_conn *c = ctx;
    /* Whoever has sent all may still read: the answer that is under way goes out. */
    c->is_ended = what & BEV_EVENT_EOF;
    if (what & BEV_EVENT_ERROR || (c->is_ended && c->state != CONN_FLUSH)) conn_kill(c);
}

/* ---- a connection comes in ---- */

static void peer_from(struct http_peer *p, const struct http_listener *l, int fd, const struct sockaddr *address) {
    *p = (struct http_peer){
        .is_unix = l->is_unix, .is_loopback = l->is_loopback, .is_tls = l->tls != NULL, .uid = (uid_t)-1};
    if (l->is_unix) {
        struct ucred who;
        socklen_t len = sizeof who;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0) p->uid = who.uid;
    } else if (address->sa_family == AF_INET) {
        p->address.s6_addr[10] = p->address.s6_addr[11] = 0xff;
        memcpy(&p->address.s6_addr[12], &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else {
        p->address = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    }
}

static bool is_idle(const struct http_conn *c) {
    return c->state == CONN_LINGER || (c->state == CONN_HEAD && !c->looked);
}

/* Who has waited longest between two requests makes room for who has something to ask. */
static bool make_room(struct http_server *s) {
    struct http_conn *idle = NULL;
    for (struct http_conn *c = s->conns; c; c = c->next)
        if (is_idle(c) && (!idle || c->deadline_ns < idle->deadline_ns)) idle = c;
    if (!idle) return false;
    conn_kill(idle);
    return true;
}

static bool is_crowded(struct http_server *s, const struct http_peer *p, const struct sockaddr *address) {
    if (s->count >= s->limits.connections && !make_room(s)) return true;
    if (p->is_unix || listen_is_loopback(address)) return false;
    if (s->service.is_proxy && s->service.is_proxy(s->service.ctx, &p->address)) return false;
    unsigned n = 0;
    for (const struct http_conn *c = s->conns; c; c = c->next)
        n += !c->request.peer.is_unix && memcmp(&c->request.peer.address, &p->address, sizeof p->address) == 0;
    return n >= s->limits.per_address;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
                      void *ctx) {
    struct http_listener *l = ctx;
    struct http_server *s = l->server;
    struct http_peer peer;
    int one = 1;
    peer_from(&peer, l, fd, address);
    if (is_crowded(s, &peer, address)) {
        close(fd);
        return;
    }
    if (!l->is_unix) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct bufferevent *bev = l->tls ? tls_accept(l->tls, loop_base(s->loop), fd)
                                     : bufferevent_socket_new(loop_base(s->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        close(fd);
        return;
    }
    struct http_conn *c = calloc(1, sizeof *c);
    if (!c) abort();
    *c = (struct http_conn){.server = s, .bev = bev, .fd = fd, .is_tls = l->tls != NULL};
    c->request.conn = c;
    c->request.peer = peer;
    request_reset(c);
    c->next = s->conns;
    c->back = &s->conns;
    if (c->next) c->next->back = &c->next;
    s->conns = c;
    s->count++;
    bufferevent_setcb(bev, on_read, on_written, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, READ_AHEAD);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* No descriptors left: a pause, in which some connection may end. */
static void on_accept_error(struct evconnlistener *listener, void *ctx) { evconnlistener_disable(listener); }

/* ---- time ---- */

static bool is_stalled(struct http_conn *c, int64_t now_ns) {
    size_t left = conn_output(c);
    if (!left || left < c->queued) c->moved_ns = now_ns;
    c->queued = left;
    return now_ns - c->moved_ns > c->server->limits.stall_ns;
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    struct http_server *s = ctx;
    int64_t now_ns = clock_boot_ns();
    for (struct http_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (c->state == CONN_DEAD) continue;
        if (c->state == CONN_FLUSH || c->state == CONN_STREAM || c->state == CONN_SOCKET) {
            if (is_stalled(c, now_ns))
                conn_kill(c);
            else if (c->state == CONN_SOCKET)
                conn_socket_tick(c, now_ns);
        } else if (now_ns > c->deadline_ns) {
            bool is_within = c->state == CONN_BODY || (c->state == CONN_HEAD && c->looked > 0);
            if (is_within)
                refuse(c, -ETIMEDOUT, "the request took too long to come");
            else
                conn_kill(c);
        }
    }
    for (struct http_listener *l = s->listeners; l && !s->is_draining; l = l->next) evconnlistener_enable(l->listener);
}

/* ---- the server ---- */

int http_server_new(struct loop *l, const struct http_service *service, struct http_server **ret, struct error *e) {
    struct http_server *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->loop = l;
    s->service = *service;
    s->reaper = event_new(loop_base(l), -1, 0, reap, s);
    s->ticker = event_new(loop_base(l), -1, EV_PERSIST, on_tick, s);
    if (!s->reaper || !s->ticker) {
        http_server_free(s);
        return fail(e, -ENOMEM, "the web server cannot be made");
    }
    http_set_limits(s, &http_usual_limits);
    *ret = s;
    return 0;
}

/* Looks four times within the shortest of them, and once a second at most. */
void http_set_limits(struct http_server *s, const struct http_limits *limits) {
    s->limits = *limits;
    int64_t least_ns = limits->idle_ns;
    if (limits->request_ns < least_ns) least_ns = limits->request_ns;
    if (limits->stall_ns < least_ns) least_ns = limits->stall_ns;
    int64_t every_us = least_ns / 4 / NS_PER_US;
    if (every_us > 1000000) every_us = 1000000;
    struct timeval every = {.tv_sec = every_us / 1000000, .tv_usec = every_us % 1000000};
    event_add(s->ticker, &every);
}

static void listeners_close(struct http_server *s) {
    while (s->listeners) {
        struct http_listener *l = s->listeners;
        s->listeners = l->next;
        if (l->listener) evconnlistener_free(l->listener);
        if (l->is_unix) unlink(l->path);
        free(l);
    }
}

void http_server_free(struct http_server *s) {
    if (!s) return;
    listeners_close(s);
    s->dead = NULL;
    for (struct http_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        conn_free(c);
    }
    if (s->reaper) event_free(s->reaper);
    if (s->ticker) event_free(s->ticker);
    free(s);
}

static struct http_listener *listener_add(struct http_server *s, struct evconnlistener *of) {
    struct http_listener *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (struct http_listener){.next = s->listeners, .server = s, .listener = of};
    s->listeners = l;
    evconnlistener_set_cb(of, on_accept, l);
    evconnlistener_set_error_cb(of, on_accept_error);
    return l;
}

static void url_of(struct http_listener *l) {
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    char host[64], port[16];
    if (getsockname(evconnlistener_get_fd(l->listener), (struct sockaddr *)&a, &len) < 0 ||
        getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    bool is_v6 = a.ss_family == AF_INET6;
    snprintf(l->url, sizeof l->url, "%s://%s%s%s:%s", l->tls ? "https" : "http", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", port);
}

struct listening {
    struct http_server *server;
    struct tls *tls;
};

static void tcp_listener(void *ctx, struct evconnlistener *of, const struct sockaddr *address) {
    const struct listening *listening = ctx;
    struct http_listener *l = listener_add(listening->server, of);
    l->tls = listening->tls;
    l->is_loopback = listen_is_loopback(address);
    url_of(l);
}

int http_listen_tcp(struct http_server *s, const char *address, struct tls *tls, struct error *e) {
    struct listening listening = {s, tls};
    return listen_tcp(loop_base(s->loop), address, tcp_listener, &listening, e);
}

int http_listen_unix(struct http_server *s, const char *path, mode_t mode, struct error *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) return fail(e, -ENAMETOOLONG, "%s: too long for a socket", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    unlink(path);
    errno = 0;
    struct evconnlistener *of =
        evconnlistener_new_bind(loop_base(s->loop), NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 1024,
                                (struct sockaddr *)&a, sizeof a);
    if (!of) return fail_errno(e, errno ? errno : EIO, "%s", path);
    struct http_listener *l = listener_add(s, of);
    l->is_unix = true;
    snprintf(l->path, sizeof l->path, "%s", path);
    if (chmod(path, mode) < 0) return fail_errno(e, errno, "%s", path);
    return 0;
}

void http_addresses(const struct http_server *s, struct buf *ret) {
    for (const struct http_listener *l = s->listeners; l; l = l->next)
        if (*l->url) buf_printf(ret, "%s\n", l->url);
}

bool http_is_exposed(const struct http_server *s) {
    for (const struct http_listener *l = s->listeners; l; l = l->next)
        if (!l->is_unix && !l->is_loopback && !l->tls) return true;
    return false;
}

void http_drain(struct http_server *s) {
    s->is_draining = true;
    listeners_close(s);
    for (struct http_conn *c = s->conns; c; c = c->next) {
        if (c->state == CONN_HEAD && !c->looked) conn_kill(c);
        if (c->state == CONN_STREAM || c->state == CONN_SOCKET) conn_kill(c);
    }
}

bool http_is_drained(const struct http_server *s) { return s->count == 0; }

void http_set_common(struct http_server *s, const char *lines) { s->common = lines; }

unsigned http_connections(const struct http_server *s) { return s->count; }

void http_address_text(const struct in6_addr *a, char *ret, size_t room) {
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(a);
    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? &a->s6_addr[12] : a->s6_addr, ret, (socklen_t)room))
        snprintf(ret, room, "?");
}
