#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "core/sampler.h"

#define TERM_PATIENCE_NS (3 * NS_PER_S)
#define KILL_PATIENCE_NS (2 * NS_PER_S)
#define QUIET_NS (3 * NS_PER_S) /* a beat comes every second: worth a look */
#define FIRST_PAUSE_NS (100 * NS_PER_MS)
#define LONGEST_PAUSE_NS (30 * NS_PER_S)
#define AFTER_LOOK_NS (10 * NS_PER_MS)
#define AGAIN_PAUSE_NS (200 * NS_PER_MS)
#define AGAIN_LONGEST_NS (5 * NS_PER_S)
#define KILLED_PAUSE_NS (20 * NS_PER_MS) /* killed by someone while it did its work: it is missed at once */
#define KILLS_FREE 100
#define SELDOM_PAUSE_NS NS_PER_S
#define SELDOM_LONGEST_NS (300 * NS_PER_S)
#define EXIT_INPUT 2 /* its settings are wrong: starting it again changes nothing */

/* A service may put the guard before others: nobody else of us is worth that. Going back needs no right. */
static void be_ordinary(void) {
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char text[16] = "";
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 && text[0] == '-') (void)!pwrite(fd, "0", 1, 0);
    if (fd >= 0) close(fd);
    if (getpriority(PRIO_PROCESS, 0) < 0) setpriority(PRIO_PROCESS, 0, 0);
}

/* After the fork. The order matters: whoever asks for the signal first and looks for the parent then misses neither. */
static void child_exec(struct child *c, pid_t parent) {
    char fd_text[16];
    const char *argv[CHILD_ARGS_MAX];
    sigset_t set;
    CRASH_POINT_AS(c->name);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(0);
    sigemptyset(&set);
    if (c->has_heart) sigaddset(&set, SIGHUP); /* a reload must not kill it before it knows the signal */
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (c->is_optional) be_ordinary();
    snprintf(fd_text, sizeof fd_text, "%d", c->heart_fd);
    for (int i = 0; i < CHILD_ARGS_MAX; i++) {
        argv[i] = c->argv[i] && strcmp(c->argv[i], "%H") == 0 ? fd_text : c->argv[i];
        if (!argv[i]) break;
    }
    if (c->has_heart) fcntl(c->heart_fd, F_SETFD, 0);
    if (!argv[0]) _exit(127);
    if (c->is_quiet) { /* what it says on its standard output is for people who start it by hand */
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0) dup2(null, STDOUT_FILENO);
    }
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
        c->heart->ready_ns = c->heart->given_back_ns = 0;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) return fail_errno(e, errno, "fork");
    if (pid == 0) child_exec(c, parent);
    c->pid = pid;
    c->state = CHILD_UP;
    c->started_ns = c->forgiven_ns = now_ns;
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

/* The driver has it and no signal reaches it. The fence of each GPU it is stuck with keeps its successor off (fence.h);
 * the successor watches the others. */
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
    heart_close(&c->heart, &c->heart_fd); /* the stuck one keeps its page; the next one gets its own */
    c->state = CHILD_DOWN;
    c->start_ns = now_ns;
}

static void stuck_is_gone(struct child *c, int64_t now_ns, bool is_stopping) {
    log_line(LOG_INFO, "fence_open", -1, "the stuck %s (pid %d) is gone", c->name, (int)c->stuck);
    c->stuck = 0;
    if (c->state == CHILD_FENCED && !is_stopping) fence(c, now_ns);
}

/* How long until the next one. INT64_MAX: not before the settings change. */
static int64_t pause_after(struct child *c, int status, int64_t ran_ns) {
    bool was_ready = c->heart && c->heart->ready_ns;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SAMPLER_AGAIN && !c->is_optional)
        return backoff_next(&c->backoff, ran_ns, 0, AGAIN_PAUSE_NS, AGAIN_LONGEST_NS);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && was_ready)
        return backoff_next(&c->kills, ran_ns, KILLS_FREE, KILLED_PAUSE_NS, LONGEST_PAUSE_NS);
    if (c->is_optional && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_INPUT && !was_ready) return INT64_MAX;
    if (c->is_optional && !was_ready) return backoff_next(&c->backoff, ran_ns, 0, SELDOM_PAUSE_NS, SELDOM_LONGEST_NS);
    return backoff_next(&c->backoff, ran_ns, 0, FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
}

static void say_ended(const struct child *c, int status, int64_t pause_ns) {
    char words[80];
    ending_words(status, words, sizeof words);
    if (pause_ns == INT64_MAX)
        log_line(LOG_ERROR, "child_refused", -1, "%s %s: it cannot run like this; mend what it says above and reload",
                 c->name, words);
    else
        log_line(LOG_WARN, "child_ended", -1, "%s %s; starting it again in %.1f s", c->name, words,
                 (double)pause_ns * 1e-9);
}

bool child_reaped(struct child *c, pid_t pid, int status, int64_t now_ns, bool is_stopping) {
    if (c->stuck == pid) {
        stuck_is_gone(c, now_ns, is_stopping);
        return true;
    }
    if (c->pid != pid) return false;
    bool wants_again = WIFEXITED(status) && WEXITSTATUS(status) == SAMPLER_AGAIN;
    bool was_told = c->state == CHILD_ENDING;
    int64_t ran_ns = now_ns - c->started_ns;
    c->pid = 0;
    c->state = CHILD_DOWN;
    c->start_ns = is_stopping ? INT64_MAX : now_ns;
    if (is_stopping || was_told) return true;
    int64_t pause_ns = pause_after(c, status, ran_ns);
    c->start_ns = pause_ns == INT64_MAX ? INT64_MAX : now_ns + pause_ns;
    if (!wants_again) say_ended(c, status, pause_ns);
    return true;
}

void child_retry(struct child *c, int64_t now_ns) {
    if (c->state != CHILD_DOWN) return;
    c->backoff = c->kills = (struct backoff){0};
    c->start_ns = now_ns;
}

void child_forgive(struct child *c, int64_t now_ns) { c->forgiven_ns = now_ns; }

static int64_t heard_ns(const struct child *c) {
    int64_t beat_ns = c->heart->beat_ns;
    return beat_ns > c->forgiven_ns ? beat_ns : c->forgiven_ns;
}

/* A process whose main thread is dead but one of whose threads is stuck in the kernel is not reaped: it is a zombie
 * that we are not told of. */
static bool is_half_dead(pid_t pid) {
    char path[40];
    AUTO(buf_done) struct buf text = {0};
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &text, NULL) < 0) return false;
    const char *state = strrchr(text.s, ')');
    return state && strncmp(state, ") Z", 3) == 0;
}

static void start_is_due(struct child *c, int64_t now_ns) {
    struct error e;
    if (c->after && now_ns < c->after_ns && access(c->after, F_OK) < 0) {
        c->start_ns = now_ns + AFTER_LOOK_NS;
        return;
    }
    if (child_start(c, now_ns, &e) < 0) {
        log_line(LOG_ERROR, "start", -1, "%s: %s", c->name, e.text);
        c->start_ns = now_ns + NS_PER_S;
    }
}

static void kill_hard(struct child *c, int64_t now_ns) {
    kill(c->pid, SIGKILL);
    c->state = CHILD_KILLED;
    c->ending_ns = now_ns;
}

static int64_t patience_ns(const struct child *c) { return c->patience_ns ? c->patience_ns : TERM_PATIENCE_NS; }

void child_tick(struct child *c, int64_t now_ns, int64_t silent_ns, bool is_stopping) {
    int64_t quiet_ns = c->state == CHILD_UP && c->heart ? now_ns - heard_ns(c) : 0;
    if (c->state == CHILD_DOWN && now_ns >= c->start_ns && !is_stopping) {
        start_is_due(c, now_ns);
    } else if (quiet_ns > silent_ns) {
        log_line(LOG_ERROR, "child_hung", -1, "%s (pid %d) has no heartbeat: killing it", c->name, (int)c->pid);
        kill_hard(c, now_ns);
    } else if (quiet_ns > QUIET_NS && is_half_dead(c->pid)) {
        log_line(LOG_ERROR, "child_hung", -1, "%s (pid %d) ended, but a thread of it does not", c->name, (int)c->pid);
        kill_hard(c, now_ns);
    } else if (c->state == CHILD_ENDING && now_ns - c->ending_ns > patience_ns(c)) {
        kill_hard(c, now_ns);
    } else if (c->state == CHILD_KILLED && now_ns - c->ending_ns > KILL_PATIENCE_NS && !is_stopping) {
        fence(c, now_ns);
    }
}

int64_t child_next_ns(const struct child *c, int64_t now_ns, int64_t silent_ns) {
    switch (c->state) {
    case CHILD_DOWN: return c->start_ns;
    case CHILD_UP:
        if (!c->heart) return INT64_MAX;
        return heard_ns(c) + (now_ns - heard_ns(c) > QUIET_NS ? silent_ns : QUIET_NS) + NS_PER_MS;
    case CHILD_ENDING: return c->ending_ns + patience_ns(c) + NS_PER_MS;
    case CHILD_KILLED: return c->ending_ns + KILL_PATIENCE_NS + NS_PER_MS;
    case CHILD_FENCED: return INT64_MAX;
    }
    return INT64_MAX;
}
