#include "client/run_follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/job_follow.h"
#include "client/job_line.h"
#include "client/job_news.h"
#include "client/job_pty.h"
#include "client/output.h"
#include "client/server_ask.h"

enum { LOOK_S = 1, SIGNAL_MS = 3000 };
#define REST_NS (3 * NS_PER_S) /* what a log may still take after the job's end is known */

struct loop {
    const struct command *self;
    const struct run_follow *wish;
    struct job_follow follow;
    struct job_watch *watch;
    struct job_line line;
    struct job_pty pty;
    int signals;
    unsigned interrupts;
    int last_signal;
    struct job_news news;
    bool has_news, has_said_run, is_deaf; /* deaf: nobody reads our output any more */
    bool server_is_away;
    int64_t begin_ns;
    int64_t over_ns; /* boot clock: when its end was first known; 0: not yet */
    char id[JOB_ID_TEXT];
};

static bool is_running(const struct loop *l) {
    return l->follow.has_run && l->follow.run.state >= RUN_STARTING && l->follow.run.state < RUN_ENDED;
}

PRINTF(2, 3) static void note(struct loop *l, const char *fmt, ...) {
    AUTO(buf_done) struct buf text = {0};
    va_list ap;
    if (l->wish->is_quiet) return;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    job_line_note(&l->line, text.s);
}

/* ---- signals ---- */

static int open_signals(struct error *e) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? fail_errno(e, errno, "signalfd") : fd;
}

static int pass_on(struct loop *l, int number, struct error *e) {
    AUTO(jobs_talk_close) struct jobs_talk t = JOBS_TALK_CLOSED;
    AUTO(buf_done) struct buf b = {0};
    struct wire_job_result result = {0};
    int r = jobs_talk_open(&t, l->wish->dir, e);
    if (r < 0) return r;
    t.patience_ms = SIGNAL_MS;
    jobs_put_signal(
        &b, &(struct jobs_signal){.request = 1, .job = l->wish->id.job, .element = l->wish->place, .number = number});
    r = jobs_talk_send(&t, &b, e);
    return r < 0 ? r : jobs_talk_result(&t, 1, &result, e);
}

static int cancel(struct loop *l, struct error *e) {
    AUTO(buf_done) struct buf ignored = {0};
    char path[96];
    int n = snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)l->wish->id.job);
    if (l->wish->id.element >= 0)
        snprintf(path + n, sizeof path - (size_t)n, "?element=%lld", (long long)l->wish->id.element);
    return server_ask(l->wish->dir, "DELETE", path, NULL, &ignored, e);
}

/* -1: goes on; else the exit code. The first Ctrl-C is the job's, as at a terminal of its own, or takes it out of the
 * queue; the second cancels it; whoever insists gets his prompt back. */
static int interrupted(struct loop *l, int number) {
    struct error e = {0};
    l->interrupts++;
    l->last_signal = number;
    if (l->interrupts > 2) {
        note(l, "job %s may still run; `gpumgr jobs %s` says", l->id, l->id);
        return 128 + number;
    }
    bool is_first = l->interrupts == 1 && is_running(l) && !l->wish->is_array;
    int r = is_first ? pass_on(l, number, &e) : 0;
    if (is_first && r == -ESRCH)
        is_first = false; /* it is just being started, or between two attempts: as in the queue */
    if (!is_first) r = cancel(l, &e);
    if (r == -EEXIST || r == -ENOENT || r == -EBUSY || r == -ESRCH)
        return -1; /* it has just ended: the news will say so */
    if (r < 0)
        note(l, "job %s cannot be ended: %s", l->id, e.text);
    else if (is_first)
        note(l, "job %s was asked to end (%s); once more, and it is cancelled", l->id,
             number == SIGINT ? "INT" : "TERM");
    else
        note(l, "job %s is cancelled", l->id);
    job_watch_now(l->watch);
    return -1;
}

/* What only the job knows the meaning of: write a checkpoint, say how far it is. */
static void told(struct loop *l, int number) {
    struct error e = {0};
    const char *name = number == SIGUSR1 ? "USR1" : "USR2";
    if (l->wish->is_array)
        note(l, "job %s is an array: %s is passed on to none of it", l->id, name);
    else if (!is_running(l))
        note(l, "job %s does not run now: %s is not passed on", l->id, name);
    else if (pass_on(l, number, &e) < 0)
        note(l, "job %s: %s is not passed on: %s", l->id, name, e.text);
}

static int leave(struct loop *l) {
    note(l, "job %s goes on; `gpumgr attach %s` comes back to it, `gpumgr cancel %s` ends it", l->id, l->id, l->id);
    return EXIT_DONE;
}

static int take_signals(struct loop *l) {
    struct signalfd_siginfo s;
    struct error ignored;
    while (read(l->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        int code = -1;
        if (s.ssi_signo == SIGQUIT) return leave(l);
        if (s.ssi_signo == SIGWINCH && l->pty.fd >= 0) (void)!job_pty_size(&l->pty, &ignored);
        if (s.ssi_signo == SIGUSR1 || s.ssi_signo == SIGUSR2) told(l, (int)s.ssi_signo);
        if (s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM) code = interrupted(l, (int)s.ssi_signo);
        if (code >= 0) return code;
    }
    return -1;
}

/* ---- what is told ---- */

static void say_it_runs(struct loop *l) {
    const struct job_news *n = &l->news;
    l->has_said_run = true;
    if (l->wish->is_array)
        note(l, "job %s runs: %u of %u elements now, %u ended", l->id, n->running, n->elements, n->done + n->failed);
    else
        note(l, "job %s runs%s%s (%s leaves it running)", l->id, *n->gpus ? " on GPU " : "", n->gpus,
             l->wish->is_pty ? "Ctrl-]" : "Ctrl-C ends it, Ctrl-\\");
}

static void say(struct loop *l) {
    AUTO(buf_done) struct buf text = {0}, key = {0};
    const struct job_news *n = &l->news;
    if (l->wish->is_quiet || l->interrupts || l->pty.is_raw) return;
    if (n->is_running && !l->has_said_run) say_it_runs(l);
    job_line_waiting(&l->wish->id, n, clock_real_ns(), &text);
    buf_printf(&key, "%s|%d|%s|%s", n->state, n->place, n->why, n->sooner);
    bool is_told = *n->why || n->place > 0 || clock_boot_ns() - l->begin_ns > NS_PER_S;
    if (!text.len || !is_told) return; /* in its first moment the queue has not looked at it yet */
    job_line_put(&l->line, text.s, key.s);
    l->has_said_run = false; /* tried again: it will run again */
}

static void take_news(struct loop *l) {
    struct error e = {0};
    int r = job_watch_take(l->watch, &l->news, &e);
    if (r == 0) return;
    l->server_is_away = r < 0;
    if (r < 0 && !l->wish->is_quiet && !l->pty.is_raw) {
        AUTO(buf_done) struct buf text = {0};
        buf_printf(&text, "job %s: waiting for the server to come back (%s)", l->id, e.text);
        job_line_put(&l->line, text.s, "away");
    }
    if (r < 0) return;
    l->has_news = true;
    if (l->news.is_over && !l->over_ns) l->over_ns = clock_boot_ns();
    say(l);
}

/* Sits down at the job's terminal as soon as there is one, and again when the connection was lost. */
static void sit_down(struct loop *l) {
    struct error e = {0};
    if (!l->wish->is_pty || l->pty.fd >= 0 || !l->follow.has_run || l->follow.run.state != RUN_RUNNING) return;
    job_line_clear(&l->line);
    (void)!job_pty_open(&l->pty, l->wish->dir, &l->follow.run.key, &e); /* not there yet: the next round tries again */
}

/* The node's side. Negative: it refuses. */
static int take_follow(struct loop *l, bool *is_busy, struct error *e) {
    AUTO(buf_done) struct buf log = {0};
    int r = job_follow_step(&l->follow, &log, e);
    if (r < 0) return r;
    if (r & FOLLOW_RUN) job_watch_now(l->watch);
    sit_down(l);
    *is_busy = r & FOLLOW_LOG;
    if (!log.len || l->is_deaf) return 0;
    job_line_clear(&l->line);
    l->is_deaf = output_write(&log) < 0;
    return 0;
}

/* ---- the end ---- */

static int end_by_news(struct loop *l) {
    AUTO(buf_done) struct buf text = {0};
    const struct job_news *n = &l->news;
    job_pty_close(&l->pty);
    bool is_plain = strcmp(n->state, "done") == 0 && !*n->insight && !l->has_said_run;
    job_line_ended(&l->wish->id, n, &text);
    if (!is_plain) note(l, "%s", text.s);
    int code = job_news_exit(n);
    if (code == JOB_EXIT_NONE && l->last_signal && strcmp(n->state, "cancelled") == 0) return 128 + l->last_signal;
    return code;
}

/* No server, but the node knows how it ended, and it will not be tried again. */
static int end_by_run(struct loop *l) {
    const struct wire_run *run = &l->follow.run;
    if (!run->has_exit) return JOB_EXIT_NONE;
    return run->signal > 0 ? 128 + run->signal : run->code;
}

static int is_ended(struct loop *l) {
    bool ran = l->follow.has_run;
    bool is_shown = !l->follow.has_log || !ran || l->follow.is_log_over;
    bool node_says = ran && l->follow.run.state == RUN_ENDED && !l->wish->retries && !l->wish->is_array;
    if (node_says && !l->over_ns) l->over_ns = clock_boot_ns();
    bool is_late = l->over_ns && clock_boot_ns() - l->over_ns > REST_NS;
    if (l->has_news && l->news.is_over && (is_shown || is_late)) return end_by_news(l);
    if (node_says && is_shown && is_late && l->server_is_away) return end_by_run(l);
    return -1;
}

/* ---- all of it ---- */

static int step(struct loop *l) {
    struct error e = {0};
    bool is_busy = false;
    int r = l->wish->is_array ? 0 : take_follow(l, &is_busy, &e);
    if (r < 0) return command_fail(l->self, &e, EXIT_FAILED);
    take_news(l);
    int code = is_ended(l);
    if (code >= 0) return code;
    struct pollfd p[] = {
        {.fd = l->signals,                                                .events = POLLIN},
        {.fd = job_watch_fd(l->watch),                                    .events = POLLIN},
        {.fd = l->wish->is_array ? -1 : job_follow_fd(&l->follow),        .events = POLLIN},
        {.fd = l->pty.fd,                                                 .events = POLLIN},
        {.fd = l->pty.fd >= 0 && !l->pty.has_no_keys ? STDIN_FILENO : -1, .events = POLLIN},
    };
    poll(p, ARRAY_LEN(p), is_busy ? 0 : FOLLOW_AGAIN_MS);
    code = take_signals(l);
    if (code >= 0) return code;
    if (p[3].revents) job_pty_drain(&l->pty);
    if (p[4].revents && l->pty.fd >= 0 && job_pty_keys(&l->pty, &e) < 0) fd_done(&l->pty.fd);
    if (!l->pty.has_left) return -1;
    job_pty_close(&l->pty);
    return leave(l);
}

int run_follow(const struct command *self, const struct run_follow *wish) {
    struct loop l = {
        .self = self,
        .wish = wish,
        .follow = {.dir = wish->dir,
                   .job = wish->id.job,
                   .element = wish->place,
                   .offset = wish->offset,
                   .has_log = true,
                   .talk = JOBS_TALK_CLOSED},
        .pty = JOB_PTY_CLOSED
    };
    struct error e = {0};
    int code = -1;
    l.begin_ns = clock_boot_ns();
    job_id_text(&wish->id, l.id);
    job_line_init(&l.line);
    l.signals = open_signals(&e);
    if (l.signals < 0 || job_watch_new(wish->dir, wish->id.job, wish->id.element, LOOK_S, &l.watch, &e) < 0) {
        fd_done(&l.signals);
        return command_fail(self, &e, EXIT_FAILED);
    }
    while (code < 0) code = step(&l);
    job_pty_close(&l.pty);
    job_line_done(&l.line);
    job_follow_close(&l.follow);
    job_watch_free(l.watch);
    fd_done(&l.signals);
    return code;
}
