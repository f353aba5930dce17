#include "core/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"

#define OUTPUT_MAX 65536
#define PATIENCE_NS (5 * NS_PER_S)
#define ARGS_MAX 120

static void run(char *const *argv, int out, int err) {
    const char *args[ARGS_MAX + 4];
    int n = 0;
    sigset_t none;
    CRASH_POINT_AS("reload");
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    args[n++] = argv[0];
    args[n++] = "config";
    args[n++] = "--resolved";
    for (int i = 1; argv[i] && i < ARGS_MAX; i++) args[n++] = argv[i];
    args[n] = NULL;
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(args[0], (char *const *)(uintptr_t)args); /* execv wants what it never writes */
    _exit(127);
}

static void done(struct reload *r) {
    for (int i = 0; i < 2; i++) {
        fd_done(&r->fd[i]);
        buf_done(&r->said[i]);
    }
    *r = (struct reload){
        .fd = {-1, -1}
    };
}

void reload_cancel(struct reload *r) {
    if (r->pid > 0) kill(r->pid, SIGKILL); /* and not waited for: it may be stuck, and is reaped with the others */
    done(r);
}

int reload_begin(struct reload *r, char *const *argv, int64_t now_ns, struct error *e) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0) return fail_errno(e, errno, "reload");
    if (pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0) {
        close(out[0]);
        close(out[1]);
        return fail_errno(e, errno, "reload");
    }
    pid_t pid = fork();
    if (pid == 0) {
        fcntl(out[1], F_SETFL, 0); /* it is a program like any other: it waits for its reader */
        fcntl(err[1], F_SETFL, 0);
        run(argv, out[1], err[1]);
    }
    int errnum = errno;
    close(out[1]);
    close(err[1]);
    *r = (struct reload){
        .pid = pid, .is_running = true, .fd = {out[0], err[0]},
                .until_ns = now_ns + PATIENCE_NS
    };
    for (int i = 0; i < 2; i++) buf_puts(&r->said[i], "");
    if (pid > 0) return 0;
    r->pid = 0;
    done(r);
    return fail_errno(e, errnum, "reload");
}

bool reload_reaped(struct reload *r, pid_t pid, int status) {
    if (!r->is_running || r->pid != pid) return false;
    r->pid = 0;
    r->status = status;
    return true;
}

/* False when it is too much. */
static bool collect(struct reload *r, int i) {
    char part[4096];
    ssize_t n = 1;
    while (r->fd[i] >= 0 && n > 0) {
        n = read(r->fd[i], part, sizeof part);
        if (n > 0) buf_add(&r->said[i], part, (size_t)n);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) fd_done(&r->fd[i]);
        if (r->said[i].len > OUTPUT_MAX) return false;
    }
    return true;
}

int reload_step(struct reload *r, int64_t now_ns, struct settings *ret, struct error *e) {
    bool is_late = now_ns >= r->until_ns;
    for (int i = 0; i < 2; i++) is_late |= !collect(r, i);
    if (is_late) {
        reload_cancel(r);
        return fail(e, -ETIMEDOUT, "reading the configuration took too long");
    }
    if (r->fd[0] >= 0 || r->fd[1] >= 0 || r->pid) return 0;
    char *words = r->said[1].s;
    words[strcspn(words, "\n")] = 0;
    bool is_well = WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0;
    int result = is_well ? settings_decode(ret, r->said[0].s, e)
                         : fail(e, -EINVAL, "%s", *words ? words : "the configuration could not be read");
    done(r);
    return result < 0 ? result : 1;
}
