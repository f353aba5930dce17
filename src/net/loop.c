#include "net/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct call {
    struct call *next;
    loop_fn fn;
    void *ctx;
};

struct watch {
    struct watch *next;
    struct event *event;
    loop_fn fn;
    void *ctx;
};

struct loop {
    struct event_base *base;
    struct watch *watches;
    struct event *bell;
    int bell_fd;
    pthread_mutex_t lock; /* of the calls */
    struct call *first, **last;
};

static void *get(size_t size) {
    void *p = calloc(1, size);
    if (!p) abort();
    return p;
}

/* Takes all calls at once: what they post themselves comes in the next round, so none can keep the loop busy. */
static void on_bell(evutil_socket_t fd, short what, void *ctx) {
    struct loop *l = ctx;
    uint64_t n;
    if (read(fd, &n, sizeof n) < 0 && errno != EAGAIN) return;
    pthread_mutex_lock(&l->lock);
    struct call *call = l->first;
    l->first = NULL;
    l->last = &l->first;
    pthread_mutex_unlock(&l->lock);
    while (call) {
        struct call *next = call->next;
        call->fn(call->ctx);
        free(call);
        call = next;
    }
}

void loop_post(struct loop *l, loop_fn fn, void *ctx) {
    struct call *call = get(sizeof *call);
    *call = (struct call){.fn = fn, .ctx = ctx};
    pthread_mutex_lock(&l->lock);
    *l->last = call;
    l->last = &call->next;
    pthread_mutex_unlock(&l->lock);
    uint64_t one = 1;
    if (write(l->bell_fd, &one, sizeof one) < 0) abort(); /* a counter of 64 bits is never full */
}

int loop_new(struct loop **ret, struct error *e) {
    struct loop *l = get(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->last = &l->first;
    l->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->base = event_base_new();
    if (l->base && l->bell_fd >= 0) l->bell = event_new(l->base, l->bell_fd, EV_READ | EV_PERSIST, on_bell, l);
    if (!l->bell || event_add(l->bell, NULL) < 0) {
        loop_free(l);
        return fail(e, -ENOMEM, "no event loop can be made");
    }
    *ret = l;
    return 0;
}

void loop_free(struct loop *l) {
    if (!l) return;
    while (l->watches) {
        struct watch *w = l->watches;
        l->watches = w->next;
        event_free(w->event);
        free(w);
    }
    while (l->first) {
        struct call *call = l->first;
        l->first = call->next;
        free(call);
    }
    if (l->bell) event_free(l->bell);
    if (l->base) event_base_free(l->base);
    if (l->bell_fd >= 0) close(l->bell_fd);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct event_base *loop_base(struct loop *l) {
    return l->base;
}

void loop_run(struct loop *l) { event_base_dispatch(l->base); }

void loop_stop(struct loop *l) { event_base_loopexit(l->base, NULL); }

static void on_watch(evutil_socket_t fd, short what, void *ctx) {
    struct watch *w = ctx;
    w->fn(w->ctx);
}

static void watch_add(struct loop *l, int fd, short what, const struct timeval *after, loop_fn fn, void *ctx) {
    struct watch *w = get(sizeof *w);
    *w = (struct watch){.next = l->watches, .fn = fn, .ctx = ctx};
    w->event = event_new(l->base, fd, what | EV_PERSIST, on_watch, w);
    if (!w->event || event_add(w->event, after) < 0) abort();
    l->watches = w;
}

void loop_every(struct loop *l, int64_t ms, loop_fn fn, void *ctx) {
    struct timeval after = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    watch_add(l, -1, 0, &after, fn, ctx);
}

void loop_signal(struct loop *l, int number, loop_fn fn, void *ctx) { watch_add(l, number, EV_SIGNAL, NULL, fn, ctx); }
