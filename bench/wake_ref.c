/* What this machine allows while a benchmark runs: how late a timer of 4 ms wakes its sleeper, and how long after a child's last
 * act a bare waiter on its pidfd runs. Nothing else is done here: who measures the same things beside other work can be no
 * better. Prints "timer AT LATE" and "end AT LATE" in nanoseconds of the boot clock until it is ended. For bench/tasks. */
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define STEP_NS (4 * NS_PER_MS)
#define STEPS 8 /* between two children */

static void child_ends(volatile int64_t *last_ns) {
    pid_t pid = fork();
    if (pid == 0) {
        *last_ns = clock_boot_ns();
        _exit(0);
    }
    if (pid < 0) return;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd >= 0 && poll(&p, 1, 10000) == 1) {
        int64_t now_ns = clock_boot_ns();
        printf("end %lld %lld\n", (long long)now_ns, (long long)(now_ns - *last_ns));
    }
    if (p.fd >= 0) close(p.fd);
    waitpid(pid, NULL, 0);
}

int main(void) {
    int64_t *last_ns = mmap(NULL, sizeof *last_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (last_ns == MAP_FAILED) return 1;
    clock_be_prompt(); /* as those who are compared with it */
    prctl(PR_SET_TIMERSLACK, 50000);
    prctl(PR_SET_PDEATHSIG, 15);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned n = 1;; n++) {
        int64_t due_ns = clock_boot_ns() + STEP_NS;
        clock_sleep_until(due_ns);
        int64_t now_ns = clock_boot_ns();
        printf("timer %lld %lld\n", (long long)now_ns, (long long)(now_ns - due_ns));
        if (n % STEPS == 0) child_ends(last_ns);
    }
}
