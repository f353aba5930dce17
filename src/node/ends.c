#include "node/ends.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define STACK_BYTES (64 * 1024)
#define AT_ONCE 64
#define KEPT 16384u /* more than there can be tasks */

static struct {
    int epoll, wake;
    pthread_mutex_t lock;
    uint32_t head, tail;
    struct {
        int64_t at_ns;
        uint32_t number;
    } of[KEPT];
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *run(void *arg) {
    struct epoll_event ev[AT_ONCE];
    uint64_t one = 1;
    pthread_setname_np(pthread_self(), "ends");
    /* Ahead of all that shares the processors by turns: it reads a clock and waits again. */
    if (pthread_setschedparam(pthread_self(), SCHED_RR, &(struct sched_param){.sched_priority = 1}) != 0)
        clock_be_prompt();
    for (;;) {
        int n = epoll_wait(self.epoll, ev, AT_ONCE, -1);
        int64_t now_ns = clock_boot_ns();
        pthread_mutex_lock(&self.lock);
        for (int i = 0; i < n && self.head - self.tail < KEPT; i++) {
            self.of[self.head % KEPT].at_ns = now_ns;
            self.of[self.head++ % KEPT].number = ev[i].data.u32;
        }
        pthread_mutex_unlock(&self.lock);
        if (n > 0 && write(self.wake, &one, sizeof one) < 0) continue; /* it is readable already */
    }
    return NULL;
}

int ends_start(int wake_fd, struct error *e) {
    self.wake = wake_fd;
    self.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self.epoll < 0) return fail_errno(e, errno, "epoll");
    return thread_start(run, NULL, STACK_BYTES, "ends", e);
}

/* Once only: it stays readable until it is closed. */
bool ends_add(int pidfd, uint32_t number) {
    struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = number};
    return epoll_ctl(self.epoll, EPOLL_CTL_ADD, pidfd, &ev) == 0;
}

bool ends_take(uint32_t *ret_number, int64_t *ret_ns) {
    pthread_mutex_lock(&self.lock);
    bool is_some = self.tail != self.head;
    if (is_some) {
        *ret_number = self.of[self.tail % KEPT].number;
        *ret_ns = self.of[self.tail++ % KEPT].at_ns;
    }
    pthread_mutex_unlock(&self.lock);
    return is_some;
}
