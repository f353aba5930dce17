/* The runs of this machine: started, watched, ended, adopted. Nothing is said of a run that is not in its records. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "model/event.h"
#include "node/announce.h"
#include "node/health.h"
#include "node/jobs_own.h"
#include "node/notices.h"
#include "node/tasks.h"
#include "run/stop.h"
#include "run/tree.h"

#define STARTS_MAX 3 /* shims that came to nothing, for one attempt */
#define ORPHAN_GIVE_UP_NS (30 * NS_PER_S)
#define STRAY_NS (3 * NS_PER_S)
#define HUNT_MS 300 /* lists must be fresh when a run ends */

/* ---- where a run stands ---- */

void jobs_tell(const struct run *run) {
    struct wire_run said = run->said;
    calls_tell(run);
    if (said.state != RUN_ENDED) jobs_add_figures(run, &said);
    jobs_say_run(&said);
}

void jobs_say_run(const struct wire_run *said) {
    if (!jobs_own.is_linked) return;
    wire_put_run(jobs_say_begin(), said);
    jobs_say_end();
}

void jobs_say_absent(const struct wire_run_key *k) {
    const struct wire_run absent = {.key = *k, .state = RUN_ABSENT, .gpu_ratio = NAN, .cpu_ratio = NAN};
    jobs_say_run(&absent);
}

static void enlist(const struct run *run) {
    struct owner e = {
        .shim = run->shim, .shim_ticks = run->shim ? tree_ticks(run->shim) : 0, .is_image = run->is_image};
    memcpy(e.name, run->name, sizeof e.name);
    memcpy(e.title, run->title, sizeof e.title);
    owners_put(&e, (const char(*)[96])run->uuid, run->gpus);
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
    if (run->start_boot_ns && !run->has_figures) {
        jobs_last_figures(run);
        note_figures(run);
    }
    log_line(LOG_INFO, "run_ended", -1, "run %s (%s): %s%s%s", run->name, run->title, job_reason_text(run->said.reason),
             *run->said.text ? ": " : "", run->said.text);
    owners_drop(run->name);
    health_follow(run);
    look_at_gpus();
    jobs_tell(run);
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
    run->watch = inotify_add_watch(jobs_own.inotify, path, IN_MODIFY);
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)JOBS_SHIM << 32 | (uint32_t)run->pidfd};
    epoll_ctl(jobs_own.epoll, EPOLL_CTL_ADD, run->pidfd, &ev);
}

static void state_changed(struct run *run) {
    struct record_state s;
    struct error e;
    uint8_t before = run->said.state;
    if (!run->shim || run_refresh(&jobs_own.runs, run, &s, &e) < 0) return;
    if (run->said.state != before) jobs_tell(run);
    if (s.has[RECORD_EXIT] && before != RUN_ENDED) look_at_gpus();
    health_follow(run);
}

static void start_run(struct run *run) {
    struct error e;
    if (run->starts >= STARTS_MAX) {
        note_end(run, JOB_BY_START, "its shim ended without a word, more than once");
        return;
    }
    run->is_clean = false;
    enlist(run); /* before its processes are seen anywhere */
    if (starting_run(&jobs_own.starting, &jobs_own.runs, run, &e) < 0) {
        if (run->shim) kill(run->shim, SIGKILL);
        note_end(run, JOB_BY_START, e.text);
        return;
    }
    enlist(run);
    watch_run(run);
    state_changed(run); /* the shim may have been faster than the watch on what it writes */
}

/* ---- runs for which the disk has no room ---- */

/* A full disk is the machine's trouble and not the job's: it keeps its GPUs and begins when there is room. Nothing of it is on the
 * disk; whoever asks before hears that it is absent, and grants it again. */
struct postponed {
    struct postponed *next;
    struct wire_run_key key;
    struct buf frame;
};
static struct postponed *postponed;

static bool drop_postponed(const struct wire_run_key *k) {
    for (struct postponed **at = &postponed; *at; at = &(*at)->next) {
        struct postponed *p = *at;
        if (memcmp(&p->key, k, sizeof *k) != 0) continue;
        *at = p->next;
        buf_done(&p->frame);
        free(p);
        return true;
    }
    return false;
}

static void postpone(const struct wire_frame *f, const struct wire_run_key *k, const struct error *why) {
    struct wire_run said = {.key = *k, .state = RUN_STARTING, .gpu_ratio = NAN, .cpu_ratio = NAN};
    struct postponed *p = calloc(1, sizeof *p);
    if (!p) abort();
    if (!drop_postponed(k)) log_line(LOG_ERROR, "run", -1, "a run waits for room on the disk: %s", why->text);
    p->key = *k;
    size_t from = wire_begin(&p->frame, (enum wire_type)f->type);
    buf_add(&p->frame, f->body, f->len);
    wire_end(&p->frame, from);
    p->next = postponed;
    postponed = p;
    snprintf(said.text, sizeof said.text, "waits for room on the disk of its machine: %.160s", why->text);
    jobs_say_run(&said);
}

/* Each is tried; whoever finds no room is back on the list. */
void jobs_grant_again(void) {
    struct postponed *all = postponed;
    struct wire_frame f;
    postponed = NULL;
    for (struct postponed *p = all, *next; p; p = next) {
        next = p->next;
        if (wire_frame(p->frame.s, p->frame.len, &f, NULL) > 0) jobs_grant(&f);
        buf_done(&p->frame);
        free(p);
    }
}

bool jobs_has_postponed(void) { return postponed; }

void jobs_grants_drop(void) {
    while (postponed) (void)drop_postponed(&postponed->key);
}

void jobs_grant(const struct wire_frame *f) {
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
        jobs_tell(run);
        return;
    }
    int r = runs_make(&jobs_own.runs, &g, &run, &e);
    if (r == -EEXIST && runs_look(&jobs_own.runs, &g.key, &old, &e) >= 0) {
        jobs_say_run(&old);
        return;
    }
    if (r == -ENOSPC || r == -EDQUOT) {
        postpone(f, &g.key, &e);
        return;
    }
    if (r < 0) {
        struct wire_run failed = {.key = g.key, .state = RUN_ENDED, .reason = JOB_BY_START, .end_ns = clock_real_ns()};
        failed.gpu_ratio = failed.cpu_ratio = NAN;
        snprintf(failed.text, sizeof failed.text, "%s", e.text);
        log_line(LOG_ERROR, "run", -1, "a run cannot begin: %s", e.text);
        jobs_say_run(&failed);
        return;
    }
    start_run(run);
}

/* ---- ending ---- */

static void stop_run(struct run *run, uint8_t reason, int64_t grace_ns) {
    if (run->stop == JOB_BY_ITSELF) run->stop = reason;
    if (run->pidfd < 0 || run->is_clean) return; /* its shim is gone: its end is under way */
    CRASH_POINT();
    int r = stop_send(run->pidfd, STOP_SIGNAL, stop_value(reason, grace_ns / NS_PER_MS));
    if (r < 0 && r != -ESRCH) log_line(LOG_ERROR, "run", -1, "run %s: stop: %s", run->name, strerror(-r));
}

void jobs_stop(const struct wire_frame *f) {
    struct wire_stop s;
    struct error e;
    struct wire_run old;
    struct run *run;
    if (wire_get_stop(f, &s, &e) < 0) return;
    run = runs_find(&jobs_own.runs, &s.key);
    CRASH_POINT();
    if (run && run->said.state != RUN_ENDED) {
        stop_run(run, s.reason, s.grace_ns);
        return;
    }
    if (drop_postponed(&s.key)) { /* it never began, and nobody has to remember more than that */
        struct wire_run never = {.key = s.key, .state = RUN_ENDED, .reason = s.reason, .end_ns = clock_real_ns()};
        never.gpu_ratio = never.cpu_ratio = NAN;
        jobs_say_run(&never);
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
    jobs_say_run(&old);
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
    char mark[128];
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

/* A container outlives whoever started it: it is removed before its run has ended. */
static bool is_being_cleaned(struct run *run) {
    struct error e;
    if (!run->is_image || run->is_clean) return false;
    run->is_clean = true;
    if (starting_end_image(&jobs_own.starting, &jobs_own.runs, run, &e) >= 0) {
        watch_run(run);
        return true;
    }
    log_line(LOG_ERROR, "run", -1, "run %s: its container may be left: %s", run->name, e.text);
    run->shim = 0;
    return false;
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
    run->is_clean = false; /* it may make a container yet */
    pidfd = -1;
    enlist(run);
    watch_run(run);
    return true;
}

/* It was begun, and nobody had it when we looked before: the node before us may have started its shim a moment before it was killed.
 * Who asks for the holder after he has read the records, and reads them once more then, misses neither. */
static bool is_orphaned(struct run *run, struct record_state *s) {
    struct error e;
    if (find_shim(run)) {
        state_changed(run);
        return false;
    }
    if (run_refresh(&jobs_own.runs, run, s, &e) < 0 || !s->has[RECORD_EXIT]) return true;
    ended(run);
    return false;
}

/* No shim has it. What its records say decides. */
static void without_shim(struct run *run, int64_t now_ns) {
    struct record_state s;
    struct error e;
    if (is_being_cleaned(run)) return;
    if (run_refresh(&jobs_own.runs, run, &s, &e) < 0) {
        log_line(LOG_ERROR, "run", -1, "run %s: %s", run->name, e.text);
        return;
    }
    uint8_t stop = s.has[RECORD_STOPPING] ? s.of[RECORD_STOPPING].reason : run->stop;
    bool is_other_boot = s.has[RECORD_STARTED] && strcmp(s.of[RECORD_STARTED].boot_id, jobs_own.runs.boot_id) != 0;
    if (s.has[RECORD_EXIT]) {
        ended(run);
    } else if (is_other_boot) {
        note_end(run, JOB_BY_REBOOT, "");
    } else if (s.has[RECORD_STARTED]) {
        if (!is_orphaned(run, &s)) return;
        run->is_orphan = true;
        run->orphan_ns = now_ns;
        end_orphan(run, now_ns);
    } else if (stop != JOB_BY_ITSELF) { /* its shim was killed before it began: it is not to begin any more */
        note_end(run, (enum job_reason)stop, "");
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

void jobs_shim_ended(int pidfd, int64_t now_ns) {
    struct run *run = run_of(pidfd, -1);
    if (!run) return;
    (void)waitpid(run->shim, NULL, WNOHANG); /* where we are its parent */
    fd_done(&run->pidfd);
    if (run->watch >= 0) inotify_rm_watch(jobs_own.inotify, run->watch);
    run->watch = -1;
    run->shim = 0;
    if (find_shim(run)) /* ours was the second one */
        state_changed(run);
    else
        without_shim(run, now_ns);
}

void jobs_states(void) {
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t n;
    while ((n = read(jobs_own.inotify, bytes, sizeof bytes)) > 0)
        for (char *at = bytes; at < bytes + n;) {
            const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;
            struct run *run = run_of(-1, ev->wd);
            if (run && ev->mask & IN_MODIFY) state_changed(run);
            at += sizeof *ev + ev->len;
        }
}

/* ---- time ---- */

void jobs_look_after(struct run *run, int64_t now_ns) {
    if (run->is_orphan) end_orphan(run, now_ns);
}

bool jobs_has_orphan(void) {
    for (unsigned b = 0; b < RUNS_BUCKETS; b++)
        for (const struct run *run = jobs_own.runs.bucket[b]; run; run = run->next)
            if (run->is_orphan) return true;
    return false;
}

static double gib(uint64_t bytes) { return (double)bytes / (double)(1ull << 30); }

/* What people should know of a run that goes on; once. */
static void PRINTF(4, 5) warn(struct run *run, const char *kind, bool *is_said, const char *fmt, ...) {
    char what[160], text[240];
    va_list ap;
    if (*is_said) return;
    *is_said = true;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(text, sizeof text, "job %" PRId64 " (%.60s) %s", run->key.job, run->title, what);
    tasks_event(EVENT_WARNING, kind, run->said.pid, text);
}

static void judge_memory(struct run *run, const struct task_figures *f) {
    if (!run->share_bytes || f->memory_bytes <= run->share_bytes) return;
    warn(run, "job_memory", &run->is_memory_said, "uses %.1f GiB of the GPU's memory and asked for %.1f",
         gib(f->memory_bytes), gib(run->share_bytes));
    if (run->share_over == JOB_OVER_END) stop_run(run, JOB_BY_MEMORY, jobs_own.starting.grace_ns);
}

static void judge_idle(struct run *run, const struct task_figures *f, int64_t now_ns) {
    const struct settings *s = &jobs_own.settings;
    int64_t since_ns = f->used_ns > run->start_boot_ns ? f->used_ns : run->start_boot_ns, for_ns = now_ns - since_ns;
    if (!run->gpus || for_ns < s->jobs_idle_warn_s * NS_PER_S) {
        run->is_idle_said = false;
        return;
    }
    warn(run, "job_idle", &run->is_idle_said, "has done nothing with its %s for %d s", run->gpus == 1 ? "GPU" : "GPUs",
         (int)(for_ns / NS_PER_S));
    if (run->idle_over == JOB_OVER_END && for_ns >= s->jobs_idle_end_s * NS_PER_S)
        stop_run(run, JOB_BY_IDLE, jobs_own.starting.grace_ns);
}

/* It may still be the run before's in the first moments. */
static void judge_stray(struct run *run, int64_t now_ns) {
    const struct settings *s = &jobs_own.settings;
    int gpu = tasks_stray(run->name);
    bool ends = s->jobs_stray == JOB_OVER_END;
    char text[200];
    if (gpu < 0) run->is_stray_said = false;
    run->stray_ns = gpu < 0 ? 0 : run->stray_ns ? run->stray_ns : now_ns;
    if (gpu < 0 || now_ns - run->stray_ns < STRAY_NS) return;
    if (!run->is_stray_said) {
        snprintf(text, sizeof text, "your job %" PRId64 " (%.60s) uses GPU %d, which it was not given%s", run->key.job,
                 run->title, gpu, ends ? ", and will be ended unless it leaves it" : "");
        notices_word(run->uid, text);
    }
    warn(run, "job_stray", &run->is_stray_said, "uses GPU %d, which it was not given", gpu);
    if (ends && now_ns - run->stray_ns >= s->jobs_stray_end_s * NS_PER_S)
        stop_run(run, JOB_BY_STRAY, jobs_own.starting.grace_ns);
}

/* Every second: what a run does, against what it asked for. */
void jobs_judge(struct run *run, int64_t now_ns) {
    struct task_figures f;
    if (run->said.state != RUN_RUNNING) return;
    tasks_now(run->name, &f);
    if (f.memory_bytes > run->said.memory_peak_bytes) run->said.memory_peak_bytes = f.memory_bytes;
    judge_memory(run, &f);
    judge_idle(run, &f, now_ns);
    judge_stray(run, now_ns);
}

/* ---- the start ---- */

void jobs_adopt(void *ctx, const struct wire_run_key *k) {
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
void jobs_mind_found(struct run *run, int64_t now_ns) {
    if (!run->is_found) return;
    run->is_found = false;
    without_shim(run, now_ns);
}
