#include "base/thread.h"

#include <signal.h>

int thread_join_later(pthread_t *ret, void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what,
                      struct error *e) {
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    if (stack_bytes) pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread begins with its maker's mask */
    int r = pthread_create(ret, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r ? fail_errno(e, r, "a thread for %s", what) : 0;
}

int thread_start(void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what, struct error *e) {
    pthread_t thread;
    int r = thread_join_later(&thread, fn, arg, stack_bytes, what, e);
    if (r >= 0) pthread_detach(thread);
    return r;
}
