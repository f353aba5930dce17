#include "base/clock.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t read_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t clock_boot_ns(void) { return read_ns(CLOCK_BOOTTIME); }
int64_t clock_real_ns(void) { return read_ns(CLOCK_REALTIME); }
int64_t clock_thread_cpu_ns(void) { return read_ns(CLOCK_THREAD_CPUTIME_ID); }
int64_t clock_process_cpu_ns(void) { return read_ns(CLOCK_PROCESS_CPUTIME_ID); }

void clock_sleep_until(int64_t at_ns) {
    struct timespec t = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

void clock_be_prompt(void) { (void)setpriority(PRIO_PROCESS, (id_t)gettid(), -10); }
