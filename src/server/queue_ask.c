/* Questions to nodes that are answered later: to seal a record, to read a log, whether a service could run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire_health.h"
#include "server/queue_own.h"

#define ASK_NS (10 * NS_PER_S)
#define ASKS_MAX 20000

static struct queue_ask_open *ask_new(struct queue *q, const char *node, void *ctx, struct error *e) {
    if (q->asks_open >= ASKS_MAX) {
        fail(e, -EAGAIN, "too many questions wait for an answer");
        return NULL;
    }
    struct queue_ask_open *a = calloc(1, sizeof *a);
    if (!a) abort();
    *a = (struct queue_ask_open){.request = ++q->request, .until_ns = clock_boot_ns() + ASK_NS, .ctx = ctx};
    snprintf(a->node, sizeof a->node, "%s", node);
    struct queue_ask_open **end = q->asks ? q->asks_last : &q->asks; /* answers come in the order of the questions */
    *end = a;
    q->asks_last = &a->next;
    q->asks_open++;
    return a;
}

static struct queue_ask_open *ask_take(struct queue *q, uint64_t request) {
    for (struct queue_ask_open **at = &q->asks; *at; at = &(*at)->next) {
        struct queue_ask_open *a = *at;
        if (a->request != request) continue;
        *at = a->next;
        if (!a->next) q->asks_last = at;
        q->asks_open--;
        return a;
    }
    return NULL;
}

static void ask_fail(struct queue_ask_open *a, int result, const char *sentence) {
    if (a->sealed)
        a->sealed(a->ctx, result, NULL, sentence);
    else if (a->tried)
        a->tried(a->ctx, result, sentence);
    else
        a->log(a->ctx, result, NULL, sentence);
    free(a);
}

void queue_asks_end(struct queue *q, const char *node, int64_t now_ns) {
    for (bool more = true; more;) {
        more = false;
        for (struct queue_ask_open *a = q->asks; a && !more; a = a->next) {
            if (node ? strcmp(a->node, node) != 0 : a->until_ns > now_ns) continue;
            more = true; /* whoever is told may ask again: the list is walked anew */
            ask_take(q, a->request);
            ask_fail(a, node ? -ENOTCONN : -ETIMEDOUT,
                     node ? "the node's connection ended" : "the node did not answer in time");
            break;
        }
    }
}

static int ask_send(struct queue *q, struct queue_ask_open *a, const struct buf *frame, struct error *e) {
    struct live_node *n = live_find_node(q->live, a->node);
    int r = n ? link_send(q->links, n, frame, e) : fail(e, -ENOTCONN, "node %s is not known", a->node);
    if (r >= 0) return 0;
    ask_take(q, a->request);
    free(a);
    return r;
}

int queue_seal(struct queue *q, const char *node, const char *account, bool is_admin, const struct buf *record,
               queue_sealed_fn done, void *ctx, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct queue_ask_open *a = ask_new(q, node, ctx, e);
    if (!a) return -EAGAIN;
    a->sealed = done;
    struct wire_seal s = {
        .request = a->request, .is_admin = is_admin, .record = (const uint8_t *)record->s, .record_len = record->len};
    snprintf(s.account, sizeof s.account, "%s", account);
    wire_put_seal(&b, &s);
    return ask_send(q, a, &b, e);
}

int queue_log(struct queue *q, const char *node, const struct wire_log_ask *ask, queue_log_fn done, void *ctx,
              struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct queue_ask_open *a = ask_new(q, node, ctx, e);
    if (!a) return -EAGAIN;
    a->log = done;
    struct wire_log_ask out = *ask;
    out.request = a->request;
    wire_put_log_ask(&b, &out);
    return ask_send(q, a, &b, e);
}

int queue_take_sealed(struct queue *q, const struct wire_frame *f, struct error *e) {
    struct wire_sealed_reply s;
    int r = wire_get_sealed(f, &s, e);
    if (r < 0) return r;
    struct queue_ask_open *a = ask_take(q, s.request);
    if (!a || !a->sealed) {
        free(a);
        return 0;
    }
    a->sealed(a->ctx, s.result, &s.sealed, s.text);
    free(a);
    return 0;
}

int queue_take_log(struct queue *q, const struct wire_frame *f, struct error *e) {
    struct wire_log l;
    int r = wire_get_log(f, &l, e);
    if (r < 0) return r;
    struct queue_ask_open *a = ask_take(q, l.request);
    if (!a || !a->log) {
        free(a);
        return 0;
    }
    a->log(a->ctx, l.result, &l, l.text);
    free(a);
    return 0;
}

/* ---- services ---- */

int queue_try(struct queue *q, const char *node, uint32_t uid, const void *record, size_t len, queue_tried_fn done,
              void *ctx, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct queue_ask_open *a = ask_new(q, node, ctx, e);
    if (!a) return -EAGAIN;
    a->tried = done;
    wire_put_try(&b, &(struct wire_try){.request = a->request, .uid = uid, .record = record, .record_len = len});
    return ask_send(q, a, &b, e);
}

int queue_take_tried(struct queue *q, const struct wire_frame *f, struct error *e) {
    struct wire_tried t;
    int r = wire_get_tried(f, &t, e);
    if (r < 0) return r;
    struct queue_ask_open *a = ask_take(q, t.request);
    if (a && a->tried) a->tried(a->ctx, t.result, t.text);
    free(a);
    return 0;
}

void queue_on_health(struct queue *q, queue_health_fn fn, void *ctx) {
    q->on_health = fn;
    q->health_ctx = ctx;
}

int queue_take_health(struct queue *q, const struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_health h;
    int r = wire_get_health(f, &h, e);
    if (r >= 0 && q->on_health) q->on_health(q->health_ctx, n->name, &h);
    return r;
}
