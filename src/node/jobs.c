#include "node/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "node/account.h"
#include "node/announce.h"
#include "node/jobs_own.h"
#include "node/seal.h"
#include "node/tasks.h"
#include "run/log.h"
#include "run/stop.h"
#include "run/tree.h"

#define STACK_BYTES (1024 * 1024)
#define EVENTS_MAX 64
#define STARTS_MAX 3                     /* shims that came to nothing, for one attempt */
#define ORPHAN_AGAIN_NS (20 * NS_PER_MS) /* between two looks for processes of a run without a shim */
#define ORPHAN_GIVE_UP_NS (30 * NS_PER_S)
#define TIDY_NS (3600 * NS_PER_S)
#define TIDY_AT_ONCE 1000
#define HUNT_MS 300 /* lists must be fresh when a run ends */
#define ROUND_NS NS_PER_S

struct jobs_own jobs_own;

static struct {
    pthread_mutex_t lock; /* guards in, out, is_welcome, is_down, fresh */
    struct buf in, out;
    bool is_welcome, is_down, is_reload;
    struct settings fresh;
    int to_jobs, to_main, inotify;
    int64_t tidy_ns, round_ns;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- between the threads ---- */

static void wake(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) return; /* it is readable already */
}

static void quieten(int fd) {
    uint64_t n;
    if (read(fd, &n, sizeof n) < 0) return;
}

int jobs_fd(void) { return self.to_main; }

bool jobs_take(const struct wire_frame *f) {
    if (f->type < WIRE_JOB_SEAL || f->type > WIRE_JOB_LOG_ASK) return false;
    pthread_mutex_lock(&self.lock);
    size_t from = wire_begin(&self.in, (enum wire_type)f->type);
    buf_add(&self.in, f->body, f->len);
    wire_end(&self.in, from);
    pthread_mutex_unlock(&self.lock);
    wake(self.to_jobs);
    return true;
}

static void flag(bool *which) {
    pthread_mutex_lock(&self.lock);
    *which = true;
    pthread_mutex_unlock(&self.lock);
    wake(self.to_jobs);
}

void jobs_welcome(void) { flag(&self.is_welcome); }

void jobs_link_down(void) {
    pthread_mutex_lock(&self.lock);
    buf_done(&self.out); /* of the session that is over */
    buf_done(&self.in);
    self.is_welcome = false;
    self.is_down = true;
    pthread_mutex_unlock(&self.lock);
    wake(self.to_jobs);
}

void jobs_reload(const struct settings *s) {
    pthread_mutex_lock(&self.lock);
    self.fresh = *s;
    self.is_reload = true;
    pthread_mutex_unlock(&self.lock);
    wake(self.to_jobs);
}

void jobs_put(struct uplink *u, size_t most_bytes) {
    quieten(self.to_main);
    pthread_mutex_lock(&self.lock);
    if (uplink_queued(u) < most_bytes && self.out.len) {
        buf_add(&u->out, self.out.s, self.out.len);
        buf_clear(&self.out);
    }
    pthread_mutex_unlock(&self.lock);
}

void jobs_nudge(void) { wake(self.to_main); }

struct buf *jobs_say_begin(void) {
    pthread_mutex_lock(&self.lock);
    return &self.out;
}

void jobs_say_end(void) {
    if (!jobs_own.is_linked) buf_clear(&self.out);
    pthread_mutex_unlock(&self.lock);
    wake(self.to_main);
}

size_t jobs_said_bytes(void) {
    pthread_mutex_lock(&self.lock);
    size_t n = self.out.len;
    pthread_mutex_unlock(&self.lock);
    return n;
}

bool jobs_watch(int fd, uint32_t events, enum jobs_source source, uint32_t number) {
    struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)source << 32 | number};
    return epoll_ctl(jobs_own.epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

/* ---- where a run stands ---- */

static void tell(const struct run *run) {
    calls_tell(run);
    if (!jobs_own.is_linked) return;
    wire_put_run(jobs_say_begin(), &run->said);
    jobs_say_end();
}

static void say_absent(const struct wire_run_key *k) {
    struct wire_run absent = {.key = *k, .state = RUN_ABSENT, .gpu_ratio = NAN, .cpu_ratio = NAN};
    wire_put_run(jobs_say_begin(), &absent);
    jobs_say_end();
}

static void enlist(const struct run *run) {
    struct owner e = {.shim = run->shim, .shim_ticks = run->shim ? tree_ticks(run->shim) : 0};
    memcpy(e.name, run->name, sizeof e.name);
    memcpy(e.title, run->title, sizeof e.title);
    owners_put(&e, (const char(*)[96])run->uuid, run->gpus);
}

static void take_figures(struct run *run) {
    struct task_figures f;
    tasks_figures(run->name, (const char(*)[96])run->uuid, run->gpus, &f);
    double run_s = (double)(clock_boot_ns() - run->start_boot_ns) * 1e-9;
    run->said.gpu_seconds = f.gpu_seconds;
    run->said.energy_joules = f.energy_joules;
    if (f.memory_peak_bytes > run->said.memory_peak_bytes) run->said.memory_peak_bytes = f.memory_peak_bytes;
    run->said.memory_total_bytes = f.memory_total_bytes;
    run->said.gpu_ratio = run->start_boot_ns && run->gpus && run_s > 0 && f.is_measured
                              ? fmin(1, f.gpu_seconds / (run_s * run->gpus))
                              : NAN;
}

static void note_figures(struct run *run) {
    struct record r = {.kind = RECORD_FIGURES,
                       .gpu_seconds = run->said.gpu_seconds,
                       .energy_joules = run->said.energy_joules,
                       .gpu_ratio = run->said.gpu_ratio,
                       .memory_peak_bytes = run->said.memory_peak_bytes,
                       .memory_total_bytes = run->said.memory_total_bytes};
    struct error e;
    (void)!run_note(&jobs_own.runs, run->name, &r, false, &e);
}

/* Lists and memory must be fresh when a run ends: the next one waits for them. */
static void look_at_gpus(void) {
    const struct announcement soon = {.for_ms = HUNT_MS, .base_ms = -1, .minor = -1};
    announce_hunt(&jobs_own.runs.where, (unsigned)jobs_own.settings.workers, &soon);
    announce_look(&jobs_own.runs.where, (unsigned)jobs_own.settings.workers);
}

static void ended(struct run *run) {
    if (run->start_boot_ns && !isfinite(run->said.gpu_ratio) && run->said.gpu_seconds == 0) {
        take_figures(run);
        note_figures(run);
    }
    log_line(LOG_INFO, "run_ended", -1, "run %s (%s): %s%s%s", run->name, run->title, job_reason_text(run->said.reason),
             *run->said.text ? ": " : "", run->said.text);
    owners_drop(run->name);
    look_at_gpus();
    tell(run);
}

static void note_end(struct run *run, enum job_reason reason, const char *text) {
    struct record r = {.kind = RECORD_EXIT, .reason = (uint8_t)reason};
    struct record_state s;
    struct error e;
    snprintf(r.text, sizeof r.text, "%s", text);
    CRASH_POINT();
    if (run_note(&jobs_own.runs, run->name, &r, true, &e) < 0)
        log_line(LOG_ERROR, "run", -1, "run %s: its end cannot be noted: %s", run->name, e.text);
    CRASH_POINT();
    if (run_refresh(&jobs_own.runs, run, &s, &e) < 0 || run->said.state != RUN_ENDED) { /* told all the same */
        run->said.state = RUN_ENDED;
        run->said.reason = (uint8_t)reason;
        run->said.end_ns = clock_real_ns();
        snprintf(run->said.text, sizeof run->said.text, "%s", text);
    }
    ended(run);
}

/* ---- starting ---- */

static void watch_run(struct run *run) {
    char path[340];
    run_path(&jobs_own.runs, run->name, "state", path, sizeof path);
    run->watch = inotify_add_watch(self.inotify, path, IN_MODIFY);
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)JOBS_SHIM << 32 | (uint32_t)run->pidfd};
    epoll_ctl(jobs_own.epoll, EPOLL_CTL_ADD, run->pidfd, &ev);
}

static void start_run(struct run *run) {
    struct error e;
    if (run->starts >= STARTS_MAX) {
        note_end(run, JOB_BY_START, "its shim ended without a word, more than once");
        return;
    }
    enlist(run); /* before its processes are seen anywhere */
    if (starting_run(&jobs_own.starting, &jobs_own.runs, run, &e) < 0) {
        if (run->shim) kill(run->shim, SIGKILL);
        note_end(run, JOB_BY_START, e.text);
        return;
    }
    enlist(run);
    watch_run(run);
}

static void on_grant(const struct wire_frame *f) {
    static struct wire_grant g; /* large; one thread */
    struct error e;
    struct wire_run old;
    struct run *run;
    if (wire_get_grant(f, &g, &e) < 0) {
        log_line(LOG_ERROR, "grant", -1, "%s", e.text);
        return;
    }
    run = runs_find(&jobs_own.runs, &g.key);
    if (run) { /* sent again */
        tell(run);
        return;
    }
    int r = runs_make(&jobs_own.runs, &g, &run, &e);
    if (r == -EEXIST && runs_look(&jobs_own.runs, &g.key, &old, &e) >= 0) {
        wire_put_run(jobs_say_begin(), &old);
        jobs_say_end();
        return;
    }
    if (r < 0) {
        struct wire_run failed = {.key = g.key, .state = RUN_ENDED, .reason = JOB_BY_START, .end_ns = clock_real_ns()};
        failed.gpu_ratio = failed.cpu_ratio = NAN;
        snprintf(failed.text, sizeof failed.text, "%s", e.text);
        log_line(LOG_ERROR, "run", -1, "run %s cannot begin: %s", failed.text, e.text);
        wire_put_run(jobs_say_begin(), &failed);
        jobs_say_end();
        return;
    }
    start_run(run);
}

/* ---- ending ---- */

static void stop_run(struct run *run, uint8_t reason, int64_t grace_ns) {
    if (run->pidfd < 0) return; /* its shim is gone: its end is under way */
    int r = stop_send(run->pidfd, STOP_SIGNAL, stop_value(reason, grace_ns / NS_PER_MS));
    if (r < 0 && r != -ESRCH) log_line(LOG_ERROR, "run", -1, "run %s: stop: %s", run->name, strerror(-r));
}

static void on_stop(const struct wire_frame *f) {
    struct wire_stop s;
    struct error e;
    struct wire_run old;
    struct run *run;
    if (wire_get_stop(f, &s, &e) < 0) return;
    run = runs_find(&jobs_own.runs, &s.key);
    if (run && run->said.state != RUN_ENDED) {
        stop_run(run, s.reason, s.grace_ns);
        return;
    }
    if (!run && runs_look(&jobs_own.runs, &s.key, &old, &e) < 0) {
        if (runs_make_ended(&jobs_own.runs, &s.key, s.reason, &e) < 0 ||
            runs_load(&jobs_own.runs, &s.key, &run, &e) < 0) {
            log_line(LOG_ERROR, "run", -1, "a run that is not to begin: %s", e.text);
            return;
        }
    }
    if (run) old = run->said;
    wire_put_run(jobs_say_begin(), &old);
    jobs_say_end();
}

static void kill_cgroup(const struct run *run) {
    char path[420], group[400];
    starting_cgroup(&jobs_own.starting, run, group, sizeof group);
    if (!*group) return;
    snprintf(path, sizeof path, "%s/cgroup.kill", group);
    AUTO(fd_done) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) (void)!write(fd, "1", 1);
    rmdir(group);
}

/* All that is left of a run whose shim was killed; how many there were. */
static unsigned kill_left(const struct run *run, const struct record *started) {
    struct tree t = {0};
    char mark[80];
    kill_cgroup(run);
    starting_mark(run, mark, sizeof mark);
    (void)tree_scan(&t);
    tree_take_pid(&t, started->pid, started->ticks);
    tree_take_session(&t, started->pid, started->ticks);
    tree_take_marked(&t, mark);
    tree_take_below(&t);
    unsigned n = tree_signal(&t, SIGKILL);
    tree_done(&t);
    return n;
}

static void end_orphan(struct run *run, int64_t now_ns) {
    struct record_state s;
    struct error e;
    if (run_refresh(&jobs_own.runs, run, &s, &e) < 0 || !s.has[RECORD_STARTED]) return;
    run->said.state = RUN_ENDING;
    if (kill_left(run, &s.of[RECORD_STARTED]) && now_ns - run->orphan_ns < ORPHAN_GIVE_UP_NS) return;
    run->is_orphan = false;
    note_end(run, JOB_BY_SHIM,
             "the process that watched it was killed; it was ended, and how it would have ended is not known");
}

/* No shim has it. What its records say decides. */
static void without_shim(struct run *run, int64_t now_ns) {
    struct record_state s;
    struct error e;
    if (run_refresh(&jobs_own.runs, run, &s, &e) < 0) {
        log_line(LOG_ERROR, "run", -1, "run %s: %s", run->name, e.text);
        return;
    }
    bool is_other_boot = s.has[RECORD_STARTED] && strcmp(s.of[RECORD_STARTED].boot_id, jobs_own.runs.boot_id) != 0;
    if (s.has[RECORD_EXIT]) {
        ended(run);
    } else if (is_other_boot) {
        note_end(run, JOB_BY_REBOOT, "");
    } else if (s.has[RECORD_STARTED]) {
        run->is_orphan = true;
        run->orphan_ns = now_ns;
        end_orphan(run, now_ns);
    } else {
        start_run(run);
    }
}

static struct run *run_of(int pidfd, int watch) {
    for (unsigned b = 0; b < RUNS_BUCKETS; b++)
        for (struct run *run = jobs_own.runs.bucket[b]; run; run = run->next)
            if ((pidfd >= 0 && run->pidfd == pidfd) || (watch >= 0 && run->watch == watch)) return run;
    return NULL;
}

static void state_changed(struct run *run) {
    struct record_state s;
    struct error e;
    uint8_t before = run->said.state;
    if (!run->shim || run_refresh(&jobs_own.runs, run, &s, &e) < 0) return;
    if (run->said.state != before) tell(run);
    if (s.has[RECORD_EXIT] && before != RUN_ENDED) look_at_gpus();
}

/* The kernel says who has a run's state: a shim that lives is found whatever became of us. */
static bool find_shim(struct run *run) {
    struct error e;
    char path[340];
    run_path(&jobs_own.runs, run->name, "state", path, sizeof path);
    AUTO(fd_done) int fd = record_open(path, &e);
    pid_t shim = fd >= 0 ? record_holder(fd) : 0;
    AUTO(fd_done) int pidfd = shim ? (int)syscall(SYS_pidfd_open, shim, 0) : -1;
    if (pidfd < 0 || record_holder(fd) != shim) return false;
    run->shim = shim;
    run->pidfd = pidfd;
    pidfd = -1;
    enlist(run);
    watch_run(run);
    return true;
}

static void shim_ended(struct run *run, int64_t now_ns) {
    (void)waitpid(run->shim, NULL, WNOHANG); /* where we are its parent */
    fd_done(&run->pidfd);
    if (run->watch >= 0) inotify_rm_watch(self.inotify, run->watch);
    run->watch = -1;
    run->shim = 0;
    if (find_shim(run)) /* ours was the second one */
        state_changed(run);
    else
        without_shim(run, now_ns);
}

static void on_states(void) {
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n;
    while ((n = read(self.inotify, bytes, sizeof bytes)) > 0)
        for (char *at = bytes; at < bytes + n;) {
            const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;
            struct run *run = run_of(-1, ev->wd);
            if (run && ev->mask & IN_MODIFY) state_changed(run);
            at += sizeof *ev + ev->len;
        }
}

/* ---- the rest of what the server says ---- */

static void on_stored(const struct wire_frame *f) {
    struct wire_run_key k;
    if (wire_get_stored(f, &k, NULL) < 0) return;
    struct run *run = runs_find(&jobs_own.runs, &k);
    if (run && run->said.state == RUN_ENDED) run_keep(&jobs_own.runs, run);
}

static void on_runs(const struct wire_frame *f) {
    struct wire_runs list;
    struct wire_run_key k;
    struct wire_run old;
    if (wire_get_runs(f, &list, NULL) < 0) return;
    while (wire_next_run_key(&list, &k)) {
        struct run *run = runs_find(&jobs_own.runs, &k);
        if (run) {
            tell(run);
        } else if (runs_look(&jobs_own.runs, &k, &old, NULL) >= 0) {
            wire_put_run(jobs_say_begin(), &old);
            jobs_say_end();
        } else {
            say_absent(&k);
        }
    }
}

void jobs_put_log(struct buf *b, const struct wire_run_key *k, uint64_t request, uint64_t offset, uint32_t len) {
    static char bytes[WIRE_LOG_MAX];
    char name[OWNERS_NAME], path[340];
    struct wire_log l = {.request = request, .offset = offset, .bytes = (const uint8_t *)bytes};
    struct stat st;
    const struct run *run = runs_find(&jobs_own.runs, k);
    run_name(k, name);
    run_path(&jobs_own.runs, name, "", path, sizeof path);
    bool is_there = stat(path, &st) == 0;
    run_path(&jobs_own.runs, name, "log", path, sizeof path);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool has_ended = !run || run->said.state == RUN_ENDED;
    if (fd < 0 && !is_there) {
        l.result = -ENOENT;
        snprintf(l.text, sizeof l.text, "the log of run %s is not kept any more", name);
    }
    if (fd >= 0 && fstat(fd, &st) == 0) {
        l.total = (uint64_t)st.st_size;
        ssize_t n = run_log_read(fd, &l.offset, bytes, len < WIRE_LOG_MAX ? len : WIRE_LOG_MAX);
        l.len = n > 0 ? (uint32_t)n : 0;
        if (l.offset + l.len > l.total) l.total = l.offset + l.len; /* it grew meanwhile */
        if (n <= 0 && l.offset < l.total) l.offset = l.total;       /* what is left there was cut off, too */
    }
    l.is_over = has_ended && l.offset + l.len >= l.total;
    wire_put_log(b, &l);
}

static void on_log_ask(const struct wire_frame *f) {
    struct wire_log_ask a;
    if (wire_get_log_ask(f, &a, NULL) < 0) return;
    jobs_put_log(jobs_say_begin(), &a.key, a.request, a.offset, a.len);
    jobs_say_end();
}

/* A job of the web or the API: who that is on this machine, our own file says. */
static void on_seal(const struct wire_frame *f) {
    struct wire_seal ask;
    struct wire_sealed_reply reply = {0};
    struct seal_context c;
    struct job_spec spec;
    struct error e;
    AUTO(buf_done) struct buf keep = {0}, seal = {0};
    char user[64];
    if (wire_get_seal(f, &ask, &e) < 0) return;
    reply.request = ask.request;
    int r = account_find(&jobs_own.settings, jobs_own.runs.where.dir, ask.account, ask.is_admin, user, sizeof user, &e);
    if (r >= 0) r = job_decode(ask.record, ask.record_len, &spec, &e);
    if (r >= 0) r = account_login(user, ask.account, &keep, &c, &e);
    if (r < 0) {
        reply.result = r;
        snprintf(reply.text, sizeof reply.text, "%s", e.text);
    } else {
        seal_make(&c, ask.record, ask.record_len, &seal);
        reply.sealed = (struct wire_sealed){.uid = c.uid,
                                            .record = ask.record,
                                            .record_len = ask.record_len,
                                            .seal = (const uint8_t *)seal.s,
                                            .seal_len = seal.len};
        snprintf(reply.sealed.user, sizeof reply.sealed.user, "%s", c.user);
    }
    wire_put_sealed(jobs_say_begin(), &reply);
    jobs_say_end();
}

static void on_result(const struct wire_frame *f) {
    struct wire_job_result r;
    if (wire_get_job_result(f, &r, NULL) >= 0) (void)calls_answer(f->type, &r);
}

static void on_frame(const struct wire_frame *f) {
    switch (f->type) {
    case WIRE_JOB_SEAL: on_seal(f); break;
    case WIRE_JOB_SUBMITTED:
    case WIRE_JOB_CONTROLLED: on_result(f); break;
    case WIRE_JOB_GRANT: on_grant(f); break;
    case WIRE_JOB_STOP: on_stop(f); break;
    case WIRE_JOB_STORED: on_stored(f); break;
    case WIRE_JOB_RUNS: on_runs(f); break;
    case WIRE_JOB_LOG_ASK: on_log_ask(f); break;
    default: break;
    }
}

/* ---- the thread ---- */

static void each_run(void (*each)(struct run *, int64_t), int64_t now_ns) {
    for (unsigned b = 0; b < RUNS_BUCKETS; b++)
        for (struct run *run = jobs_own.runs.bucket[b], *next; run; run = next) {
            next = run->next;
            each(run, now_ns);
        }
}

static void say_end_again(struct run *run, int64_t now_ns) {
    if (run->said.state == RUN_ENDED) tell(run);
}

static void on_wake(int64_t now_ns) {
    AUTO(buf_done) struct buf in = {0};
    struct wire_frame f;
    quieten(self.to_jobs);
    pthread_mutex_lock(&self.lock);
    in = TAKE_STRUCT(self.in);
    bool is_down = self.is_down, is_welcome = self.is_welcome;
    self.is_down = self.is_welcome = false;
    if (self.is_reload) jobs_own.settings = self.fresh;
    self.is_reload = false;
    if (is_down || is_welcome) jobs_own.is_linked = is_welcome;
    pthread_mutex_unlock(&self.lock);
    jobs_own.starting.grace_ns = jobs_own.settings.jobs_grace_s * NS_PER_S;
    if (is_down) calls_link_down();
    if (is_welcome) each_run(say_end_again, now_ns);
    for (size_t at = 0; at < in.len;) {
        int n = wire_frame(in.s + at, in.len - at, &f, NULL);
        if (n <= 0) break;
        on_frame(&f);
        at += (size_t)n;
    }
}

static void look_after(struct run *run, int64_t now_ns) {
    if (run->is_orphan) end_orphan(run, now_ns);
}

static bool has_orphan(void) {
    for (unsigned b = 0; b < RUNS_BUCKETS; b++)
        for (const struct run *run = jobs_own.runs.bucket[b]; run; run = run->next)
            if (run->is_orphan) return true;
    return false;
}

/* What a run has done so far: told every second to whoever looks, and judged against what it asked for. */
static void judge(struct run *run, int64_t now_ns) {
    if (run->said.state != RUN_RUNNING) return;
    struct task_figures f;
    tasks_now(run->name, &f);
    if (f.memory_bytes > run->said.memory_peak_bytes) run->said.memory_peak_bytes = f.memory_bytes;
    if (run->share_bytes && f.memory_bytes > run->share_bytes) {
        if (!run->is_warned)
            log_line(LOG_WARN, "job_memory", -1,
                     "job %" PRId64 " (%s) uses %.1f GiB of the GPU's memory and asked for %.1f", run->key.job,
                     run->title, (double)f.memory_bytes / (1 << 30), (double)run->share_bytes / (1 << 30));
        run->is_warned = true;
        if (run->share_over == JOB_OVER_END) stop_run(run, JOB_BY_MEMORY, jobs_own.starting.grace_ns);
    }
    int64_t idle_ns = now_ns - (f.used_ns > run->start_boot_ns ? f.used_ns : run->start_boot_ns);
    if (run->idle_over == JOB_OVER_END && run->gpus && idle_ns > jobs_own.settings.jobs_idle_end_s * NS_PER_S)
        stop_run(run, JOB_BY_IDLE, jobs_own.starting.grace_ns);
}

static void on_time(int64_t now_ns) {
    each_run(look_after, now_ns);
    if (now_ns >= self.round_ns) {
        self.round_ns = now_ns + ROUND_NS;
        each_run(judge, now_ns);
    }
    if (now_ns < self.tidy_ns) return;
    self.tidy_ns = now_ns + TIDY_NS;
    runs_tidy(&jobs_own.runs, jobs_own.settings.jobs_keep_days, TIDY_AT_ONCE);
}

static void on_event(const struct epoll_event *ev, int64_t now_ns) {
    uint32_t number = (uint32_t)ev->data.u64;
    struct run *run;
    switch ((enum jobs_source)(ev->data.u64 >> 32)) {
    case JOBS_WAKE: on_wake(now_ns); break;
    case JOBS_STATE: on_states(); break;
    case JOBS_SHIM:
        run = run_of((int)number, -1);
        if (run) shim_ended(run, now_ns);
        break;
    case JOBS_LISTENER: calls_accept(); break;
    case JOBS_CALLER: calls_ready(number, ev->events); break;
    }
}

static int wait_ms(int64_t at_ns, int64_t now_ns) {
    if (at_ns <= now_ns) return 0;
    int64_t ms = (at_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

static void adopt(void *ctx, const struct wire_run_key *k) {
    struct error e;
    struct run *run;
    if (runs_load(&jobs_own.runs, k, &run, &e) < 0) {
        log_line(LOG_ERROR, "adopt", -1, "%s", e.text);
        return;
    }
    CRASH_POINT();
    if (find_shim(run)) {
        state_changed(run);
        log_line(LOG_INFO, "adopt", -1, "run %s (%s) goes on", run->name, run->title);
        return;
    }
    if (run->said.state != RUN_ENDED) enlist(run);
    run->is_found = true;
}

/* Those that no shim has: their ends are noted by the thread, which may ask what their tasks did. */
static void mind_found(struct run *run, int64_t now_ns) {
    if (!run->is_found) return;
    run->is_found = false;
    without_shim(run, now_ns);
}

static void *run_thread(void *arg) {
    struct epoll_event ev[EVENTS_MAX];
    pthread_setname_np(pthread_self(), "jobs");
    clock_be_prompt();
    each_run(mind_found, clock_boot_ns());
    for (;;) {
        int64_t now_ns = clock_boot_ns(), next_ns = calls_tick(now_ns);
        if (self.tidy_ns < next_ns) next_ns = self.tidy_ns;
        if (jobs_own.runs.count && self.round_ns < next_ns) next_ns = self.round_ns;
        if (has_orphan()) next_ns = now_ns + ORPHAN_AGAIN_NS;
        int n = epoll_wait(jobs_own.epoll, ev, EVENTS_MAX, wait_ms(next_ns, now_ns));
        now_ns = clock_boot_ns();
        for (int i = 0; i < n; i++) on_event(&ev[i], now_ns);
        on_time(now_ns);
    }
    return NULL;
}

/* ---- the start ---- */

static int open_all(const struct instance *where, struct error *e) {
    self.to_jobs = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self.to_main = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    jobs_own.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self.to_jobs < 0 || self.to_main < 0 || self.inotify < 0 || jobs_own.epoll < 0 ||
        !jobs_watch(self.to_jobs, EPOLLIN, JOBS_WAKE, 0) || !jobs_watch(self.inotify, EPOLLIN, JOBS_STATE, 0))
        return fail_errno(e, errno, "watch for jobs");
    int r = seal_open_key(where->dir, e);
    if (r >= 0) r = runs_open(&jobs_own.runs, where, e);
    if (r >= 0) r = starting_init(&jobs_own.starting, &jobs_own.settings, where, e);
    return r < 0 ? r : calls_open(e);
}

int jobs_open(const struct instance *where, const struct settings *s, struct error *e) {
    jobs_own.settings = *s;
    jobs_own.starting.grace_ns = s->jobs_grace_s * NS_PER_S;
    int r = open_all(where, e);
    if (r >= 0) runs_each_on_disk(&jobs_own.runs, adopt, NULL);
    return r;
}

int jobs_start(struct error *e) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    int r = pthread_create(&thread, &attr, run_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return r ? fail_errno(e, r, "a thread for jobs") : 0;
}
