/* A container's log: its last lines as a text, or those and what comes as a stream of events, which the engine itself follows. The node
 * decides who may. Nothing is lost on the way and nothing piles up: what a slow reader has not taken yet, the engine waits with. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/api.h"
#include "server/follow.h"
#include "server/link_stream.h"
#include "server/server.h"

enum {
    LINES_MAX = 2000,
    LINES_USUAL = 200,
    PART = 16 << 10,
    ROOM = 128 << 10
}; /* a text of PART fits into ROOM, however it is written */

/* ---- its last lines ---- */

static void log_came(void *ctx, int result, const struct wire_container_answer *a, const char *sentence) {
    struct call *c = ctx;
    struct error e = {0};
    if (result < 0) {
        fail(&e, result, "%s", sentence);
        call_end(c, result, &e);
        return;
    }
    if (c->request) {
        http_add_field(c->request, "X-Content-Type-Options", "nosniff");
        http_reply(c->request, 200, "text/plain; charset=utf-8", a->body, a->len);
    }
    call_free(c);
}

/* ---- followed ---- */

struct following {
    struct follower is; /* once it is open */
    struct server *server;
    struct call *call;          /* until it is open */
    struct link_stream *stream; /* NULL: it is over */
    struct buf text;            /* what the reader has not been told yet: at most a window */
    char why[248];              /* how it ended; "": as it should */
};

static void say(struct following *f, const char *event, const char *key, const char *text) {
    AUTO(buf_done) struct buf b = {0};
    buf_printf(&b, "event: %s\ndata:", event);
    json_open(&b, '{');
    if (key) json_pair_str(&b, key, text);
    json_close(&b, '}');
    buf_puts(&b, "\n\n");
    follow_say(&f->is, &b);
}

/* As much as the reader has room for, in whole characters. */
static void pass_on(struct following *f) {
    while (f->is.request && f->text.len && http_stream_room(f->is.request) >= ROOM) {
        AUTO(buf_done) struct buf part = {0};
        size_t n = f->text.len < PART ? f->text.len : PART;
        size_t whole = follow_whole_characters((const uint8_t *)f->text.s, n);
        if (!whole && f->stream) return; /* the rest of it comes */
        if (whole) n = whole;
        buf_add(&part, f->text.s, n);
        for (size_t i = 0; i < n; i++)
            if (!part.s[i]) part.s[i] = '?'; /* a text ends at a zero */
        memmove(f->text.s, f->text.s + n, f->text.len - n);
        f->text.len -= n;
        if (f->stream) link_stream_took(f->stream, n);
        say(f, "log", "text", part.s);
    }
    if (f->stream || f->text.len || f->is.is_over) return;
    f->is.is_over = true;
    if (f->is.request) say(f, "end", *f->why ? "error" : NULL, f->why);
}

static void on_time(struct follower *is) { pass_on((struct following *)is); }

static void drop(struct follower *is) {
    struct following *f = (struct following *)is;
    link_stream_close(f->stream);
    buf_done(&f->text);
    free(f);
}

static void on_opened(void *ctx) {
    struct following *f = ctx;
    struct call *c = f->call;
    f->call = NULL;
    f->is.ask = on_time;
    f->is.drop = drop;
    follow_begin(f->server->loop, &f->is, c);
}

static void on_data(void *ctx, const void *bytes, size_t n) {
    struct following *f = ctx;
    buf_add(&f->text, bytes, n);
    pass_on(f);
}

static void on_ended(void *ctx) {
    struct following *f = ctx;
    link_stream_close(f->stream);
    f->stream = NULL;
    pass_on(f);
}

static void on_closed(void *ctx, int result, const char *sentence) {
    struct following *f = ctx;
    struct error e;
    f->stream = NULL;
    if (!f->call) {
        snprintf(f->why, sizeof f->why, "%s", result < 0 ? sentence : "");
        pass_on(f);
        return;
    }
    struct call *c = f->call;
    fail(&e, result < 0 ? result : -EIO, "%s", result < 0 ? sentence : "it is over already");
    free(f);
    call_end(c, e.code, &e);
}

static int follow_log(struct call *c, const struct live_node *n, unsigned lines, struct error *e) {
    static const struct link_stream_events events = {
        .opened = on_opened, .data = on_data, .ended = on_ended, .closed = on_closed};
    struct wire_stream_open o = {
        .kind = WIRE_STREAM_LOG, .is_admin = c->who.role == ROLE_ADMIN, .rows = (uint16_t)lines};
    int r = follow_check(e);
    if (r >= 0 && strlen(c->param[0]) >= sizeof o.container)
        r = fail(e, -ENOENT, "no container of this id or name is known");
    if (r < 0) return r;
    snprintf(o.container, sizeof o.container, "%s", c->param[0]);
    snprintf(o.account, sizeof o.account, "%s", c->who.user ? c->who.name : "");
    struct following *f = calloc(1, sizeof *f);
    if (!f) abort();
    *f = (struct following){.server = c->server, .call = c};
    r = link_stream_open(c->server->links, n->name, &o, &events, f, &f->stream, e);
    if (r >= 0) return CALL_LATER;
    free(f);
    return r;
}

int api_container_log(struct call *c, struct error *e) {
    struct wire_container_call call;
    struct live_node *n = NULL;
    const char *follow = call_query(c, "follow");
    double lines = 0;
    int r = call_query_number(c, "tail", 1, LINES_MAX, LINES_USUAL, &lines, e);
    if (r >= 0) r = api_container_node(c, &n, e);
    if (r < 0) return r;
    if (follow && strcmp(follow, "0") != 0 && strcmp(follow, "false") != 0) return follow_log(c, n, (unsigned)lines, e);
    r = api_container_call(c, CONTAINER_VERB_LOG, &call, e);
    call.lines = (uint32_t)lines;
    if (r >= 0) r = containers_ask(c->server->containers, n, &call, log_came, c, e);
    return r < 0 ? r : CALL_LATER;
}
