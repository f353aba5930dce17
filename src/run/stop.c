#include "run/stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int stop_send(int pidfd, int signo, int value) {
    siginfo_t si = {.si_signo = signo, .si_code = SI_QUEUE};
    si.si_pid = getpid();
    si.si_uid = getuid();
    si.si_value.sival_int = value;
    return syscall(SYS_pidfd_send_signal, pidfd, signo, &si, 0) == 0 ? 0 : -errno;
}
