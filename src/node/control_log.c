/* A container's log: its last lines, or those and what comes, as the engine itself follows it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/control_own.h"
#include "node/docker_ask.h"

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

static size_t on_take(void *ctx, char *bytes, size_t n) { return take_frames(ctx, bytes, n); }

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

int control_follow(struct control *c, const char *of, unsigned lines, struct stream_end *ret, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    struct unframing u;
    char target[200];
    int r = begin(c, of, &u, &s, e);
    if (r < 0) return r;
    snprintf(target, sizeof target, "/containers/%s/logs?follow=1&stdout=1&stderr=1&tail=%u", s.id, lines_of(lines));
    int fd = docker_follow(c->socket, target, e);
    if (fd == -EEXIST) fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* it is on its way out: nothing more will come */
    if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0) close(fd), fd = fail_errno(e, errno, "fcntl");
    if (fd < 0) return fd;
    struct unframing *kept = malloc(sizeof *kept);
    if (!kept) abort();
    *kept = u;
    *ret = (struct stream_end){.fd = fd, .ctx = kept, .take = on_take, .done = free};
    return 0;
}
