/* Callers of this machine: run/jobs.sock, on which the kernel says who speaks. What they submit is sealed here, with their own
 * uid, groups, place and environment, and goes to the server; what the server says comes back. Bad or slow callers lose their
 * connection, nobody else's. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "model/jobs_socket.h"
#include "node/account.h"
#include "node/jobs_own.h"
#include "node/notices.h"
#include "node/seal.h"
#include "run/stop.h"

#define CALLERS_MAX 1024
#define CALLERS_MANY (CALLERS_MAX / 4 * 3) /* beyond these there is room for those who have few */
#define CALLERS_FEW 64u
#define PENDING_MAX 4096
#define OUT_MAX (4u << 20) /* that wait for one caller: a follower that does not read gets no more */
#define LOOK_NS (25 * NS_PER_MS)

struct follow {
    bool is_on, is_over; /* of the log of this attempt: its end was told */
    struct jobs_follow ask;
    struct wire_run_key key; /* attempt 0: none yet */
    uint64_t offset;
    uint8_t told; /* state; 255: nothing */
    bool has_end; /* to be told behind the last of the log */
    struct wire_run end;
};

struct caller {
    int fd; /* -1: free */
    uint32_t serial;
    struct ucred who;
    unsigned groups;
    gid_t *group; /* owned */
    struct wire_stream in;
    struct buf out;
    size_t sent;
    bool is_paused, wants_out;
    struct follow follow;
};

/* What was asked of the server for somebody. */
struct pending {
    uint64_t id; /* 0: free */
    unsigned caller;
    uint32_t serial;
    uint64_t request;
    uint8_t type; /* of the answer */
};

static struct {
    int listener;
    struct caller of[CALLERS_MAX];
    unsigned used; /* of `of`, at most */
    uint32_t serial;
    struct pending pending[PENDING_MAX];
    uint64_t id;
} self;

int calls_open(struct error *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char path[256];
    instance_path(&jobs_own.runs.where, path, sizeof path, "%s", JOBS_SOCKET);
    if (strlen(path) >= sizeof at.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    self.id = (uint64_t)clock_real_ns();
    for (unsigned i = 0; i < CALLERS_MAX; i++) self.of[i].fd = -1;
    unlink(path);
    self.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self.listener < 0 || bind(self.listener, (const struct sockaddr *)&at, sizeof at) < 0 ||
        chmod(path, 0666) < 0 || listen(self.listener, 128) < 0 ||
        !jobs_watch(self.listener, EPOLLIN, JOBS_LISTENER, 0))
        return fail_errno(e, errno, "%s", path);
    return 0;
}

/* ---- connections ---- */

static void hang_up(struct caller *c) {
    fd_done(&c->fd);
    free(c->group);
    c->group = NULL;
    wire_stream_done(&c->in);
    buf_done(&c->out);
    c->sent = 0;
    c->follow = (struct follow){0};
}

static bool ask_groups(struct caller *c) {
    gid_t few[64];
    socklen_t n = sizeof few;
    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, few, &n) == 0) {
        c->group = malloc(n + 1);
        if (!c->group) return false;
        memcpy(c->group, few, n);
    } else if (errno == ERANGE && n <= SEAL_GROUPS * sizeof *few) {
        c->group = malloc(n);
        if (!c->group || getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, c->group, &n) < 0) return false;
    } else {
        return false;
    }
    c->groups = (unsigned)(n / sizeof *c->group);
    return true;
}

/* One user alone cannot keep all the others out. */
static bool is_crowding(const struct caller *c) {
    unsigned his = 0, all = 0;
    for (unsigned i = 0; i < self.used; i++) {
        all += self.of[i].fd >= 0;
        his += self.of[i].fd >= 0 && self.of[i].who.uid == c->who.uid;
    }
    return c->who.uid && all > CALLERS_MANY && his > CALLERS_FEW;
}

static void take_caller(int fd) {
    socklen_t n = sizeof(struct ucred);
    unsigned i = 0;
    while (i < CALLERS_MAX && self.of[i].fd >= 0) i++;
    struct caller *c = i < CALLERS_MAX ? &self.of[i] : NULL;
    if (!c) {
        close(fd);
        return;
    }
    *c = (struct caller){.fd = fd, .serial = ++self.serial};
    if (i >= self.used) self.used = i + 1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->who, &n) < 0 || is_crowding(c) || !ask_groups(c) ||
        !jobs_watch(fd, EPOLLIN, JOBS_CALLER, i))
        hang_up(c);
}

void calls_accept(void) {
    for (int fd; (fd = accept4(self.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) take_caller(fd);
}

static void set_events(struct caller *c) {
    struct epoll_event ev = {.data.u64 = (uint64_t)JOBS_CALLER << 32 | (uint32_t)(c - self.of)};
    ev.events = (c->is_paused ? 0 : (uint32_t)EPOLLIN) | (c->wants_out ? (uint32_t)EPOLLOUT : 0);
    epoll_ctl(jobs_own.epoll, EPOLL_CTL_MOD, c->fd, &ev);
}

static void flush(struct caller *c) {
    while (c->fd >= 0 && c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.s + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            hang_up(c);
            return;
        }
        c->sent += (size_t)n;
    }
    if (c->fd < 0) return;
    bool is_rest = c->sent < c->out.len;
    if (!is_rest) {
        buf_clear(&c->out);
        c->sent = 0;
    }
    if (is_rest == c->wants_out) return;
    c->wants_out = is_rest;
    set_events(c);
}

static void answer(struct caller *c, enum wire_type type, uint64_t request, int result, const char *text) {
    struct wire_job_result r = {.request = request, .result = result};
    snprintf(r.text, sizeof r.text, "%s", text);
    wire_put_job_result(&c->out, type, &r);
    flush(c);
}

/* ---- what goes to the server and comes back ---- */

static struct pending *note_pending(struct caller *c, uint64_t request, enum wire_type type) {
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        struct pending *p = &self.pending[(self.id + i) % PENDING_MAX];
        if (p->id) continue;
        *p = (struct pending){++self.id, (unsigned)(c - self.of), c->serial, request, (uint8_t)type};
        return p;
    }
    return NULL;
}

static struct caller *caller_of(const struct pending *p) {
    struct caller *c = &self.of[p->caller];
    return c->fd >= 0 && c->serial == p->serial ? c : NULL;
}

bool calls_answer(uint8_t type, const struct wire_job_result *r) {
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        struct pending *p = &self.pending[i];
        if (p->id != r->request || !p->id || p->type != type) continue;
        struct caller *c = caller_of(p);
        struct wire_job_result theirs = *r;
        theirs.request = p->request;
        p->id = 0;
        if (!c) return true;
        CRASH_POINT();
        wire_put_job_result(&c->out, (enum wire_type)type, &theirs);
        flush(c);
        return true;
    }
    return false;
}

void calls_link_down(void) {
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        struct pending *p = &self.pending[i];
        struct caller *c = p->id ? caller_of(p) : NULL;
        if (c)
            answer(c, (enum wire_type)p->type, p->request, -ECONNRESET,
                   "the server went away before it answered: `gpumgr jobs` shows whether it was taken");
        p->id = 0;
    }
}

static const char no_server[] = "the server does not answer now; nothing was taken";

/* ---- submitting ---- */

static int may_submit(const struct caller *c, struct error *e) {
    char owner[64];
    if (geteuid() == 0 || c->who.uid == geteuid()) return 0;
    account_name(geteuid(), owner, sizeof owner);
    return fail(e, -EPERM, "this gpumgr is %s's and not root: it runs jobs of %s only", owner, owner);
}

/* A submission as frames for the server, one behind the other: all but the last say that more follows. */
struct sealing {
    struct buf frames, body; /* body: of the frame under way */
    struct wire_submit head;
};

static void end_frame(struct sealing *s, bool is_part) {
    s->head.is_part = is_part;
    size_t from = wire_begin_submit(&s->frames, &s->head);
    buf_add(&s->frames, s->body.s, s->body.len);
    if (is_part || *s->head.key) wire_tail_submit(&s->frames, &s->head);
    wire_end(&s->frames, from);
    buf_clear(&s->body);
    s->head.count = 0;
}

static int seal_one(struct sealing *to, const struct seal_context *context, const uint8_t *record, size_t len,
                    struct error *e) {
    AUTO(buf_done) struct buf seal = {0};
    struct job_spec spec;
    unsigned elements, at_once;
    int r = job_decode(record, len, &spec, e);
    if (r >= 0) r = job_check(&spec, clock_real_ns(), e);
    if (r >= 0) r = job_elements(&spec, &elements, &at_once, e);
    if (r >= 0) r = notices_admit(&spec, jobs_own.settings.jobs_notify_command, e);
    if (r < 0) return r;
    seal_make(context, record, len, &seal);
    struct wire_sealed one = {.uid = context->uid,
                              .record = record,
                              .record_len = len,
                              .seal = (const uint8_t *)seal.s,
                              .seal_len = seal.len};
    snprintf(one.user, sizeof one.user, "%s", context->user);
    size_t bytes = wire_sealed_bytes(&one);
    if (bytes > WIRE_SUBMIT_BYTES) return fail(e, -E2BIG, "the environment is too large for a job");
    if (to->body.len + bytes > WIRE_SUBMIT_BYTES) end_frame(to, true);
    wire_add_submit(&to->body, &one);
    to->head.count++;
    if (to->frames.len + to->body.len <= WIRE_SUBMIT_MOST) return 0;
    return fail(e, -E2BIG,
                "these jobs, each with your environment, are more than %u MiB; hand them in in parts, or as an array",
                WIRE_SUBMIT_MOST >> 20);
}

static int seal_all(struct jobs_submit *s, const struct seal_context *context, struct sealing *to, struct error *e) {
    const uint8_t *record;
    size_t len;
    int r = s->count ? 0 : fail(e, -EINVAL, "there is no job in it");
    while (r >= 0 && jobs_next_submit(s, &record, &len)) r = seal_one(to, context, record, len, e);
    if (r >= 0) end_frame(to, false);
    return r;
}

static void sealing_done(struct sealing *s) {
    buf_done(&s->frames);
    buf_done(&s->body);
}

static void on_submit(struct caller *c, const struct wire_frame *f) {
    static struct jobs_submit s; /* large; one thread */
    AUTO(buf_done) struct buf groups = {0};
    AUTO(sealing_done) struct sealing sealing = {0};
    struct error e = {0};
    char user[64];
    if (jobs_get_submit(f, &s, &e) < 0) {
        answer(c, WIRE_JOB_SUBMITTED, 0, -EPROTO, e.text);
        return;
    }
    if (may_submit(c, &e) < 0) {
        answer(c, WIRE_JOB_SUBMITTED, s.request, e.code, e.text);
        return;
    }
    if (!jobs_own.is_linked) {
        answer(c, WIRE_JOB_SUBMITTED, s.request, -EHOSTDOWN, no_server);
        return;
    }
    account_name(c->who.uid, user, sizeof user);
    for (unsigned i = 0; i < c->groups; i++)
        for (int b = 0; b < 4; b++) buf_putc(&groups, (char)(c->group[i] >> (8 * b)));
    const struct seal_context context = {.uid = c->who.uid,
                                         .gid = c->who.gid,
                                         .umask = s.umask,
                                         .groups = c->groups,
                                         .group = (const uint8_t *)groups.s,
                                         .user = user,
                                         .cwd = s.cwd,
                                         .origin = "socket",
                                         .environment = s.environment};
    uint64_t request = s.request;
    struct pending *p = note_pending(c, request, WIRE_JOB_SUBMITTED);
    if (!p) {
        answer(c, WIRE_JOB_SUBMITTED, request, -EBUSY, "too many wait for the server's answer; try again");
        return;
    }
    sealing.head.request = p->id;
    memcpy(sealing.head.key, s.key, sizeof sealing.head.key);
    if (seal_all(&s, &context, &sealing, &e) < 0) {
        p->id = 0;
        answer(c, WIRE_JOB_SUBMITTED, request, e.code, e.text);
        return;
    }
    buf_add(jobs_say_begin(), sealing.frames.s, sealing.frames.len);
    jobs_say_end();
}

/* ---- control ---- */

static void on_control(struct caller *c, const struct wire_frame *f) {
    struct wire_control w;
    struct error e;
    if (wire_get_control(f, &w, &e) < 0) {
        answer(c, WIRE_JOB_CONTROLLED, 0, -EPROTO, e.text);
        return;
    }
    struct pending *p = jobs_own.is_linked ? note_pending(c, w.request, WIRE_JOB_CONTROLLED) : NULL;
    if (!p) {
        answer(c, WIRE_JOB_CONTROLLED, w.request, -EHOSTDOWN, no_server);
        return;
    }
    w.request = p->id;
    w.uid = c->who.uid; /* as the kernel says it */
    wire_put_control(jobs_say_begin(), &w);
    jobs_say_end();
}

static bool is_his(const struct caller *c, uint32_t uid) { return c->who.uid == 0 || c->who.uid == uid; }

static void on_signal(struct caller *c, const struct wire_frame *f) {
    struct jobs_signal s;
    struct error e;
    if (jobs_get_signal(f, &s, &e) < 0) {
        answer(c, WIRE_JOB_CONTROLLED, 0, -EPROTO, e.text);
        return;
    }
    const struct run *run = runs_newest(&jobs_own.runs, s.job, s.element);
    if (!run || run->pidfd < 0 || run->said.state != RUN_RUNNING) {
        answer(c, WIRE_JOB_CONTROLLED, s.request, -ESRCH, "the job does not run here now");
        return;
    }
    if (!is_his(c, run->uid)) {
        answer(c, WIRE_JOB_CONTROLLED, s.request, -EACCES, "the job is somebody else's");
        return;
    }
    int r = stop_send(run->pidfd, PASS_SIGNAL, s.number);
    answer(c, WIRE_JOB_CONTROLLED, s.request, r, r < 0 ? strerror(-r) : "");
}

/* ---- following ---- */

static void put_logs(struct caller *c) {
    struct follow *w = &c->follow;
    while (c->fd >= 0 && w->ask.has_log && w->key.attempt && !w->is_over && c->out.len - c->sent < OUT_MAX / 2) {
        struct wire_frame f;
        struct wire_log l;
        size_t from = c->out.len;
        jobs_put_log(&c->out, &w->key, w->ask.request, w->offset, WIRE_LOG_MAX);
        if (wire_frame(c->out.s + from, c->out.len - from, &f, NULL) <= 0 || wire_get_log(&f, &l, NULL) < 0) return;
        bool is_end = l.offset + l.len >= l.total;
        w->offset = l.offset + l.len;
        w->is_over = l.is_over && is_end;
        if (!l.len && !w->is_over) { /* nothing new: nothing is said */
            c->out.len = from;
            break;
        }
        if (is_end) break;
    }
    if (w->has_end && (w->is_over || !w->ask.has_log)) {
        w->has_end = false;
        wire_put_run(&c->out, &w->end);
    }
    flush(c);
}

static void tell_follower(struct caller *c, const struct wire_run *said) {
    struct follow *w = &c->follow;
    if (w->key.attempt != said->key.attempt) {
        bool is_first = !w->key.attempt;
        w->key = said->key;
        w->offset = is_first && (!w->ask.attempt || w->ask.attempt == said->key.attempt) ? w->ask.offset : 0;
        w->is_over = false;
        w->told = 255;
    }
    if (w->told == said->state) return;
    w->told = said->state;
    if (said->state == RUN_ENDED) { /* what it said comes before that it ended */
        w->has_end = true;
        w->end = *said;
    } else {
        wire_put_run(&c->out, said);
    }
    put_logs(c);
}

void calls_tell(const struct run *run) {
    for (unsigned i = 0; i < self.used; i++) {
        struct caller *c = &self.of[i];
        if (c->fd < 0 || !c->follow.is_on || c->follow.ask.job != run->key.job ||
            c->follow.ask.element != run->key.element || run->key.attempt < c->follow.key.attempt)
            continue;
        if (c->follow.ask.has_log && !is_his(c, run->uid)) {
            answer(c, WIRE_JOB_CONTROLLED, c->follow.ask.request, -EACCES,
                   "the job is somebody else's: its log is his");
            c->follow.is_on = false;
            continue;
        }
        tell_follower(c, &run->said);
    }
}

/* One that ended and is stored: the newest attempt whose directory is kept. */
static bool find_kept(const struct jobs_follow *a, struct wire_run *ret, uint32_t *ret_uid) {
    bool is_found = false;
    char path[340], name[OWNERS_NAME];
    struct stat st;
    for (uint32_t attempt = 1; attempt <= JOB_RETRIES_MAX + 1; attempt++) {
        struct wire_run_key k = {a->job, a->element, attempt};
        struct wire_run run;
        if (runs_look(&jobs_own.runs, &k, &run, NULL) < 0) continue;
        run_name(&k, name);
        run_path(&jobs_own.runs, name, "log", path, sizeof path);
        *ret_uid = stat(path, &st) == 0 ? st.st_uid : 0;
        *ret = run;
        is_found = true;
    }
    return is_found;
}

static void on_follow(struct caller *c, const struct wire_frame *f) {
    struct error e;
    struct jobs_follow ask;
    struct wire_run kept;
    uint32_t uid = 0;
    if (jobs_get_follow(f, &ask, &e) < 0) {
        answer(c, WIRE_JOB_CONTROLLED, 0, -EPROTO, e.text);
        return;
    }
    c->follow = (struct follow){.is_on = true, .ask = ask, .told = 255};
    const struct run *run = runs_newest(&jobs_own.runs, ask.job, ask.element);
    if (run) {
        calls_tell(run);
        return;
    }
    if (!find_kept(&ask, &kept, &uid)) return; /* it has not begun: silence */
    if (ask.has_log && !is_his(c, uid)) {
        answer(c, WIRE_JOB_CONTROLLED, ask.request, -EACCES, "the job is somebody else's: its log is his");
        c->follow.is_on = false;
        return;
    }
    tell_follower(c, &kept);
}

int64_t calls_tick(int64_t now_ns) {
    bool is_any = false;
    for (unsigned i = 0; i < self.used; i++) {
        struct caller *c = &self.of[i];
        if (c->fd < 0) continue;
        if (c->is_paused && jobs_said_bytes() < CALLS_BACKLOG / 2) {
            c->is_paused = false;
            set_events(c);
        }
        if (c->follow.is_on && c->follow.ask.has_log && c->follow.key.attempt && !c->follow.is_over) {
            put_logs(c);
            is_any = true;
        }
        is_any |= c->is_paused;
    }
    return is_any ? now_ns + LOOK_NS : INT64_MAX;
}

/* ---- what callers say ---- */

static void on_frame(struct caller *c, const struct wire_frame *f) {
    if (f->version != WIRE_VERSION) return;
    if (f->type == WIRE_CALL_SUBMIT) on_submit(c, f);
    if (f->type == WIRE_JOB_CONTROL) on_control(c, f);
    if (f->type == WIRE_CALL_SIGNAL) on_signal(c, f);
    if (f->type == WIRE_CALL_FOLLOW) on_follow(c, f);
}

static void take_frames(struct caller *c) {
    struct wire_frame f;
    struct error e;
    while (c->fd >= 0) {
        int r = wire_stream_next(&c->in, &f, &e);
        if (r < 0) {
            answer(c, WIRE_JOB_CONTROLLED, 0, -EPROTO, e.text);
            if (c->fd >= 0) hang_up(c);
        }
        if (r <= 0) return;
        on_frame(c, &f);
        if (c->fd >= 0 && c->out.len - c->sent > OUT_MAX) hang_up(c);
    }
}

void calls_ready(uint32_t number, uint32_t events) {
    static char piece[65536];
    struct caller *c = number < CALLERS_MAX ? &self.of[number] : NULL;
    if (!c || c->fd < 0) return;
    if (events & EPOLLOUT) {
        flush(c);
        if (c->fd >= 0) put_logs(c);
    }
    if (c->fd < 0 || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    ssize_t n = recv(c->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        hang_up(c);
        return;
    }
    wire_stream_add(&c->in, piece, (size_t)n);
    take_frames(c);
    if (c->fd < 0 || jobs_said_bytes() < CALLS_BACKLOG) return;
    c->is_paused = true;
    set_events(c);
}
