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
#include "base/thread.h"
#include "node/account.h"
#include "node/announce.h"
#include "node/health.h"
#include "node/jobs_own.h"
#include "node/notices.h"
#include "node/seal.h"
#include "node/tasks.h"
#include "run/log.h"
#include "run/stop.h"
#include "run/tree.h"

#define STACK_BYTES (1024 * 1024)
#define EVENTS_MAX 64
#define ORPHAN_AGAIN_NS (20 * NS_PER_MS) /* between two looks for processes of a run without a shim */
#define TIDY_NS (3600 * NS_PER_S)
#define TIDY_AT_ONCE 1000
#define ROUND_NS NS_PER_S

struct jobs_own jobs_own;

static struct {
    pthread_mutex_t lock; /* guards in, out, is_welcome, is_down, fresh */
    struct buf in, out;
    bool is_welcome, is_down, is_reload;
    struct settings fresh;
    int to_jobs, to_main;
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
    if ((f->type < WIRE_JOB_SEAL || f->type > WIRE_JOB_TRY) && f->type != WIRE_JOB_NOTICE) return false;
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
        CRASH_POINT();
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

/* ---- the rest of what the server says ---- */

static void on_stored(const struct wire_frame *f) {
    struct wire_run_key k;
    if (wire_get_stored(f, &k, NULL) < 0) return;
    struct run *run = runs_find(&jobs_own.runs, &k);
    CRASH_POINT();
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
            jobs_tell(run);
        } else if (runs_look(&jobs_own.runs, &k, &old, NULL) >= 0) {
            jobs_say_run(&old);
        } else {
            jobs_say_absent(&k);
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
    if (r >= 0) r = notices_admit(&spec, jobs_own.settings.jobs_notify_command, &e);
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
    case WIRE_JOB_GRANT: jobs_grant(f); break;
    case WIRE_JOB_STOP: jobs_stop(f); break;
    case WIRE_JOB_STORED: on_stored(f); break;
    case WIRE_JOB_RUNS: on_runs(f); break;
    case WIRE_JOB_LOG_ASK: on_log_ask(f); break;
    case WIRE_JOB_NOTICE: notices_take(f); break;
    case WIRE_JOB_TRY: health_try(f); break;
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

/* All of them: the server may have given one up that goes on here. */
static void say_again(struct run *run, int64_t now_ns) { jobs_tell(run); }

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
    if (is_down) jobs_grants_drop();
    if (is_welcome) jobs_figures_now(now_ns);
    if (is_welcome) each_run(say_again, now_ns);
    for (size_t at = 0; at < in.len;) {
        int n = wire_frame(in.s + at, in.len - at, &f, NULL);
        if (n <= 0) break;
        on_frame(&f);
        at += (size_t)n;
    }
}

static void on_time(int64_t now_ns) {
    each_run(jobs_look_after, now_ns);
    if (now_ns >= self.round_ns) {
        self.round_ns = now_ns + ROUND_NS;
        jobs_grant_again();
        each_run(jobs_judge, now_ns);
        jobs_figures(now_ns);
    }
    if (now_ns < self.tidy_ns) return;
    self.tidy_ns = now_ns + TIDY_NS;
    runs_tidy(&jobs_own.runs, jobs_own.settings.jobs_keep_days, TIDY_AT_ONCE);
}

static void on_event(const struct epoll_event *ev, int64_t now_ns) {
    uint32_t number = (uint32_t)ev->data.u64;
    switch ((enum jobs_source)(ev->data.u64 >> 32)) {
    case JOBS_WAKE: on_wake(now_ns); break;
    case JOBS_STATE: jobs_states(); break;
    case JOBS_SHIM: jobs_shim_ended((int)number, now_ns); break;
    case JOBS_LISTENER: calls_accept(); break;
    case JOBS_CALLER: calls_ready(number, ev->events); break;
    }
}

static int wait_ms(int64_t at_ns, int64_t now_ns) {
    if (at_ns <= now_ns) return 0;
    int64_t ms = (at_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

static void *run_thread(void *arg) {
    struct epoll_event ev[EVENTS_MAX];
    pthread_setname_np(pthread_self(), "jobs");
    CRASH_POINT_CALLS(true);
    clock_be_prompt();
    each_run(jobs_mind_found, clock_boot_ns());
    for (;;) {
        int64_t now_ns = clock_boot_ns(), next_ns = calls_tick(now_ns);
        if (self.tidy_ns < next_ns) next_ns = self.tidy_ns;
        if ((jobs_own.runs.count || jobs_has_postponed()) && self.round_ns < next_ns) next_ns = self.round_ns;
        if (jobs_has_orphan()) next_ns = now_ns + ORPHAN_AGAIN_NS;
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
    jobs_own.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    jobs_own.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self.to_jobs < 0 || self.to_main < 0 || jobs_own.inotify < 0 || jobs_own.epoll < 0 ||
        !jobs_watch(self.to_jobs, EPOLLIN, JOBS_WAKE, 0) || !jobs_watch(jobs_own.inotify, EPOLLIN, JOBS_STATE, 0))
        return fail_errno(e, errno, "watch for jobs");
    int r = seal_open_key(where->dir, e);
    if (r >= 0) r = runs_open(&jobs_own.runs, where, e);
    if (r >= 0) r = starting_init(&jobs_own.starting, &jobs_own.settings, where, e);
    return r < 0 ? r : calls_open(e);
}

int jobs_open(const struct instance *where, const struct settings *s, const char *settings_path, struct error *e) {
    jobs_own.starting.settings_path = settings_path;
    jobs_own.settings = *s;
    jobs_own.starting.grace_ns = s->jobs_grace_s * NS_PER_S;
    CRASH_POINT_CALLS(true);
    int r = open_all(where, e);
    if (r >= 0) runs_each_on_disk(&jobs_own.runs, jobs_adopt, NULL);
    CRASH_POINT_CALLS(false);
    return r;
}

void jobs_close(void) {
    if (*jobs_own.starting.cgroup) (void)rmdir(jobs_own.starting.cgroup); /* not while jobs are in it */
}

int jobs_start(struct error *e) { return thread_start(run_thread, NULL, STACK_BYTES, "jobs", e); }
