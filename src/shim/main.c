/* gpumgr-shim: one for each run of a job, and all that must outlive the others for its sake: the parent of its processes,
 * whom no descendant can leave (a subreaper), the writer of its log, and the one who knows how it ended. Small, libc only,
 * no thread, no socket but the job's own terminal, and nobody to ask: node, server and supervisor may come and go.
 *
 *   gpumgr-shim RUN_DIRECTORY ORDER_FD
 *
 * The order (run/order.h) says everything; what is certain is in the run's state (run/record.h) before it is acted on. Started
 * twice for one run, the second ends without a word. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "model/job.h"
#include "run/stop.h"
#include "run/tree.h"
#include "shim/shim.h"
#include "shim/terminal.h"

#define PIECE_BYTES 65536
#define PIECES_AT_ONCE 16
#define PIPE_BYTES (1 << 20)
#define AGAIN_FIRST_NS (20 * NS_PER_MS) /* whoever survived a KILL was perhaps just being born */
#define AGAIN_MOST_NS NS_PER_S
#define GIVE_UP_NS (30 * NS_PER_S) /* the kernel has it: it cannot be ended */
#define WRITE_PATIENCE_NS (60 * NS_PER_S)

enum { EXIT_DONE, EXIT_TROUBLE = 1, EXIT_INPUT = 2, EXIT_NOT_MINE = 3 };

static struct {
    struct buf order_bytes;
    struct order order;
    char boot_id[40];
    int state, signals;
    struct run_log log;
    struct terminal terminal;
    int output;     /* what the job says; -1: it closed that */
    int report, go; /* the process to be; -1: it is the job, or gone */
    pid_t main;
    bool is_started, is_over; /* STARTED, EXIT are recorded */
    struct become_report failed;
    bool is_stopping;
    uint8_t reason;
    int64_t limit_at_ns, kill_at_ns, again_at_ns, again_ns, give_up_at_ns; /* INT64_MAX: never */
    unsigned unkillable;
} self = {.state = -1, .output = -1, .report = -1, .go = -1};

static int64_t or_never(int64_t a_ns, int64_t b_ns) { return a_ns > INT64_MAX - b_ns ? INT64_MAX : a_ns + b_ns; }

/* ---- what is certain ---- */

static struct record record_of(enum record_kind kind) {
    struct record r = {.kind = (uint8_t)kind, .shim_pid = getpid(), .reason = self.reason};
    snprintf(r.boot_id, sizeof r.boot_id, "%s", self.boot_id);
    return r;
}

/* A disk that fails for a moment must not turn an exit code into "unknown". */
static void append_for_sure(struct record *r) {
    struct error e;
    int64_t until_ns = clock_boot_ns() + WRITE_PATIENCE_NS;
    while (record_append(self.state, r, true, &e) < 0 && e.code != -ENOSPC && clock_boot_ns() < until_ns)
        clock_sleep_until(clock_boot_ns() + NS_PER_S);
}

static void record_use(struct record *r, const struct rusage *u) {
    r->user_us = u->ru_utime.tv_sec * INT64_C(1000000) + u->ru_utime.tv_usec;
    r->system_us = u->ru_stime.tv_sec * INT64_C(1000000) + u->ru_stime.tv_usec;
    r->host_peak_bytes = (uint64_t)u->ru_maxrss * 1024;
    r->log_bytes = self.log.end;
}

/* ---- what the job says ---- */

static bool take_output(void) {
    static char piece[PIECE_BYTES];
    for (int i = 0; i < PIECES_AT_ONCE && self.output >= 0; i++) {
        ssize_t n = read(self.output, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return false;
        if (n <= 0) {
            if (!self.order.is_pty) fd_done(&self.output); /* a terminal says EIO while nobody has it open */
            return false;
        }
        run_log_add(&self.log, piece, (size_t)n);
        if (self.order.is_pty) terminal_show(&self.terminal, piece, (size_t)n);
    }
    return self.output >= 0;
}

/* ---- the end ---- */

static void cgroup_kill(void) {
    char path[600];
    if (!*self.order.cgroup) return;
    snprintf(path, sizeof path, "%s/cgroup.kill", self.order.cgroup);
    AUTO(fd_done) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) (void)!write(fd, "1", 1);
}

static unsigned signal_all(int signo) {
    struct tree t = {0};
    if (signo == SIGKILL) cgroup_kill();
    (void)tree_scan(&t);
    tree_take_children(&t, getpid());
    tree_take_below(&t);
    unsigned n = tree_signal(&t, signo);
    if (signo == SIGTERM) (void)tree_signal(&t, SIGCONT); /* whoever stands still cannot hear it */
    tree_done(&t);
    return n;
}

static void kill_all(int64_t now_ns) {
    self.kill_at_ns = INT64_MAX;
    self.unkillable = signal_all(SIGKILL);
    if (self.give_up_at_ns == INT64_MAX) self.give_up_at_ns = now_ns + GIVE_UP_NS;
    self.again_ns = self.again_ns ? 2 * self.again_ns : AGAIN_FIRST_NS;
    if (self.again_ns > AGAIN_MOST_NS) self.again_ns = AGAIN_MOST_NS;
    self.again_at_ns = now_ns + self.again_ns;
}

static void end_all(int64_t grace_ns, int64_t now_ns) {
    int64_t kill_at_ns = or_never(now_ns, grace_ns);
    if (kill_at_ns < self.kill_at_ns && self.give_up_at_ns == INT64_MAX) self.kill_at_ns = kill_at_ns;
    if (grace_ns > 0) (void)signal_all(SIGTERM);
}

static void stop(uint8_t reason, int64_t grace_ns, int64_t now_ns) {
    if (!self.is_stopping && !self.is_over) {
        self.reason = reason;
        struct record r = record_of(RECORD_STOPPING);
        append_for_sure(&r);
    }
    self.is_stopping = true;
    if (!self.is_started) grace_ns = 0; /* it is not the job yet */
    end_all(grace_ns, now_ns);
    if (self.kill_at_ns <= now_ns) kill_all(now_ns);
}

/* ---- the process to be ---- */

static void let_go(void) {
    struct record r = record_of(RECORD_STARTED);
    struct error e;
    r.pid = self.main;
    r.ticks = tree_ticks(self.main);
    r.shim_ticks = tree_ticks(getpid());
    if (self.is_stopping || record_append(self.state, &r, true, &e) < 0) {
        if (!self.is_stopping) snprintf(self.failed.text, sizeof self.failed.text, "%.190s", e.text);
        fd_done(&self.go); /* which ends it: it never ran */
        return;
    }
    self.is_started = true;
    CRASH_POINT();
    (void)!write(self.go, "g", 1);
    CRASH_POINT();
    (void)setpriority(PRIO_PROCESS, 0, 0); /* we were started by somebody who is in a hurry */
    int64_t now_ns = clock_boot_ns();
    if (self.order.limit_ns) self.limit_at_ns = or_never(now_ns, self.order.limit_ns);
}

static void take_report(void) {
    struct become_report r;
    ssize_t n = self.report < 0 ? -1 : read(self.report, &r, sizeof r);
    if (n == (ssize_t)sizeof r && r.is_ready) {
        let_go();
        return;
    }
    if (n < 0) return;
    if (n == (ssize_t)sizeof r) self.failed = r;
    fd_done(&self.report);
    fd_done(&self.go);
}

static void main_ended(int status, const struct rusage *use) {
    take_report(); /* what it had to say before it went */
    take_report();
    struct record r = record_of(RECORD_EXIT);
    bool has_run = self.is_started && !self.failed.errnum;
    r.pid = self.main;
    record_use(&r, use);
    if (has_run) {
        r.has_exit = true;
        r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        r.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    } else if (!self.is_stopping) {
        r.reason = JOB_BY_START;
        if (self.failed.errnum)
            snprintf(r.text, sizeof r.text, "%s: %s", self.failed.text, strerror(self.failed.errnum));
        else
            snprintf(r.text, sizeof r.text, "%s", *self.failed.text ? self.failed.text : "it ended before it began");
    }
    append_for_sure(&r);
    self.is_over = true;
    self.limit_at_ns = INT64_MAX;
}

/* True while there is somebody. */
static bool reap(int64_t now_ns) {
    struct rusage use;
    int status;
    pid_t pid;
    bool was_over = self.is_over;
    while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0 || (pid < 0 && errno == EINTR))
        if (pid == self.main) main_ended(status, &use);
    bool is_empty = pid < 0 && errno == ECHILD;
    if (self.is_over && !was_over && !is_empty) end_all(self.order.grace_ns, now_ns); /* what it left behind */
    return !is_empty;
}

/* ---- what is said to us ---- */

static void on_signals(int64_t now_ns) {
    struct signalfd_siginfo si;
    while (read(self.signals, &si, sizeof si) == sizeof si) {
        if (si.ssi_signo == SIGTERM) stop(JOB_BY_CANCEL, self.order.grace_ns, now_ns);
        if (si.ssi_signo == STOP_SIGNAL) stop(stop_reason(si.ssi_int), stop_grace_ms(si.ssi_int) * NS_PER_MS, now_ns);
        if (si.ssi_signo == PASS_SIGNAL && si.ssi_int > 0 && si.ssi_int < NSIG && self.is_started && !self.is_over)
            kill(-self.main, si.ssi_int);
    }
}

static void on_time(int64_t now_ns) {
    if (now_ns >= self.limit_at_ns) {
        self.limit_at_ns = INT64_MAX;
        stop(JOB_BY_TIME_LIMIT, self.order.grace_ns, now_ns);
    }
    if (now_ns >= self.kill_at_ns || now_ns >= self.again_at_ns) kill_all(now_ns);
}

static int64_t next_ns(void) {
    int64_t next = self.limit_at_ns;
    if (self.kill_at_ns < next) next = self.kill_at_ns;
    if (self.again_at_ns < next) next = self.again_at_ns;
    return next;
}

static void wait_for_news(void) {
    struct pollfd fds[3 + TERMINAL_FDS] = {
        {.fd = self.signals, .events = POLLIN},
        {.fd = self.output,  .events = POLLIN},
        {.fd = self.report,  .events = POLLIN}
    };
    int64_t now_ns = clock_boot_ns(), at_ns = next_ns(), left_ns = at_ns > now_ns ? at_ns - now_ns : 0;
    struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    unsigned n = 3;
    if (self.order.is_pty) {
        terminal_poll(&self.terminal, fds + n);
        n += TERMINAL_FDS;
    }
    if (ppoll(fds, n, at_ns == INT64_MAX ? NULL : &left, NULL) <= 0) return;
    if (fds[2].revents) take_report();
    if (fds[1].revents) (void)take_output();
    if (fds[0].revents) on_signals(clock_boot_ns());
    if (n > 3) terminal_ready(&self.terminal, fds + 3);
}

static void loop(void) {
    while (reap(clock_boot_ns())) {
        int64_t now_ns = clock_boot_ns();
        if (now_ns >= self.give_up_at_ns && self.is_over) return;
        on_time(now_ns);
        wait_for_news();
    }
}

static void finish(void) {
    struct record r = record_of(RECORD_DONE);
    struct rusage use = {0};
    struct error e;
    while (take_output()) {}
    if (self.order.is_pty) terminal_close(&self.terminal);
    (void)sync_file_range(self.log.fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* soon, and nobody waits for it */
    getrusage(RUSAGE_CHILDREN, &use);
    record_use(&r, &use);
    if (self.unkillable && clock_boot_ns() >= self.give_up_at_ns)
        snprintf(r.text, sizeof r.text, "%u of its processes cannot be ended", self.unkillable);
    (void)!record_append(self.state, &r, false, &e);
    CRASH_POINT();
    if (*self.order.cgroup) rmdir(self.order.cgroup);
}

/* ---- the start ---- */

static int read_order(int fd, struct error *e) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = file_read(path, ORDER_MAX, &self.order_bytes, e);
    return r < 0 ? r : order_decode(self.order_bytes.s, self.order_bytes.len, &self.order, e);
}

static int take_signals(struct error *e) {
    sigset_t set;
    sigfillset(&set); /* a stray signal for a terminal or a group is not for us */
    sigprocmask(SIG_SETMASK, &set, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, STOP_SIGNAL);
    sigaddset(&set, PASS_SIGNAL);
    self.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return self.signals < 0 ? fail_errno(e, errno, "signalfd") : 0;
}

static int open_output(int *ret_theirs, struct error *e) {
    int ends[2];
    int r = run_log_open(&self.log, "log", self.order.log_max, self.order.uid, self.order.gid, e);
    if (r < 0) return r;
    *ret_theirs = -1;
    if (self.order.is_pty) {
        r = terminal_open(&self.terminal, self.order.uid, self.order.gid, e);
        self.output = self.terminal.master;
        return r;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) return fail_errno(e, errno, "a pipe");
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* our end only: the job's blocks, as it expects */
    self.output = ends[0];
    *ret_theirs = ends[1];
    return 0;
}

/* A fork; where it can be, right into the cgroup: moving a process there later waits for every processor of the machine. */
static pid_t fork_into(const char *cgroup, bool *is_in) {
    AUTO(fd_done) int fd = *cgroup ? open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct clone_args how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd};
    *is_in = fd >= 0;
    pid_t pid = fd >= 0 ? (pid_t)syscall(SYS_clone3, &how, sizeof how) : -1;
    if (pid >= 0) return pid;
    *is_in = false;
    return fork();
}

/* Both pipes go with whoever ends; neither end may stay in the wrong process. */
static int start_process(struct error *e) {
    int report[2], go[2], theirs;
    int r = open_output(&theirs, e);
    if (r < 0) return r;
    if (pipe2(report, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0) return fail_errno(e, errno, "a pipe");
    struct become b = {.order = &self.order,
                       .argv = order_vector(&self.order.argv),
                       .env = order_vector(&self.order.env),
                       .output = theirs,
                       .terminal = self.order.is_pty ? self.terminal.slave : -1,
                       .report = report[1],
                       .go = go[0]};
    if (!b.argv || !b.env) return fail(e, -ENOMEM, "no memory");
    CRASH_POINT();
    self.main = fork_into(self.order.cgroup, &b.is_in_cgroup);
    if (self.main < 0) return fail_errno(e, errno, "fork");
    if (self.main == 0) {
        close(go[1]);
        close(report[0]);
        become_job(&b);
    }
    CRASH_POINT();
    free(b.argv);
    free(b.env);
    close(report[1]);
    close(go[0]);
    fd_done(&theirs);
    self.report = report[0];
    self.go = go[1];
    fcntl(self.report, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Ours, and never started before. */
static int take_run(struct error *e) {
    struct record_state before;
    struct record intent = record_of(RECORD_INTENT);
    self.state = record_open("state", e);
    if (self.state < 0) return self.state;
    CRASH_POINT();
    int r = record_lock(self.state);
    if (r < 0) return fail_errno(e, -r, "the run's state");
    r = record_read(self.state, &before, e);
    if (r < 0) return r;
    if (before.has[RECORD_STARTED] || before.has[RECORD_EXIT]) return fail(e, -EALREADY, "it was started before");
    intent.shim_ticks = tree_ticks(getpid());
    return record_append(self.state, &intent, false, e);
}

static int prepare(char **argv, struct error *e) {
    AUTO(buf_done) struct buf boot = {0};
    int order_fd = atoi(argv[2]);
    self.limit_at_ns = self.kill_at_ns = self.again_at_ns = self.give_up_at_ns = INT64_MAX;
    setsid();
    umask(077);
    if (order_fd > 3) (void)syscall(SYS_close_range, 3, (unsigned)order_fd - 1, 0);
    (void)syscall(SYS_close_range, (unsigned)order_fd + 1, ~0u, 0);
    if (chdir(argv[1]) < 0) return fail_errno(e, errno, "%s", argv[1]);
    int r = read_order(order_fd, e);
    if (r < 0) return r;
    close(order_fd);
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &boot, e) >= 0)
        snprintf(self.boot_id, sizeof self.boot_id, "%.*s", (int)strcspn(boot.s, "\n"), boot.s);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return fail_errno(e, errno, "subreaper");
    return take_signals(e);
}

/* It cannot be started, and that is its end. */
static void note_failure(const struct error *e) {
    struct record r = record_of(RECORD_EXIT);
    r.reason = JOB_BY_START;
    snprintf(r.text, sizeof r.text, "%.*s", RECORD_TEXT - 1, e->text);
    append_for_sure(&r);
}

int main(int argc, char **argv) {
    struct error e;
    if (argc != 3) {
        fprintf(stderr, "gpumgr-shim: started by gpumgr-node for a job; see gpumgr --help\n");
        return EXIT_INPUT;
    }
    CRASH_POINT_AS("shim");
    CRASH_POINT_CALLS(true);
    if (prepare(argv, &e) < 0) {
        fprintf(stderr, "gpumgr-shim: %s\n", e.text);
        return EXIT_INPUT;
    }
    if (take_run(&e) < 0) {
        fprintf(stderr, "gpumgr-shim: %s\n", e.text);
        return e.code == -EAGAIN || e.code == -EALREADY ? EXIT_NOT_MINE : EXIT_TROUBLE;
    }
    CRASH_POINT();
    if (start_process(&e) < 0) {
        note_failure(&e);
        return EXIT_TROUBLE;
    }
    loop();
    finish();
    return EXIT_DONE;
}
