#include "server/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "server/live_json.h"
#include "server/live_tasks_json.h"
#include "server/queue.h"

#define STREAMS_MAX 1000
#define EVERY_NS (900 * NS_PER_MS)   /* not more often than this, whatever nodes do */
#define CHECK_NS (10 * NS_PER_S)     /* who signed out, or was shut out, reads on for so long */
#define SILENT_NS (1400 * NS_PER_MS) /* nor more seldom: a reader takes silence for a broken connection */

struct reader {
    struct reader *next, **back;
    struct streams *streams;
    struct http_request *request;
};

struct streams {
    struct live *live;
    struct queue *queue;
    bool (*may_read)(void *ctx, const struct http_request *r);
    void *ctx;
    int64_t checked_ns;
    struct reader *first;
    unsigned count;
    uint64_t seq, version, shape; /* of what was told last */
    int64_t told_ns;
    struct buf text;
    struct http_shared *snapshot; /* of that version; NULL: not made */
};

static void reader_gone(struct http_request *r) {
    struct reader *reader = r->ctx;
    *reader->back = reader->next;
    if (reader->next) reader->next->back = reader->back;
    reader->streams->count--;
    free(reader);
}

/* ---- messages ---- */

static void begin(struct streams *s, const char *name) {
    buf_clear(&s->text);
    buf_printf(&s->text, "event: %s\ndata:", name); /* a space would make the JSON writer put a comma */
}

static struct http_shared *finish(struct streams *s) {
    buf_puts(&s->text, "\n\n");
    return http_shared_new(s->text.s, s->text.len);
}

static void put_when(struct streams *s) {
    json_key(&s->text, "seq");
    json_uint(&s->text, s->seq);
    gpu_json_number(&s->text, "time", (double)clock_real_ns() / NS_PER_S, 0.001);
}

static void send_all(struct streams *s, struct http_shared *bytes) {
    for (struct reader *r = s->first; r; r = r->next) http_stream_write(r->request, bytes);
    http_shared_drop(bytes);
}

static void snapshot_make(struct streams *s, int64_t now_ns) {
    http_shared_drop(s->snapshot);
    begin(s, "snapshot");
    buf_putc(&s->text, '{');
    put_when(s);
    live_json_gpus(&s->text, s->live, now_ns);
    live_json_nodes(&s->text, s->live, now_ns);
    live_json_tasks(&s->text, s->live, true, now_ns);
    if (s->queue) {
        queue_json_snapshot(s->queue, &s->text);
        queue_json_delta(s->queue, NULL);
    }
    buf_putc(&s->text, '}');
    s->snapshot = finish(s);
    live_told(s->live, now_ns);
    s->version = s->live->version;
    s->shape = s->live->shape;
    s->told_ns = now_ns;
}

/* Tells all readers what changed. Other devices than before: a snapshot says it better. */
static void tell(struct streams *s, int64_t now_ns) {
    s->seq++;
    if (s->shape != s->live->shape) {
        snapshot_make(s, now_ns);
        s->snapshot->holders++;
        send_all(s, s->snapshot);
        return;
    }
    http_shared_drop(s->snapshot);
    s->snapshot = NULL;
    begin(s, "delta");
    buf_putc(&s->text, '{');
    put_when(s);
    live_json_delta(&s->text, s->live, now_ns);
    if (s->queue) queue_json_delta(s->queue, &s->text);
    buf_putc(&s->text, '}');
    s->version = s->live->version;
    s->told_ns = now_ns;
    send_all(s, finish(s));
}

void streams_event(struct streams *s, const struct event *ev, int64_t id, const char *node,
                   const struct inventory *gpu) {
    if (!s->count) return;
    begin(s, "event");
    live_json_event(&s->text, ev, id, node, gpu);
    send_all(s, finish(s));
}

/* ---- when ---- */

void streams_round(struct streams *s) {
    int64_t now_ns = clock_boot_ns();
    if (s->count && now_ns - s->told_ns >= EVERY_NS) tell(s, now_ns);
}

/* A stream is opened once and read for days: a session that ended meanwhile ends it, too. */
static void check_readers(struct streams *s) {
    for (struct reader *r = s->first, *next; r; r = next) {
        next = r->next;
        if (s->may_read(s->ctx, r->request)) continue;
        struct http_request *request = r->request;
        reader_gone(request);
        http_stream_end(request);
    }
}

static void on_tick(void *ctx) {
    struct streams *s = ctx;
    int64_t now_ns = clock_boot_ns();
    if (s->may_read && s->count && now_ns - s->checked_ns >= CHECK_NS) {
        s->checked_ns = now_ns;
        check_readers(s);
    }
    if (s->count && now_ns - s->told_ns >= SILENT_NS) tell(s, now_ns);
}

/* ---- readers ---- */

int streams_add(struct streams *s, struct http_request *request, struct error *e) {
    if (s->count >= STREAMS_MAX) return fail(e, -EAGAIN, "too many live streams are open");
    /* The others are told first: the snapshot must be what the next delta goes on from. */
    int64_t now_ns = clock_boot_ns();
    if (s->version != s->live->version && s->count > 0) tell(s, now_ns);
    if (!s->snapshot || s->version != s->live->version) snapshot_make(s, now_ns);
    struct reader *r = calloc(1, sizeof *r);
    if (!r) abort();
    *r = (struct reader){.next = s->first, .back = &s->first, .streams = s, .request = request};
    if (r->next) r->next->back = &r->next;
    s->first = r;
    s->count++;
    request->ctx = r;
    http_add_field(request, "X-Accel-Buffering", "no"); /* a proxy that collects would make it anything but live */
    http_stream_begin(request, "text/event-stream");
    http_on_gone(request, reader_gone);
    static const char retry[] = "retry: 1000\n\n";
    struct http_shared *first = http_shared_new(retry, sizeof retry - 1);
    http_stream_write(request, first);
    http_shared_drop(first);
    http_stream_write(request, s->snapshot);
    return 0;
}

struct streams *streams_new(struct loop *l, struct live *live,
                            bool (*may_read)(void *ctx, const struct http_request *r), void *ctx) {
    struct streams *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->live = live;
    s->may_read = may_read;
    s->ctx = ctx;
    loop_every(l, 500, on_tick, s);
    return s;
}

void streams_free(struct streams *s) {
    if (!s) return;
    http_shared_drop(s->snapshot);
    buf_done(&s->text);
    free(s);
}

void streams_add_queue(struct streams *s, struct queue *q) { s->queue = q; }

unsigned streams_count(const struct streams *s) { return s->count; }
