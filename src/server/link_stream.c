#include "server/link_stream.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/link_own.h"

#define OPEN_NS (30 * NS_PER_S)

struct link_stream {
    struct link_stream *next;
    struct link_streams *of;
    uint32_t id;
    struct link_stream_events events;
    void *ctx;
    bool is_open, is_over, is_last; /* is_over: from here; is_last: from there */
    uint32_t room;                  /* bytes that the node has room for */
    uint32_t out;                   /* bytes that were handed out and have not left */
    uint32_t took;                  /* of those that have left, not told yet */
    int64_t until_ns;               /* it must be open by then */
};

static void send_frames(struct link_streams *k, const struct buf *b) { bufferevent_write(k->bev, b->s, b->len); }

static void say_word(struct link_streams *k, enum wire_type type, uint32_t id, uint32_t value) {
    AUTO(buf_done) struct buf b = {0};
    const struct wire_stream_word w = {id, value};
    wire_put_stream_word(&b, type, &w);
    send_frames(k, &b);
}

static struct link_stream *find(const struct link_streams *k, uint32_t id) {
    struct link_stream *s = k->first;
    while (s && s->id != id) s = s->next;
    return s;
}

static void stream_free(struct link_streams *k, struct link_stream *s) {
    struct link_stream **at = &k->first;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    k->count--;
    free(s);
}

/* Over, and whoever has it is told. */
static void over(struct link_streams *k, struct link_stream *s, int result, const char *sentence) {
    const struct link_stream_events events = s->events;
    void *ctx = s->ctx;
    stream_free(k, s);
    if (events.closed) events.closed(ctx, result, sentence);
}

/* ---- for whoever has one ---- */

int link_stream_open(struct links *l, const char *node, struct wire_stream_open *o,
                     const struct link_stream_events *events, void *ctx, struct link_stream **ret, struct error *e) {
    struct link_streams *k = *links_streams(l);
    while (k && strcmp(k->node, node) != 0) k = k->next;
    if (!k) return fail(e, -ENOTCONN, "machine %s is not connected", node);
    if (k->count >= WIRE_STREAMS_MAX) return fail(e, -EAGAIN, "too many streams at once to machine %s", node);
    do {
        k->last_id += k->last_id == UINT32_MAX ? 2 : 1; /* never 0 */
    } while (find(k, k->last_id));
    o->id = k->last_id;
    struct link_stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct link_stream){.next = k->first,
                              .of = k,
                              .id = o->id,
                              .events = *events,
                              .ctx = ctx,
                              .room = WIRE_STREAM_WINDOW,
                              .until_ns = clock_boot_ns() + OPEN_NS};
    k->first = s;
    k->count++;
    AUTO(buf_done) struct buf b = {0};
    wire_put_stream_open(&b, o);
    send_frames(k, &b);
    *ret = s;
    return 0;
}

size_t link_stream_room(const struct link_stream *s) { return s->is_open && !s->is_over ? s->room : 0; }

void link_stream_write(struct link_stream *s, const void *bytes, size_t n) {
    AUTO(buf_done) struct buf b = {0};
    if (n > link_stream_room(s)) abort(); /* a caller that does not ask first */
    for (const uint8_t *at = bytes; n;) {
        struct wire_stream_data d = {s->id, at, n < WIRE_STREAM_DATA_MAX ? n : WIRE_STREAM_DATA_MAX};
        wire_put_stream_data(&b, &d);
        s->room -= (uint32_t)d.len;
        at += d.len;
        n -= d.len;
    }
    if (b.len) send_frames(s->of, &b);
}

void link_stream_took(struct link_stream *s, size_t n) {
    if (n > s->out) n = s->out;
    s->out -= (uint32_t)n;
    s->took += (uint32_t)n;
    if (s->is_last || (s->took < WIRE_STREAM_WINDOW / 4 && s->out)) return;
    if (s->took) say_word(s->of, WIRE_STREAM_WINDOW_MORE, s->id, s->took);
    s->took = 0;
}

void link_stream_end(struct link_stream *s) {
    if (s->is_over) return;
    s->is_over = true;
    say_word(s->of, WIRE_STREAM_END, s->id, 0);
}

void link_stream_size(struct link_stream *s, unsigned rows, unsigned columns) {
    say_word(s->of, WIRE_STREAM_SIZE, s->id, rows << 16 | (columns & 0xffff));
}

void link_stream_close(struct link_stream *s) {
    if (!s) return;
    if (!s->is_over || !s->is_last) say_word(s->of, WIRE_STREAM_CLOSE, s->id, 0);
    stream_free(s->of, s);
}

/* ---- what the node says ---- */

static int on_opened(struct link_streams *k, const struct wire_frame *f, struct error *e) {
    struct wire_stream_opened o;
    int r = wire_get_stream_opened(f, &o, e);
    if (r < 0) return r;
    struct link_stream *s = find(k, o.id);
    if (!s || s->is_open) return 0;
    if (o.result < 0) {
        over(k, s, o.result, o.text);
        return 0;
    }
    s->is_open = true;
    if (s->events.opened) s->events.opened(s->ctx);
    return 0;
}

static int on_data(struct link_streams *k, const struct wire_frame *f, struct error *e) {
    struct wire_stream_data d;
    int r = wire_get_stream_data(f, &d, e);
    if (r < 0) return r;
    struct link_stream *s = find(k, d.id);
    if (!s) return 0;
    if (s->is_last || s->out + s->took + d.len > WIRE_STREAM_WINDOW)
        return fail(e, -EPROTO, "the node sends more than there is room for");
    s->out += (uint32_t)d.len;
    s->events.data(s->ctx, d.bytes, d.len);
    return 0;
}

static void on_ended(struct link_streams *k, uint32_t id) {
    struct link_stream *s = find(k, id);
    if (!s || s->is_last) return;
    s->is_last = true;
    if (s->events.ended) s->events.ended(s->ctx);
    s = find(k, id); /* it may have been closed just now */
    if (s && s->is_over) over(k, s, 0, "");
}

static int on_word(struct link_streams *k, const struct wire_frame *f, struct error *e) {
    struct wire_stream_word w;
    int r = wire_get_stream_word(f, &w, e);
    if (r < 0) return r;
    struct link_stream *s = find(k, w.id);
    if (!s) return 0;
    if (f->type == WIRE_STREAM_END) on_ended(k, w.id);
    if (f->type == WIRE_STREAM_CLOSE)
        over(k, s, s->is_open ? -ECONNRESET : -EIO, "the connection to it was broken off");
    if (f->type != WIRE_STREAM_WINDOW_MORE) return 0;
    if (w.value > WIRE_STREAM_WINDOW - s->room) return fail(e, -EPROTO, "the node has more room than there is");
    s->room += w.value;
    if (s->events.room) s->events.room(s->ctx);
    return 0;
}

int link_streams_take(struct link_streams *k, const struct wire_frame *f, struct error *e) {
    if (f->version != WIRE_VERSION) return 0;
    if (f->type == WIRE_STREAM_OPENED) return on_opened(k, f, e);
    if (f->type == WIRE_STREAM_DATA) return on_data(k, f, e);
    if (f->type >= WIRE_STREAM_WINDOW_MORE && f->type <= WIRE_STREAM_CLOSE) return on_word(k, f, e);
    return 0;
}

/* ---- the connection ---- */

int link_streams_new(struct links *l, struct bufferevent *bev, const struct wire_frame *hello,
                     struct link_streams **ret, struct error *e) {
    struct wire_stream_hello h;
    int r = wire_get_stream_hello(hello, &h, e);
    if (r < 0) return r;
    struct link_streams *k = calloc(1, sizeof *k);
    if (!k) abort();
    memcpy(k->node, h.node, sizeof k->node);
    k->bev = bev;
    k->next = *links_streams(l); /* the newest of a node's counts */
    *links_streams(l) = k;
    *ret = k;
    return 0;
}

void link_streams_tick(struct link_streams *k, int64_t now_ns) {
    for (;;) { /* from the first on each time: whoever is told may close others */
        struct link_stream *s = k->first;
        while (s && (s->is_open || now_ns < s->until_ns)) s = s->next;
        if (!s) return;
        say_word(k, WIRE_STREAM_CLOSE, s->id, 0);
        over(k, s, -ETIMEDOUT, "the machine did not answer in time");
    }
}

void link_streams_free(struct links *l, struct link_streams *k) {
    struct link_streams **at = links_streams(l);
    while (*at && *at != k) at = &(*at)->next;
    if (*at) *at = k->next;
    while (k->first) over(k, k->first, -ENOTCONN, "the machine's connection ended");
    free(k);
}
