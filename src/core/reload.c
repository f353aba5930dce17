#include "core/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define OUTPUT_MAX 65536
#define PATIENCE_NS (5 * NS_PER_S)
#define ARGS_MAX 120

static void run(char *const *argv, int out, int err) {
    const char *args[ARGS_MAX + 4];
    int n = 0;
    sigset_t none;
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

/* It has closed its output, so it is about to end; if not, it is killed, and reaped with the other children. */
static bool ended_well(pid_t pid) {
    int status;
    for (int64_t until_ns = clock_boot_ns() + NS_PER_S; clock_boot_ns() < until_ns;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got != 0) return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        clock_sleep_until(clock_boot_ns() + NS_PER_MS);
    }
    kill(pid, SIGKILL);
    return false;
}

/* Reads both pipes to their ends; false when that takes too long or is too much. */
static bool collect(int out, int err, struct buf *text, struct buf *words) {
    struct pollfd fds[] = {
        {.fd = out, .events = POLLIN},
        {.fd = err, .events = POLLIN}
    };
    struct buf *into[] = {text, words};
    int64_t until_ns = clock_boot_ns() + PATIENCE_NS;
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        int64_t left_ns = until_ns - clock_boot_ns();
        if (left_ns <= 0 || poll(fds, 2, (int)(left_ns / NS_PER_MS) + 1) < 0) return false;
        for (int i = 0; i < 2; i++) {
            char part[4096];
            if (!fds[i].revents) continue;
            ssize_t n = read(fds[i].fd, part, sizeof part);
            if (n <= 0) fds[i].fd = -1;
            if (n > 0) buf_add(into[i], part, (size_t)n);
            if (into[i]->len > OUTPUT_MAX) return false;
        }
    }
    return true;
}

int reload_settings(char *const *argv, struct settings *ret, struct error *e) {
    int out[2], err[2];
    AUTO(buf_done) struct buf text = {0}, words = {0};
    if (pipe2(out, O_CLOEXEC) < 0) return fail_errno(e, errno, "reload");
    if (pipe2(err, O_CLOEXEC) < 0) {
        close(out[0]);
        close(out[1]);
        return fail_errno(e, errno, "reload");
    }
    pid_t pid = fork();
    if (pid == 0) run(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    buf_puts(&text, "");
    buf_puts(&words, "");
    bool is_done = pid > 0 && collect(out[0], err[0], &text, &words);
    close(out[0]);
    close(err[0]);
    if (pid < 0) return fail_errno(e, errno, "reload");
    if (!is_done) {
        kill(pid, SIGKILL); /* and not waited for: it may be stuck, and we have others to look after */
        return fail(e, -ETIMEDOUT, "reading the configuration took too long");
    }
    words.s[strcspn(words.s, "\n")] = 0;
    if (!ended_well(pid)) return fail(e, -EINVAL, "%s", words.len ? words.s : "the configuration could not be read");
    return settings_decode(ret, text.s, e);
}
