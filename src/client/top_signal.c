#include "client/top_signal.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "client/top_proc.h"

int top_signal_send(const struct top_process *p, int number, struct error *e) {
    AUTO(fd_done) int fd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0);
    if (fd < 0 && errno == ESRCH) return fail(e, -ESRCH, "Process %u has ended already.", p->pid);
    if (fd < 0) return fail_errno(e, errno, "process %u", p->pid);
    /* With the descriptor in hand the pid cannot be given to another: now it counts whether it is still the same. */
    if (top_proc_start(p->pid) != p->start_ticks) return fail(e, -ESRCH, "Process %u has ended already.", p->pid);
    if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0) return 0;
    return fail_errno(e, errno, "process %u", p->pid);
}
