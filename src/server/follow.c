#include "server/follow.h"

#include <errno.h>

#include "base/clock.h"
#include "server/server.h"

enum { AGAIN_MS = 250, MOST = 256 };

static struct follower *first;
static unsigned count;

int follow_check(struct error *e) { return count < MOST ? 0 : fail(e, -EAGAIN, "too many logs are followed"); }

static void reader_gone(struct http_request *r) {
    struct follower *f = r->ctx;
    f->request = NULL;
}

static void on_time(void *ctx) {
    for (struct follower **at = &first; *at;) {
        struct follower *f = *at;
        if (!auth_is_still(f->auth, &f->who, clock_real_ns() / NS_PER_S)) f->is_over = true;
        if (!f->is_asking && f->request && !f->is_over) f->ask(f);
        if (f->is_asking || (f->request && !f->is_over)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        count--;
        if (f->request) http_stream_end(f->request);
        f->drop(f);
    }
}

void follow_begin(struct loop *l, struct follower *f, struct call *c) {
    static bool has_timer;
    if (!has_timer) loop_every(l, AGAIN_MS, on_time, NULL);
    has_timer = true;
    f->auth = c->server->auth;
    f->who = c->who;
    f->request = c->request;
    f->next = first;
    first = f;
    count++;
    if (f->request) {
        f->request->ctx = f;
        http_add_field(f->request, "X-Accel-Buffering", "no");
        http_stream_begin(f->request, "text/event-stream");
        http_on_gone(f->request, reader_gone);
    }
    call_free(c);
}

size_t follow_whole_characters(const uint8_t *s, size_t n) {
    size_t back = 0;
    while (back < 3 && back < n && (s[n - 1 - back] & 0xc0) == 0x80) back++;
    if (back >= n) return n;
    uint8_t lead = s[n - 1 - back];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return need > back + 1 ? n - 1 - back : n;
}

void follow_say(struct follower *f, const struct buf *b) {
    struct http_shared *bytes = http_shared_new(b->s, b->len);
    http_stream_write(f->request, bytes);
    http_shared_drop(bytes);
}
