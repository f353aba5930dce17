#include "server/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/thread.h"

struct work {
    struct work *next;
    worker_fn run, done;
    void *ctx;
};

struct worker {
    struct loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below; held across nothing that waits */
    pthread_cond_t more;
    struct work *first, **last;
    unsigned waiting, most;
    bool is_ending;
};

static void *work_all(void *ctx) {
    struct worker *w = ctx;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->is_ending) pthread_cond_wait(&w->more, &w->lock);
        struct work *work = w->first;
        if (!work) break;
        w->first = work->next;
        if (!w->first) w->last = &w->first;
        w->waiting--;
        pthread_mutex_unlock(&w->lock);
        work->run(work->ctx);
        if (work->done) loop_post(w->loop, work->done, work->ctx);
        free(work);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int worker_new(struct loop *l, const char *name, unsigned most, struct worker **ret, struct error *e) {
    struct worker *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->loop = l;
    w->most = most;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    int r = thread_join_later(&w->thread, work_all, w, 0, name, e);
    if (r < 0) {
        free(w);
        return r;
    }
    pthread_setname_np(w->thread, name);
    *ret = w;
    return 0;
}

int worker_submit(struct worker *w, worker_fn run, worker_fn done, void *ctx, struct error *e) {
    struct work *work = calloc(1, sizeof *work);
    if (!work) abort();
    *work = (struct work){.run = run, .done = done, .ctx = ctx};
    pthread_mutex_lock(&w->lock);
    bool is_full = w->waiting >= w->most;
    if (!is_full) {
        *w->last = work;
        w->last = &work->next;
        w->waiting++;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    if (!is_full) return 0;
    free(work);
    return fail(e, -EAGAIN, "too much waits already; try again soon");
}

unsigned worker_waiting(struct worker *w) {
    pthread_mutex_lock(&w->lock);
    unsigned n = w->waiting;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void worker_end(struct worker *w) {
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
