#include "server/link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "server/link_own.h"

#define LINKS_MAX 128            /* a node has two: one for streams */
#define LINK_STREAMS "flow.sock" /* beside the link's own */
#define ORDER_NS (10 * NS_PER_S)
#define ORDERS_MAX 256
#define READ_MAX (256 * 1024)

struct link {
    struct link *next, **back;
    struct links *links;
    struct bufferevent *bev;
    struct wire_stream in;
    struct live_node *node;       /* after its HELLO */
    struct link_streams *streams; /* or this, after its STREAM_HELLO */
};

struct order {
    struct order *next;
    uint64_t id;
    struct link *link;
    int64_t until_ns;
    link_done_fn done;
    void *ctx;
};

struct links {
    struct loop *loop;
    struct live *live;
    uid_t owner;
    struct evconnlistener *listener, *streams_listener;
    char path[108], streams_path[108];
    struct link *first;
    unsigned count, order_count;
    struct order *orders;
    uint64_t order_id;
    struct link_jobs jobs;       /* take NULL: nobody wants them */
    struct link_jobs containers; /* the same */
    struct link_streams *streams;
};

/* ---- orders ---- */

/* Takes out the first order that fits: of a link, of an id (0: any), or overdue. */
static struct order *order_take(struct links *l, const struct link *link, uint64_t id, int64_t now_ns) {
    for (struct order **at = &l->orders; *at; at = &(*at)->next) {
        struct order *o = *at;
        bool fits = link ? o->link == link && (!id || o->id == id) : o->until_ns < now_ns;
        if (!fits) continue;
        *at = o->next;
        l->order_count--;
        return o;
    }
    return NULL;
}

static void order_end(struct order *o, int result, const char *sentence) {
    o->done(o->ctx, result, sentence);
    free(o);
}

int link_order(struct links *l, struct live_node *n, struct wire_order *o, link_done_fn done, void *ctx,
               struct error *e) {
    struct link *link = n->link;
    if (!link) return fail(e, -ENOTCONN, "node %s is not connected", n->name);
    if (l->order_count >= ORDERS_MAX) return fail(e, -EAGAIN, "too many orders wait for an answer");
    struct order *order = calloc(1, sizeof *order);
    if (!order) abort();
    o->id = ++l->order_id;
    *order = (struct order){l->orders, o->id, link, clock_boot_ns() + ORDER_NS, done, ctx};
    l->orders = order;
    l->order_count++;
    AUTO(buf_done) struct buf b = {0};
    wire_put_order(&b, o);
    bufferevent_write(link->bev, b.s, b.len);
    return 0;
}

int link_send(struct links *l, struct live_node *n, const struct buf *frames, struct error *e) {
    struct link *link = n->link;
    if (!link) return fail(e, -ENOTCONN, "node %s is not connected", n->name);
    CRASH_POINT();
    bufferevent_write(link->bev, frames->s, frames->len);
    return 0;
}

void links_on_jobs(struct links *l, const struct link_jobs *jobs) { l->jobs = *jobs; }
void links_on_containers(struct links *l, const struct link_jobs *containers) { l->containers = *containers; }
uid_t links_owner(const struct links *l) { return l->owner; }

struct link_streams **links_streams(struct links *l) {
    return &l->streams;
}

static void on_tick(void *ctx) {
    struct links *l = ctx;
    struct order *o;
    while ((o = order_take(l, NULL, 0, clock_boot_ns()))) order_end(o, -ETIMEDOUT, "the node did not answer in time");
    for (struct link_streams *k = l->streams; k; k = k->next) link_streams_tick(k, clock_boot_ns());
}

/* ---- a connection ---- */

static void link_free(struct link *k, const char *why) {
    struct order *o;
    while ((o = order_take(k->links, k, 0, 0))) order_end(o, -ENOTCONN, "the node's connection ended");
    if (k->streams) {
        if (why) log_line(LOG_WARN, "streams", -1, "node %s: %s", k->streams->node, why);
        link_streams_free(k->links, k->streams);
    } else if (k->node && k->node->link == k) {
        log_line(why ? LOG_WARN : LOG_INFO, "node_left", -1, "node %s: %s", k->node->name,
                 why ? why : "its connection ended");
        live_part(k->links->live, k->node);
        if (k->links->jobs.left) k->links->jobs.left(k->links->jobs.ctx, k->node);
        if (k->links->containers.left) k->links->containers.left(k->links->containers.ctx, k->node);
    } else if (why) {
        log_line(LOG_WARN, "node_refused", -1, "a node's connection: %s", why);
    }
    *k->back = k->next;
    if (k->next) k->next->back = k->back;
    k->links->count--;
    bufferevent_free(k->bev);
    wire_stream_done(&k->in);
    free(k);
}

static void say_bye(struct link *k, const char *text) {
    AUTO(buf_done) struct buf b = {0};
    wire_put_bye(&b, text);
    bufferevent_write(k->bev, b.s, b.len);
}

void link_end(struct links *l, const struct live_node *n, const char *why) {
    struct link *k = n->link;
    if (!k) return;
    say_bye(k, why);
    link_free(k, why);
}

static void say_welcome(struct link *k) {
    struct live_node *n = k->node;
    struct wire_welcome *w = calloc(1, sizeof *w);
    if (!w) abort();
    snprintf(w->boot_id, sizeof w->boot_id, "%s", n->marks->boot_id);
    w->host_mark = n->marks->host;
    /* What is stored comes again when it is not in sight: a task that runs may have begun before this server did. */
    w->task_mark = n->tasks.is_filled ? n->marks->task : 0;
    w->sources = n->sources < WIRE_SOURCES_MAX ? n->sources : WIRE_SOURCES_MAX;
    const struct live *live = k->links->live;
    for (uint16_t i = 0; i < w->sources; i++)
        w->event_mark[i] =
            live->event_mark ? live->event_mark(live->ctx, n, i, n->marks->event[i]) : n->marks->event[i];
    for (uint16_t i = 0; i < n->devices && w->devices < WIRE_DEVICES_MAX; i++) {
        const struct mark *m = n->device[i].is_known ? marks_device(n->marks, n->device[i].is.uuid) : NULL;
        if (!m || !m->mark) continue;
        memcpy(w->device[w->devices].uuid, m->uuid, sizeof m->uuid);
        w->device[w->devices++].mark = m->mark;
    }
    AUTO(buf_done) struct buf b = {0};
    wire_put_welcome(&b, w);
    bufferevent_write(k->bev, b.s, b.len);
    free(w);
    n->is_welcomed = true;
    log_line(LOG_INFO, "node_came", -1, "node %s is connected, with %u GPUs and instances", n->name, n->devices);
    if (k->links->jobs.came) k->links->jobs.came(k->links->jobs.ctx, n);
}

static int take_result(struct link *k, const struct wire_frame *f, struct error *e) {
    struct wire_order_result result;
    int r = wire_get_order_result(f, &result, e);
    if (r < 0) return r;
    struct order *o = order_take(k->links, k, result.id, 0);
    if (o) order_end(o, result.result, result.text);
    return 0;
}

static bool is_of_jobs(const struct wire_frame *f) {
    return f->type >= WIRE_JOB_SEALED && f->type <= WIRE_JOB_NOTICED && f->version == WIRE_VERSION;
}

static int take_for(const struct link_jobs *who, struct link *k, const struct wire_frame *f, struct error *e) {
    if (!k->node) return fail(e, -EPROTO, "the node did not say who it is");
    return who->take ? who->take(who->ctx, k->node, f, e) : 0;
}

static int take_frame(struct link *k, const struct wire_frame *f, struct error *e) {
    if (k->streams) return link_streams_take(k->streams, f, e);
    if (f->type == WIRE_STREAM_HELLO && !k->node) {
        bufferevent_set_max_single_read(k->bev, READ_MAX); /* many bytes, and nobody's readings wait for them */
        bufferevent_set_max_single_write(k->bev, READ_MAX);
        return link_streams_new(k->links, k->bev, f, &k->streams, e);
    }
    if (k->node && k->node->link != k)
        return fail(e, -EPROTO, "another connection of node %s took over", k->node->name);
    if (f->type == WIRE_ORDER_RESULT && f->version == WIRE_VERSION) return take_result(k, f, e);
    if (f->type == WIRE_BYE) return 0; /* it will close */
    if (is_of_jobs(f)) return take_for(&k->links->jobs, k, f, e);
    if (f->type == WIRE_CONTAINER_ANSWER && f->version == WIRE_VERSION) return take_for(&k->links->containers, k, f, e);
    int r = live_take(k->links->live, &k->node, k, f, clock_boot_ns(), clock_real_ns(), e);
    if (r > 0) say_welcome(k);
    return r;
}

static void on_read(struct bufferevent *bev, void *ctx) {
    struct link *k = ctx;
    struct evbuffer *in = bufferevent_get_input(bev);
    struct wire_frame f;
    struct error e;
    int r = 0;
    while (r >= 0 && evbuffer_get_length(in)) {
        size_t n = evbuffer_get_contiguous_space(in);
        wire_stream_add(&k->in, evbuffer_pullup(in, (ssize_t)n), n);
        evbuffer_drain(in, n);
        while (r >= 0 && (r = wire_stream_next(&k->in, &f, &e)) > 0) r = take_frame(k, &f, &e);
    }
    if (r >= 0) return;
    say_bye(k, e.text);
    link_free(k, e.text);
}

static void on_event(struct bufferevent *bev, short what, void *ctx) {
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) link_free(ctx, NULL);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
                      void *ctx) {
    struct links *l = ctx;
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;
    bool is_ours = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == 0 || who.uid == l->owner);
    struct bufferevent *bev = NULL;
    if (is_ours && l->count < LINKS_MAX) bev = bufferevent_socket_new(loop_base(l->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        if (!is_ours)
            log_line(LOG_WARN, "node_refused", -1, "uid %u is neither root nor this instance's owner", who.uid);
        close(fd);
        return;
    }
    struct link *k = calloc(1, sizeof *k);
    if (!k) abort();
    *k = (struct link){.next = l->first, .back = &l->first, .links = l, .bev = bev};
    if (k->next) k->next->back = &k->next;
    l->first = k;
    l->count++;
    bufferevent_setcb(bev, on_read, NULL, on_event, k);
    bufferevent_setwatermark(bev, EV_READ, 0, READ_MAX);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* ---- all of them ---- */

static int listen_at(struct links *l, const char *path, struct evconnlistener **ret, char kept[108], struct error *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path) return fail(e, -ENAMETOOLONG, "%s: too long for a socket", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    memcpy(kept, path, strlen(path) + 1);
    unlink(path);
    mode_t before = umask(0177); /* never there with other rights */
    errno = 0;
    *ret = evconnlistener_new_bind(loop_base(l->loop), on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16,
                                   (struct sockaddr *)&a, sizeof a);
    int code = errno;
    umask(before);
    return *ret ? 0 : fail_errno(e, code ? code : EIO, "%s", path);
}

static void listener_close(struct evconnlistener **listener, const char *path) {
    if (!*listener) return;
    evconnlistener_free(*listener);
    *listener = NULL;
    unlink(path);
}

int links_new(struct loop *loop, struct live *live, const char *path, uid_t owner, struct links **ret,
              struct error *e) {
    char streams[108];
    struct links *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (struct links){.loop = loop, .live = live, .owner = owner};
    snprintf(streams, sizeof streams, "%.*s/" LINK_STREAMS, (int)(strrchr(path, '/') - path), path);
    int r = listen_at(l, path, &l->listener, l->path, e);
    if (r >= 0) r = listen_at(l, streams, &l->streams_listener, l->streams_path, e);
    if (r < 0) {
        links_free(l);
        return r;
    }
    loop_every(loop, 1000, on_tick, l);
    *ret = l;
    return 0;
}

void links_close(struct links *l) {
    listener_close(&l->listener, l->path);
    listener_close(&l->streams_listener, l->streams_path);
    for (struct link *k = l->first, *next; k; k = next) {
        next = k->next;
        link_free(k, NULL);
    }
}

void links_free(struct links *l) {
    if (!l) return;
    links_close(l);
    free(l);
}
