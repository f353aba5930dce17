#include "server/containers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LOOK_NS (30 * NS_PER_S) /* an engine that hangs meets the node's limits sooner */
#define ACT_NS (180 * NS_PER_S) /* stopping and starting anew take what the container takes */
#define OPEN_MAX 512

struct open {
    struct open *next;
    uint64_t request;
    const struct live_node *node;
    int64_t until_ns;
    containers_fn done;
    void *ctx;
};

struct containers {
    struct links *links;
    struct open *first;
    unsigned count;
    uint64_t request;
};

/* Takes out the first that fits: by its number, of a node that left, or overdue. */
static struct open *open_take(struct containers *c, uint64_t request, const struct live_node *n, int64_t now_ns) {
    for (struct open **at = &c->first; *at; at = &(*at)->next) {
        struct open *o = *at;
        bool fits = request ? o->request == request && o->node == n : n ? o->node == n : o->until_ns < now_ns;
        if (!fits) continue;
        *at = o->next;
        c->count--;
        return o;
    }
    return NULL;
}

static void open_end(struct open *o, int result, const struct wire_container_answer *a, const char *sentence) {
    o->done(o->ctx, result, a, sentence);
    free(o);
}

int containers_ask(struct containers *c, struct live_node *n, struct wire_container_call *call, containers_fn done,
                   void *ctx, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    if (c->count >= OPEN_MAX) return fail(e, -EAGAIN, "too many questions about containers wait for an answer");
    call->request = ++c->request;
    wire_put_container_call(&b, call);
    int r = link_send(c->links, n, &b, e);
    if (r < 0) return r;
    struct open *o = malloc(sizeof *o);
    if (!o) abort();
    int64_t patience_ns = container_verb_changes((enum container_verb)call->verb) ? ACT_NS : LOOK_NS;
    *o = (struct open){c->first, call->request, n, clock_boot_ns() + patience_ns, done, ctx};
    c->first = o;
    c->count++;
    return 0;
}

static int take(void *ctx, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct containers *c = ctx;
    struct wire_container_answer a;
    int r = wire_get_container_answer(f, &a, e);
    if (r < 0) return r;
    struct open *o = open_take(c, a.request, n, 0);
    if (o) open_end(o, a.result < 0 ? a.result : 0, &a, a.text);
    return 0;
}

static void left(void *ctx, struct live_node *n) {
    struct open *o;
    while ((o = open_take(ctx, 0, n, 0)))
        open_end(o, -ENOTCONN, NULL, "the machine's connection ended; what was asked may have been done");
}

static void on_second(void *ctx) {
    struct open *o;
    while ((o = open_take(ctx, 0, NULL, clock_boot_ns())))
        open_end(o, -ETIMEDOUT, NULL, "the machine did not answer in time; what was asked may have been done");
}

struct containers *containers_new(struct loop *l, struct links *links) {
    struct containers *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->links = links;
    links_on_containers(links, &(struct link_jobs){.ctx = c, .take = take, .left = left});
    loop_every(l, 1000, on_second, c);
    return c;
}

void containers_free(struct containers *c) {
    if (!c) return;
    struct open *o;
    while ((o = open_take(c, 0, NULL, INT64_MAX))) open_end(o, -ENOTCONN, NULL, "the server ends");
    free(c);
}
