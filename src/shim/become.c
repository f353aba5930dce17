/* From a fork of the shim to the job: its group of processes, its user, its place, and nothing of ours but what it is given.
 * All that can fail is tried before it is said to have started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "run/become.h"
#include "shim/shim.h"

#define FILES_USUAL 1024     /* soft limit: programs that use select() count on it */
#define SLACK_USUAL_NS 50000 /* of timers */

static const struct become *self;

_Noreturn static void give_up(int errnum, const char *what, const char *which) {
    struct become_report r = {.errnum = errnum};
    snprintf(r.text, sizeof r.text, "%s%s%.140s", what, *which ? " " : "", which);
    (void)!write(self->report, &r, sizeof r);
    _exit(127);
}

/* Where the kernel could not put it there at its birth. */
static void join_cgroup(const char *dir) {
    char path[600];
    if (!*dir || self->is_in_cgroup) return;
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) give_up(errno, "cgroup", dir);
    close(fd);
}

static void wire_up(void) {
    int in = self->terminal >= 0 ? self->terminal : open("/dev/null", O_RDWR | O_CLOEXEC);
    int out = self->terminal >= 0 ? self->terminal : self->output;
    if (in < 0) give_up(errno, "/dev/null", "");
    if (self->terminal >= 0 && ioctl(in, TIOCSCTTY, 0) < 0) give_up(errno, "a terminal", "");
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        give_up(errno, "standard output", "");
}

static void become_user(const struct order *o) {
    const char *what = run_become(o);
    if (what) give_up(errno, what, "");
}

/* As a login would find it. Going back needs no right. */
static void be_ordinary(void) {
    struct rlimit files;
    prctl(PR_SET_TIMERSLACK, SLACK_USUAL_NS);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > FILES_USUAL) {
        files.rlim_cur = FILES_USUAL;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
}

static void take_place(const struct order *o) {
    umask((mode_t)o->umask & 0777);
    if (chdir(o->cwd) < 0) give_up(errno, "the working directory", o->cwd);
}

/* Looked for as a shell would, in the job's own PATH. */
_Noreturn static void exec_job(void) {
    sigset_t none;
    setpriority(PRIO_PROCESS, 0, 0); /* until here somebody waits for us */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    environ = self->env;
    execvp(self->argv[0], self->argv);
    give_up(errno, "start", self->argv[0]);
}

_Noreturn void become_job(const struct become *b) {
    struct become_report ready = {.is_ready = 1};
    char go;
    self = b;
    CRASH_POINT_AS("become");
    join_cgroup(b->order->cgroup);
    if (setsid() < 0) give_up(errno, "a session", "");
    wire_up();
    be_ordinary();
    become_user(b->order);
    take_place(b->order);
    CRASH_POINT();
    if (write(b->report, &ready, sizeof ready) != (ssize_t)sizeof ready) _exit(127);
    CRASH_POINT();
    if (read(b->go, &go, 1) != 1) _exit(127);
    CRASH_POINT();
    exec_job();
}
