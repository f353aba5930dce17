#include "server/auth_work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

struct work {
    state_post_fn post;
    void *loop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct task {
        void (*run)(void *ctx);
        void (*done)(void *ctx);
        void *ctx;
    } waiting[WORK_WAITING_MAX];
    int count;
    bool is_ending;
};

static bool next_task(struct work *w, struct task *ret) {
    pthread_mutex_lock(&w->lock);
    while (!w->count && !w->is_ending) pthread_cond_wait(&w->news, &w->lock);
    bool is_one = !w->is_ending;
    if (is_one) {
        *ret = w->waiting[0];
        memmove(w->waiting, w->waiting + 1, (size_t)--w->count * sizeof *w->waiting);
    }
    pthread_mutex_unlock(&w->lock);
    return is_one;
}

static void *work_thread(void *arg) {
    struct work *w = arg;
    for (struct task t; next_task(w, &t);) {
        t.run(t.ctx);
        w->post(w->loop, t.done, t.ctx);
    }
    return NULL;
}

int work_new(state_post_fn post, void *loop, struct work **ret, struct error *e) {
    struct work *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->post = post;
    w->loop = loop;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->news, NULL);
    int r = thread_join_later(&w->thread, work_thread, w, 0, "passwords", e);
    if (r < 0) {
        free(w);
        return r;
    }
    *ret = w;
    return 0;
}

void work_free(struct work *w) {
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->news);
    free(w);
}

int work_submit(struct work *w, void (*run)(void *ctx), void (*done)(void *ctx), void *ctx, struct error *e) {
    pthread_mutex_lock(&w->lock);
    bool is_full = w->count == WORK_WAITING_MAX || w->is_ending;
    if (!is_full) {
        w->waiting[w->count++] = (struct task){run, done, ctx};
        pthread_cond_signal(&w->news);
    }
    pthread_mutex_unlock(&w->lock);
    return is_full ? fail(e, -EAGAIN, "too many people sign in with passwords at this moment; try again") : 0;
}
