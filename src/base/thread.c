#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

int thread_start(void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what, struct error *e) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack_bytes);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread begins with its maker's mask */
    int r = pthread_create(&thread, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r ? fail_errno(e, r, "a thread for %s", what) : 0;
}
