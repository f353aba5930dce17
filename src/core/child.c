#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/sampler.h"

#define TERM_PATIENCE_NS (3 * NS_PER_S)
#define KILL_PATIENCE_NS (2 * NS_PER_S)
#define FIRST_PAUSE_NS (100 * NS_PER_MS)
#define LONGEST_PAUSE_NS (30 * NS_PER_S)
#define AFTER_LOOK_NS (10 * NS_PER_MS)
#define AGAIN_PAUSE_NS (200 * NS_PER_MS)
#define AGAIN_LONGEST_NS (5 * NS_PER_S)
#define KILLED_PAUSE_NS (20 * NS_PER_MS) /* killed by someone while it did its work: it is missed at once */
#define KILLS_FREE 100

static void child_exec(struct child *c) {
    char fd_text[16];
    const char *argv[CHILD_ARGS_MAX];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    snprintf(fd_text, sizeof fd_text, "%d", c->heart_fd);
    for (int i = 0; i < CHILD_ARGS_MAX; i++) {
        argv[i] = c->argv[i] && strcmp(c->argv[i], "%H") == 0 ? fd_text : c->argv[i];
        if (!argv[i]) break;
    }
    if (c->has_heart) fcntl(c->heart_fd, F_SETFD, 0);
    execv(argv[0], (char *const *)(uintptr_t)argv); /* execv wants what it never writes */
    log_line(LOG_ERROR, "exec", -1, "%s: %s", argv[0], strerror(errno));
    _exit(127);
}

int child_start(struct child *c, int64_t now_ns, struct error *e) {
    if (c->has_heart && !c->heart) {
        int r = heart_make(&c->heart, &c->heart_fd, e);
        if (r < 0) return r;
    }
    if (c->heart) {
        c->heart->beat_ns = now_ns;
        c->heart->ready_ns = 0;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) return fail_errno(e, errno, "fork");
    if (pid == 0) {
        if (getppid() != parent) _exit(0);
        child_exec(c);
    }
    c->pid = pid;
    c->state = CHILD_UP;
    c->started_ns = now_ns;
    log_line(LOG_DEBUG, "started", -1, "%s runs as pid %d", c->name, (int)pid);
    return 0;
}

void child_end(struct child *c, int64_t now_ns) {
    if (c->state == CHILD_DOWN) c->start_ns = INT64_MAX;
    if (c->state != CHILD_UP) return;
    kill(c->pid, SIGTERM);
    c->state = CHILD_ENDING;
    c->ending_ns = now_ns;
}

static const char *ending_words(int status, char *ret, size_t room) {
    if (WIFSIGNALED(status))
        snprintf(ret, room, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(ret, room, "ended with code %d", WEXITSTATUS(status));
    return ret;
}

void child_reaped(struct child *c, int status, int64_t now_ns, bool is_stopping) {
    char words[80];
    bool wants_again = WIFEXITED(status) && WEXITSTATUS(status) == SAMPLER_AGAIN;
    bool was_told = c->state == CHILD_ENDING;
    int64_t ran_ns = now_ns - c->started_ns;
    c->pid = 0;
    c->state = CHILD_DOWN;
    if (is_stopping) {
        c->start_ns = INT64_MAX;
        return;
    }
    if (was_told) {
        c->start_ns = now_ns;
        return;
    }
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && c->heart && c->heart->ready_ns;
    int64_t pause_ns = wants_again  ? backoff_next(&c->backoff, ran_ns, 0, AGAIN_PAUSE_NS, AGAIN_LONGEST_NS)
                       : was_killed ? backoff_next(&c->backoff, ran_ns, KILLS_FREE, KILLED_PAUSE_NS, LONGEST_PAUSE_NS)
                                    : backoff_next(&c->backoff, ran_ns, 0, FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
    c->start_ns = now_ns + pause_ns;
    if (!wants_again)
        log_line(LOG_WARN, "child_ended", -1, "%s %s; starting it again in %.1f s", c->name,
                 ending_words(status, words, sizeof words), (double)pause_ns * 1e-9);
}

/* The driver has it and no signal reaches it. Its locks keep its successor off the GPUs it is stuck with. */
static void fence(struct child *c, int64_t now_ns) {
    log_line(LOG_ERROR, "child_fenced", -1,
             "%s (pid %d) cannot be killed: it is stuck in the driver; its GPU is left alone until it is gone", c->name,
             (int)c->pid);
    if (c->stuck) { /* a second one: do not pile them up */
        c->state = CHILD_FENCED;
        return;
    }
    c->stuck = c->pid;
    c->pid = 0;
    c->heart = NULL; /* the stuck one keeps its page; the next one gets its own */
    c->state = CHILD_DOWN;
    c->start_ns = now_ns;
}

void child_tick(struct child *c, int64_t now_ns, int64_t silent_ns, bool is_stopping) {
    struct error e;
    if (c->state == CHILD_DOWN && now_ns >= c->start_ns && !is_stopping) {
        if (c->after && now_ns < c->after_ns && access(c->after, F_OK) < 0) {
            c->start_ns = now_ns + AFTER_LOOK_NS;
            return;
        }
        if (child_start(c, now_ns, &e) < 0) {
            log_line(LOG_ERROR, "start", -1, "%s: %s", c->name, e.text);
            c->start_ns = now_ns + NS_PER_S;
        }
        return;
    }
    bool is_hung = c->state == CHILD_UP && c->heart && now_ns - c->heart->beat_ns > silent_ns;
    bool is_slow_to_end = c->state == CHILD_ENDING && now_ns - c->ending_ns > TERM_PATIENCE_NS;
    if (is_hung)
        log_line(LOG_ERROR, "child_hung", -1, "%s (pid %d) has no heartbeat: killing it", c->name, (int)c->pid);
    if (is_hung || is_slow_to_end) {
        kill(c->pid, SIGKILL);
        c->state = CHILD_KILLED;
        c->ending_ns = now_ns;
    } else if (c->state == CHILD_KILLED && now_ns - c->ending_ns > KILL_PATIENCE_NS && !is_stopping) {
        fence(c, now_ns);
    }
}

int64_t child_next_ns(const struct child *c, int64_t silent_ns) {
    switch (c->state) {
    case CHILD_DOWN: return c->start_ns;
    case CHILD_UP: return c->heart ? c->heart->beat_ns + silent_ns + NS_PER_MS : INT64_MAX;
    case CHILD_ENDING: return c->ending_ns + TERM_PATIENCE_NS + NS_PER_MS;
    case CHILD_KILLED: return c->ending_ns + KILL_PATIENCE_NS + NS_PER_MS;
    case CHILD_FENCED: return INT64_MAX;
    }
    return INT64_MAX;
}
