/* A terminal in a container: a WebSocket of the browser on one side, a stream to the node on the other. Bytes are keys and what the
 * terminal shows; a text from the browser is its size. The node decides who may, and whose shell it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_scan.h"
#include "net/http_socket.h"
#include "server/api.h"
#include "server/auth_rules.h"
#include "server/link_stream.h"
#include "server/server.h"

enum { ROWS_MAX = 1000, COLUMNS_MAX = 1000, SHELLS_MAX = 64 };

const struct route_field api_shell_query[] = {
    {"node",        FIELD_TEXT, false, "On which machine; needed where there are several"},
    {"rows",        FIELD_NUMBER, false, "Of the terminal; 24 where it is not given"},
    {"columns",             FIELD_NUMBER, false, "The same; 80"},
    {0}
};

struct shell {
    struct http_request *request; /* NULL: the browser is gone */
    struct link_stream *stream;   /* NULL: it is over */
    struct buf in, out;           /* what one side has no room for yet */
    struct shell *next;           /* of all */
    const struct auth *auth;
    struct caller who;
    bool is_over;
    int code;
    char why[124];
};

static unsigned shells;
static struct shell *first;

static void shell_free(struct shell *s) {
    struct shell **at = &first;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    shells--;
    buf_done(&s->in);
    buf_done(&s->out);
    free(s);
}

static void drop_front(struct buf *b, size_t n) {
    memmove(b->s, b->s + n, b->len - n);
    b->len -= n;
}

/* ---- to the browser ---- */

static void to_browser(struct shell *s) {
    size_t room = s->request ? http_socket_room(s->request) : 0;
    size_t n = s->out.len < room ? s->out.len : room;
    if (n) {
        http_socket_send(s->request, s->out.s, n, false);
        drop_front(&s->out, n);
        if (s->stream) link_stream_took(s->stream, n);
    }
    if (!s->is_over || s->out.len || !s->request) return;
    http_socket_end(s->request, s->code, s->why); /* `gone` is not called any more */
    shell_free(s);
}

static void on_data(void *ctx, const void *bytes, size_t n) {
    struct shell *s = ctx;
    buf_add(&s->out, bytes, n);
    to_browser(s);
}

static void over(struct shell *s, int code, const char *why) {
    s->is_over = true;
    s->code = code;
    snprintf(s->why, sizeof s->why, "%.120s", why);
    to_browser(s);
}

static void on_ended(void *ctx) {
    struct shell *s = ctx;
    link_stream_close(s->stream);
    s->stream = NULL;
    over(s, WEBSOCKET_NORMAL, "the shell has ended");
}

static void on_closed(void *ctx, int result, const char *sentence) {
    struct shell *s = ctx;
    s->stream = NULL;
    over(s, result < 0 ? WEBSOCKET_POLICY : WEBSOCKET_NORMAL, result < 0 ? sentence : "the shell has ended");
}

/* ---- from the browser ---- */

static void to_node(struct shell *s) {
    size_t room = s->stream ? link_stream_room(s->stream) : 0, n = s->in.len < room ? s->in.len : room;
    if (n) {
        link_stream_write(s->stream, s->in.s, n);
        drop_front(&s->in, n);
    }
    if (s->request) http_socket_pause(s->request, s->in.len > 0);
}

static void on_room(void *ctx) { to_node(ctx); }
static void on_opened(void *ctx) { to_node(ctx); }
static void on_socket_room(void *ctx) { to_browser(ctx); }

struct size {
    unsigned rows, columns;
};

static void size_value(void *ctx, const struct json_scan_value *v) {
    struct size *z = ctx;
    unsigned long n = v->type == JSON_SCAN_NUMBER ? strtoul(v->text, NULL, 10) : 0;
    if (json_scan_is(v, 1, "rows") && n && n <= ROWS_MAX) z->rows = (unsigned)n;
    if (json_scan_is(v, 1, "columns") && n && n <= COLUMNS_MAX) z->columns = (unsigned)n;
}

static void on_message(void *ctx, const void *bytes, size_t n, bool is_text) {
    struct shell *s = ctx;
    struct size z = {0};
    struct error ignored;
    if (!is_text) {
        buf_add(&s->in, bytes, n);
        to_node(s);
    } else if (json_scan(bytes, n, size_value, &z, &ignored) >= 0 && z.rows && z.columns && s->stream) {
        link_stream_size(s->stream, z.rows, z.columns);
    }
}

static void on_gone(void *ctx) {
    struct shell *s = ctx;
    s->request = NULL;
    link_stream_close(s->stream);
    shell_free(s);
}

/* Who is not signed in any more loses his shells. */
static void on_second(void *ctx) {
    for (struct shell *s = first, *next; s; s = next) {
        next = s->next;
        if (s->is_over || !s->request || auth_is_still(s->auth, &s->who, clock_real_ns() / NS_PER_S)) continue;
        link_stream_close(s->stream);
        s->stream = NULL;
        s->out.len = 0;
        over(s, WEBSOCKET_POLICY, "you are not signed in any more");
    }
}

/* ---- the beginning ---- */

/* A browser sends its cookie with a WebSocket from any page: it must be one of ours. */
static int check_origin(const struct call *c, struct error *e) {
    const struct http_head *h = &c->request->head;
    const struct rules_origin origin = {http_field(h, "origin"), NULL, http_field(h, "host"),
                                        c->server->settings.public_url, c->is_tls};
    if (c->who.means != BY_SESSION || rules_is_same_origin(&origin)) return 0;
    return fail(e, -EKEYREJECTED, "a shell can be opened from a page of this server only");
}

int api_container_shell(struct call *c, struct error *e) {
    static const struct http_socket_events browser = {.message = on_message, .room = on_socket_room, .gone = on_gone};
    static const struct link_stream_events node = {
        .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended, .closed = on_closed};
    struct live_node *n;
    double rows, columns;
    struct wire_stream_open o = {.kind = WIRE_STREAM_EXEC, .is_admin = c->who.role == ROLE_ADMIN};
    int r = check_origin(c, e);
    if (r >= 0) r = call_query_number(c, "rows", 1, ROWS_MAX, 24, &rows, e);
    if (r >= 0) r = call_query_number(c, "columns", 1, COLUMNS_MAX, 80, &columns, e);
    if (r >= 0) r = api_container_node(c, &n, e);
    if (r >= 0 && strlen(c->param[0]) >= sizeof o.container)
        r = fail(e, -ENOENT, "no container of this id or name is known");
    if (r >= 0 && shells >= SHELLS_MAX) r = fail(e, -EAGAIN, "too many shells are open");
    if (r < 0) return r;
    o.rows = (uint16_t)rows;
    o.columns = (uint16_t)columns;
    snprintf(o.container, sizeof o.container, "%s", c->param[0]);
    snprintf(o.account, sizeof o.account, "%s", c->who.user ? c->who.name : "");
    struct shell *s = calloc(1, sizeof *s);
    if (!s) abort();
    static bool has_timer;
    if (!has_timer) loop_every(c->server->loop, 1000, on_second, NULL);
    has_timer = true;
    shells++;
    s->next = first;
    first = s;
    s->auth = c->server->auth;
    s->who = c->who;
    s->request = c->request;
    r = http_socket_begin(c->request, &browser, s, NULL, e);
    if (r < 0) {
        shell_free(s);
        return r;
    }
    auth_audit(c->server->auth, &c->who, c->address, "GET", c->request->head.path, 101, clock_real_ns() / NS_PER_S);
    struct error why;
    if (link_stream_open(c->server->links, n->name, &o, &node, s, &s->stream, &why) < 0)
        over(s, WEBSOCKET_FAILED, why.text);
    return CALL_DONE;
}
