#include "node/engine_talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define READ_BYTES 32768
#define READS_MAX 8               /* of one socket before the others have their turn */
#define STREAM_MAX (256u * 1024)  /* what may wait of the stream */
#define EVENT_MAX (128u * 1024)   /* one event: its labels make it long */
#define SECOND_MAX (1024u * 1024) /* events in one second; the rest waits in the socket */
#define LIST_MAX (8u * 1024 * 1024)
#define INSPECT_MAX (1024u * 1024)
#define LIST_NS NS_PER_S           /* between two lists */
#define PATIENCE_NS (3 * NS_PER_S) /* for an answer */
#define PING_PATIENCE_NS (1 * NS_PER_S)
#define PING_NS (2 * NS_PER_S) /* silent for so long: is it still there? */
#define BAD_LINES_MAX 8        /* in a row */
#define FIRST_PAUSE_NS (100 * NS_PER_MS)
#define LONGEST_PAUSE_NS (10 * NS_PER_S)
#define ABSENT_PAUSE_NS NS_PER_S          /* no socket: looking costs next to nothing */
#define RETURN_PAUSE_NS (200 * NS_PER_MS) /* it was there: it will be back */
#define MISSED_NS (600 * NS_PER_S)
#define HURRY_NS (500 * NS_PER_MS) /* an engine that is well answers sooner */
#define GOOD_NS (10 * NS_PER_S)    /* who talks sense for so long is forgiven */

static void line_close(struct talk_line *l) {
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
    http_reader_done(&l->reader);
    buf_done(&l->body);
}

void talk_init(struct talk *t, unsigned number, enum engine_kind kind, const char *path, const struct talk_ears *ears) {
    *t = (struct talk){.number = number, .kind = kind, .ears = ears, .uid = UINT32_MAX, .stream.fd = -1, .ask.fd = -1};
    snprintf(t->path, sizeof t->path, "%s", path);
}

void talk_done(struct talk *t) {
    line_close(&t->stream);
    line_close(&t->ask);
}

bool talk_is_live(const struct talk *t) { return t->is_subscribed && !t->is_silent; }

bool talk_is_missed(const struct talk *t, int64_t now_ns) {
    if (talk_is_live(t)) return false;
    bool is_slow = t->stream.fd >= 0 && now_ns - t->stream.since_ns > HURRY_NS;
    return is_slow || t->is_silent || (t->was_live && now_ns - t->live_ns < MISSED_NS);
}

/* ---- beginning and ending ---- */

/* Nothing that it said is forgotten; a new try comes after a pause that doubles. */
static void give_up_as(struct talk *t, int64_t now_ns, const char *why, bool is_warning) {
    if (talk_is_live(t)) t->live_ns = now_ns;
    if (!t->is_said) {
        log_line(is_warning ? LOG_WARN : LOG_INFO, "engine", -1, "%s at %s: %s; trying again",
                 engine_kind_name(t->kind), t->path, why);
        t->is_said = true;
    }
    line_close(&t->stream);
    line_close(&t->ask);
    t->asked = TALK_NOTHING;
    t->is_subscribed = t->passes_over = false;
    t->bad_lines = 0;
    t->second_bytes = 0;
    int64_t pause_ns = FIRST_PAUSE_NS << (t->failures < 7 ? t->failures : 7);
    if (pause_ns > LONGEST_PAUSE_NS) pause_ns = LONGEST_PAUSE_NS;
    t->failures++;
    t->try_ns = now_ns + pause_ns;
}

static void give_up(struct talk *t, int64_t now_ns, const char *why) { give_up_as(t, now_ns, why, true); }

/* 0, or a negative errno. A Unix socket connects at once or not at all: -EAGAIN is a listener that does not accept. */
static int line_open(struct talk_line *l, const char *path, const char *target, int64_t now_ns, uint32_t *ret_uid) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t n = sizeof peer;
    char text[512];
    if (strlen(path) >= sizeof to.sun_path) return -ENAMETOOLONG;
    memcpy(to.sun_path, path, strlen(path) + 1);
    if (l->fd < 0) {
        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (l->fd < 0) return -errno;
        if (connect(l->fd, (const struct sockaddr *)&to, sizeof to) < 0) return -errno;
    }
    if (getsockopt(l->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0) *ret_uid = peer.uid;
    int len =
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: engine\r\nUser-Agent: gpumgr\r\nAccept: application/json\r\n\r\n", target);
    http_reader_done(&l->reader);
    buf_clear(&l->body);
    l->since_ns = now_ns;
    return send(l->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) == len ? 0 : -EPIPE;
}

static void subscribe(struct talk *t, int64_t now_ns) {
    /* {"type":["container"]} */
    int r = line_open(&t->stream, t->path, "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D", now_ns, &t->uid);
    if (r == 0) return;
    bool is_absent = r == -ENOENT || r == -ENOTDIR || r == -ECONNREFUSED;
    if (!is_absent) {
        t->is_silent |= r == -EAGAIN;
        const char *why = r == -EAGAIN   ? "it takes no connection"
                          : r == -EACCES ? "this user may not talk to it, so its containers have no names"
                                         : strerror(-r);
        give_up_as(t, now_ns, why, r != -EACCES);
        return;
    }
    bool is_expected = talk_is_missed(t, now_ns);
    t->is_silent = false;
    line_close(&t->stream);
    t->try_ns = now_ns + (is_expected ? RETURN_PAUSE_NS : ABSENT_PAUSE_NS);
}

/* ---- questions ---- */

void talk_ask(struct talk *t, const char *id) {
    for (unsigned i = 0; i < t->queue_count; i++)
        if (strcmp(t->queue[(t->queue_at + i) % TALK_QUEUE], id) == 0) return;
    if (t->queue_count == TALK_QUEUE) {
        t->needs_list = true; /* too many one by one */
        return;
    }
    memcpy(t->queue[(t->queue_at + t->queue_count++) % TALK_QUEUE], id, ENGINE_ID_HEX + 1);
}

static void silent(struct talk *t, int64_t now_ns) {
    if (!t->is_silent) {
        t->live_ns = now_ns;
        log_line(LOG_INFO, "engine", -1, "%s at %s does not answer; GPUs are looked at more often meanwhile",
                 engine_kind_name(t->kind), t->path);
    }
    t->is_silent = true;
    if (t->asked == TALK_LIST) t->needs_list = true;
    if (t->asked == TALK_INSPECT) talk_ask(t, t->asked_id);
    line_close(&t->ask);
    t->asked = TALK_NOTHING;
    t->heard_ns = now_ns; /* the next ping in PING_NS */
}

static void put_question(struct talk *t, enum talk_question q, const char *target, int64_t now_ns) {
    uint32_t uid;
    bool is_used = t->ask.fd >= 0;
    t->asked = q;
    int r = line_open(&t->ask, t->path, target, now_ns, &uid);
    if (r < 0 && is_used) { /* closed by the other side meanwhile */
        line_close(&t->ask);
        r = line_open(&t->ask, t->path, target, now_ns, &uid);
    }
    if (r == -EAGAIN)
        silent(t, now_ns);
    else if (r < 0)
        give_up(t, now_ns, strerror(-r));
}

static void next_question(struct talk *t, int64_t now_ns) {
    char target[128];
    if (!t->is_subscribed || t->asked != TALK_NOTHING) return;
    if (!t->is_silent && t->needs_list && now_ns - t->listed_ns >= LIST_NS) {
        t->needs_list = false;
        t->listed_ns = now_ns;
        put_question(t, TALK_LIST, "/containers/json", now_ns);
    } else if (!t->is_silent && t->queue_count) {
        memcpy(t->asked_id, t->queue[t->queue_at], sizeof t->asked_id);
        t->queue_at = (t->queue_at + 1) % TALK_QUEUE;
        t->queue_count--;
        snprintf(target, sizeof target, "/containers/%s/json", t->asked_id);
        put_question(t, TALK_INSPECT, target, now_ns);
    } else if (now_ns - t->heard_ns >= PING_NS) {
        put_question(t, TALK_PING, "/_ping", now_ns);
    }
}

static void heard(struct talk *t, int64_t now_ns) {
    t->heard_ns = now_ns;
    if (!t->is_silent) return;
    t->is_silent = false;
    t->needs_list |= t->is_subscribed;
}

static void on_row(void *ctx, const struct container_said *said) {
    const struct talk *t = ctx;
    t->ears->listed(t->ears->ctx, t->number, said, t->ask.since_ns);
}

static int on_list(struct talk *t, struct error *e) {
    int r = container_list(t->ask.body.s ? t->ask.body.s : "", t->ask.body.len, on_row, t, e);
    if (r >= 0) t->ears->list_over(t->ears->ctx, t->number, t->ask.since_ns);
    return r;
}

static int on_description(struct talk *t, struct error *e) {
    struct container_said said;
    int r = container_inspect(t->ask.body.s ? t->ask.body.s : "", t->ask.body.len, &said, e);
    if (r < 0) return r;
    if (strcmp(said.facts.id, t->asked_id) != 0) return fail(e, -EINVAL, "it describes another container than asked");
    t->ears->described(t->ears->ctx, t->number, &said, t->ask.since_ns);
    return 0;
}

static void answered(struct talk *t, int64_t now_ns) {
    struct error e = {0};
    enum talk_question asked = t->asked;
    int status = t->ask.reader.status, r = 0;
    bool keeps = t->ask.reader.keeps_alive;
    t->asked = TALK_NOTHING;
    heard(t, now_ns);
    if (asked == TALK_INSPECT && status == 404)
        t->ears->unknown(t->ears->ctx, t->number, t->asked_id);
    else if (status != 200 && asked == TALK_LIST)
        r = fail(&e, -EPROTO, "it answers with the status %d", status);
    else if (asked == TALK_LIST)
        r = on_list(t, &e);
    else if (asked == TALK_INSPECT && status == 200) /* 500: Podman on its way to remove it */
        r = on_description(t, &e);
    if (r < 0) {
        give_up(t, now_ns, e.text);
        return;
    }
    buf_done(&t->ask.body); /* a list may have been long */
    if (!keeps) line_close(&t->ask);
}

/* ---- the stream ---- */

static int on_line(struct talk *t, const char *line, size_t len) {
    struct container_said said;
    enum container_action action;
    struct error e;
    if (len == 0) return 0;
    if (container_event(line, len, &action, &said, &e) < 0) return ++t->bad_lines > BAD_LINES_MAX ? -EPROTO : 0;
    t->bad_lines = 0;
    if (action != CONTAINER_OTHER) t->ears->event(t->ears->ctx, t->number, action, &said);
    return 0;
}

/* An event is an object on a line of its own. */
static int on_lines(struct talk *t) {
    struct buf *b = &t->stream.body;
    size_t from = 0;
    int r = 0;
    while (r >= 0 && from < b->len) {
        const char *end = memchr(b->s + from, '\n', b->len - from);
        if (!end) break;
        size_t len = (size_t)(end - (b->s + from));
        if (!t->passes_over) r = on_line(t, b->s + from, len);
        t->passes_over = false;
        from += len + 1;
    }
    size_t left = b->len - from;
    if (left > EVENT_MAX || (left && t->passes_over)) {
        if (!t->passes_over && ++t->bad_lines > BAD_LINES_MAX) r = -EPROTO;
        t->passes_over = true;
        left = 0;
    }
    if (left) memmove(b->s, b->s + b->len - left, left);
    b->len = left;
    if (!left && b->cap > READ_BYTES) buf_done(b);
    return r;
}

static int on_stream_bytes(struct talk *t, const char *bytes, size_t n, int64_t now_ns, struct error *e) {
    struct http_reader *r = &t->stream.reader;
    t->second_bytes += n;
    long took = http_reader_take(r, bytes, n, STREAM_MAX, &t->stream.body, e);
    if (took < 0) return (int)took;
    if (!r->status) return 0;
    if (r->status != 200) return fail(e, -EPROTO, "it refuses its events with the status %d", r->status);
    if (!t->is_subscribed) {
        t->is_subscribed = t->was_live = t->needs_list = true;
        t->is_silent = false;
        t->subscribed_ns = now_ns;
        t->listed_ns = 0;
    }
    heard(t, now_ns);
    if (on_lines(t) < 0) return fail(e, -EPROTO, "its events are not what they should be");
    if (r->stage == HTTP_READER_WHOLE) return fail(e, -EPIPE, "it ended its events");
    return 0;
}

static int on_ask_bytes(struct talk *t, const char *bytes, size_t n, int64_t now_ns, struct error *e) {
    size_t max = t->asked == TALK_LIST ? LIST_MAX : t->asked == TALK_INSPECT ? INSPECT_MAX : 4096;
    if (t->asked == TALK_NOTHING) return fail(e, -EPROTO, "it answers without a question");
    long took = http_reader_take(&t->ask.reader, bytes, n, max, &t->ask.body, e);
    if (took < 0) return (int)took;
    if (t->ask.reader.stage != HTTP_READER_WHOLE) return 0;
    if ((size_t)took < n) return fail(e, -EPROTO, "it says more than it was asked");
    answered(t, now_ns);
    return 0;
}

/* ---- sockets ---- */

static bool may_read_stream(const struct talk *t, int64_t now_ns) {
    return t->second_bytes < SECOND_MAX || now_ns - t->second_ns >= NS_PER_S;
}

void talk_poll(const struct talk *t, struct pollfd *fds, int64_t now_ns) {
    fds[0] = (struct pollfd){.fd = may_read_stream(t, now_ns) ? t->stream.fd : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = t->ask.fd, .events = POLLIN};
}

/* The connection beside the stream ended: in the middle of an answer it failed, else it was idle for too long. */
static int on_ask_end(struct talk *t, int64_t now_ns, struct error *e) {
    bool was_asked = t->asked != TALK_NOTHING;
    if (!was_asked) {
        line_close(&t->ask);
        return 0;
    }
    int r = http_reader_end(&t->ask.reader, e);
    if (r >= 0) answered(t, now_ns);
    return r;
}

static void drain(struct talk *t, struct talk_line *l, int64_t now_ns) {
    char bytes[READ_BYTES];
    struct error e = {0};
    int r = 0;
    for (int i = 0; i < READS_MAX && r >= 0 && l->fd >= 0; i++) {
        ssize_t n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0)
            r = fail(&e, -errno, "the connection broke");
        else if (n == 0)
            r = l == &t->ask ? on_ask_end(t, now_ns, &e) : fail(&e, -EPIPE, "it ended its events");
        else if (l == &t->ask)
            r = on_ask_bytes(t, bytes, (size_t)n, now_ns, &e);
        else
            r = on_stream_bytes(t, bytes, (size_t)n, now_ns, &e);
        if (n == 0) break;
    }
    if (r < 0) give_up(t, now_ns, e.text);
}

void talk_ready(struct talk *t, const struct pollfd *fds, int64_t now_ns) {
    if (now_ns - t->second_ns >= NS_PER_S) t->second_ns = now_ns, t->second_bytes = 0;
    if (fds[0].revents && fds[0].fd == t->stream.fd) drain(t, &t->stream, now_ns);
    if (fds[1].revents && fds[1].fd == t->ask.fd) drain(t, &t->ask, now_ns);
}

/* ---- time ---- */

static int64_t patience_ns(const struct talk *t) { return t->asked == TALK_PING ? PING_PATIENCE_NS : PATIENCE_NS; }

void talk_tick(struct talk *t, int64_t now_ns) {
    if (t->stream.fd < 0) {
        if (now_ns >= t->try_ns) subscribe(t, now_ns);
        return;
    }
    if (!t->is_subscribed && now_ns - t->stream.since_ns >= PATIENCE_NS) {
        t->is_silent = true;
        give_up(t, now_ns, "it does not answer");
        return;
    }
    if (t->is_subscribed && now_ns - t->subscribed_ns >= GOOD_NS && !t->bad_lines) t->failures = 0, t->is_said = false;
    if (t->asked != TALK_NOTHING && now_ns - t->ask.since_ns >= patience_ns(t)) silent(t, now_ns);
    next_question(t, now_ns);
}

int64_t talk_next_ns(const struct talk *t, int64_t now_ns) {
    if (t->stream.fd < 0) return t->try_ns;
    int64_t next_ns = t->is_subscribed ? t->heard_ns + PING_NS : t->stream.since_ns + PATIENCE_NS;
    if (t->asked != TALK_NOTHING)
        next_ns = t->ask.since_ns + patience_ns(t);
    else if (t->is_subscribed && t->needs_list && !t->is_silent && t->listed_ns + LIST_NS < next_ns)
        next_ns = t->listed_ns + LIST_NS;
    if (!may_read_stream(t, now_ns) && t->second_ns + NS_PER_S < next_ns) next_ns = t->second_ns + NS_PER_S;
    return next_ns;
}
