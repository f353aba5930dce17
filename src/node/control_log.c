/* A container's log: its last lines, or those and what comes, as the engine itself follows it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_scan.h"
#include "base/thread.h"
#include "node/control_own.h"
#include "node/docker_ask.h"
#include "node/log_messages.h"

#define STACK_BYTES (256 * 1024)
#define AGAIN_MS 500
#define LOG_S 60
#define LOG_LINES 2000u
#define LOG_BYTES (512u << 10)
#define HEAD 8u

/* Without a terminal a log comes in frames: kind, three zeros, length in big endian, bytes. */
struct unframing {
    bool is_tty;
    uint8_t head[HEAD];
    unsigned have; /* of head */
    uint32_t left; /* of the frame's bytes */
};

static size_t take_frames(struct unframing *u, char *bytes, size_t n) {
    size_t kept = 0;
    if (u->is_tty) return n;
    for (size_t at = 0; at < n;) {
        if (u->left) {
            size_t some = n - at < u->left ? n - at : u->left;
            memmove(bytes + kept, bytes + at, some);
            kept += some;
            at += some;
            u->left -= (uint32_t)some;
            continue;
        }
        u->head[u->have++] = (uint8_t)bytes[at++];
        if (u->have < HEAD) continue;
        u->have = 0;
        u->left = (uint32_t)u->head[4] << 24 | (uint32_t)u->head[5] << 16 | (uint32_t)u->head[6] << 8 | u->head[7];
    }
    return kept;
}

static int begin(struct control *c, const char *of, struct unframing *u, struct control_seen *s, struct error *e) {
    int r = control_see(c, of, s, e);
    if (r >= 0) r = control_may(&c->who, s, CONTAINER_VERB_LOG, e);
    if (r >= 0) *u = (struct unframing){.is_tty = json_slice_is(json_slice_get(s->config, "Tty"), "true")};
    return r;
}

static unsigned lines_of(unsigned asked) { return asked && asked < LOG_LINES ? asked : LOG_LINES; }

int control_log(struct control *c, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    AUTO(buf_done) struct buf raw = {0};
    struct unframing u;
    char target[200];
    int r = begin(c, c->call.of, &u, &s, e);
    if (r < 0) return r;
    for (unsigned lines = lines_of(c->call.lines);; lines /= 10) { /* lines may be long */
        snprintf(target, sizeof target, "/containers/%s/logs?stdout=1&stderr=1&tail=%u", s.id, lines);
        r = control_do(c, "GET", target, NULL, LOG_S, &raw, e);
        if (r != -EFBIG || lines < 10) break;
    }
    if (r == -EEXIST) return 0; /* it is on its way out: there is nothing to read any more */
    if (r < 0) return r;
    size_t n = take_frames(&u, raw.s, raw.len), skip = n > LOG_BYTES ? n - LOG_BYTES : 0;
    if (n) buf_add(&c->out, raw.s + skip, n - skip);
    return 0;
}

/* ---- followed ---- */

/* Engines end the answer to whoever follows a log before all of it was told: Docker 20.10 when a container that writes fast ends, all
 * when their file is turned over. So their word is not taken: a thread passes on what comes, and asks for what came since. */
struct follower {
    char socket[108], id[72], began[64]; /* began: when the container was started, as its engine says it */
    unsigned lines;
    int engine, caller; /* caller: our end of what he reads */
    struct log_messages messages;
};

static int ask_follow(const struct follower *f, bool follows, struct error *e) {
    char target[256], from[64];
    int64_t since_ns = f->messages.newest_ns;
    snprintf(from, sizeof from, "tail=%u", f->lines);
    if (since_ns)
        snprintf(from, sizeof from, "since=%lld.%09lld", (long long)(since_ns / NS_PER_S),
                 (long long)(since_ns % NS_PER_S));
    snprintf(target, sizeof target, "/containers/%s/logs?follow=%d&stdout=1&stderr=1&timestamps=1&%s", f->id, follows,
             from);
    return docker_follow(f->socket, target, e);
}

static void began_of(struct json_slice state, char *ret, size_t room) {
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(json_slice_get(state, "StartedAt"), &text);
    snprintf(ret, room, "%s", text.s ? text.s : "");
}

static void nothing(void *ctx, const struct json_scan_value *v) {}

/* As it was when we began: one that was started anew is another one's business. */
static bool goes_on(const struct follower *f) {
    AUTO(buf_done) struct buf json = {0};
    char target[128], began[sizeof f->began];
    struct error e;
    snprintf(target, sizeof target, "/containers/%s/json", f->id);
    if (docker_ask(f->socket, "GET", target, NULL, LOG_S, &json, &e) != 200) return false;
    if (json_scan(json.s, json.len, nothing, NULL, &e) < 0) return false;
    struct json_slice state = json_slice_get((struct json_slice){json.s, json.len}, "State");
    began_of(state, began, sizeof began);
    return json_slice_is(json_slice_get(state, "Running"), "true") && strcmp(began, f->began) == 0;
}

static bool send_to(int fd, const struct buf *b) {
    for (size_t at = 0; at < b->len;) {
        ssize_t n = send(fd, b->s + at, b->len - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

/* One answer of the engine. False: nobody reads any more. */
static bool pass_on(struct follower *f) {
    AUTO(buf_done) struct buf out = {0};
    char piece[16384];
    for (;;) {
        struct pollfd p[] = {
            {.fd = f->caller, .events = 0     },
            {.fd = f->engine, .events = POLLIN},
        };
        if (poll(p, 2, -1) < 0) continue;
        if (p[0].revents) return false;
        ssize_t n = read(f->engine, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        buf_clear(&out);
        log_messages_take(&f->messages, piece, (size_t)n, &out);
        if (!send_to(f->caller, &out)) return false;
    }
}

static void *follow(void *arg) {
    struct follower *f = arg;
    struct error ignored;
    bool is_last = false;
    while (f->engine >= 0 && pass_on(f) && !is_last) {
        is_last = !goes_on(f);
        struct pollfd p = {.fd = f->caller};
        if (!is_last && !f->messages.has_news) poll(&p, 1, AGAIN_MS); /* an engine that ends everything at once */
        close(f->engine);
        log_messages_again(&f->messages);
        f->engine = ask_follow(f, !is_last, &ignored);
    }
    if (f->engine >= 0) close(f->engine);
    close(f->caller);
    free(f);
    return NULL;
}

/* Takes f. */
static int start_follower(struct follower *f, struct error *e) {
    int ends[2] = {-1, -1};
    int r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    if (r >= 0) r = fcntl(ends[0], F_SETFL, O_NONBLOCK);
    f->caller = ends[1];
    r = r < 0 ? fail_errno(e, errno, "a socket") : thread_start(follow, f, STACK_BYTES, "a log", e);
    if (r >= 0) return ends[0];
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0) close(ends[i]);
    close(f->engine);
    free(f);
    return r;
}

int control_follow(struct control *c, const char *of, unsigned lines, struct stream_end *ret, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    struct unframing u;
    int r = begin(c, of, &u, &s, e);
    if (r < 0) return r;
    struct follower *f = calloc(1, sizeof *f);
    if (!f) abort();
    *f = (struct follower){.lines = lines_of(lines), .messages = {.is_tty = u.is_tty}};
    memcpy(f->socket, c->socket, sizeof f->socket);
    memcpy(f->id, s.id, sizeof f->id);
    began_of(s.state, f->began, sizeof f->began);
    f->engine = r = ask_follow(f, true, e);
    if (r >= 0) {
        r = start_follower(f, e);
    } else {
        free(f);
        if (r == -EEXIST)
            r = open("/dev/null", O_RDONLY | O_CLOEXEC); /* it is on its way out: nothing more will come */
    }
    if (r < 0) return r;
    *ret = (struct stream_end){.fd = r};
    return 0;
}
