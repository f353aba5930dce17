#include "node/control.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/event.h"
#include "node/control_own.h"
#include "node/tasks.h"

#define STACK_BYTES (1024 * 1024)
#define THREADS_MAX 16u /* calls at a time, of all */
#define LOCAL_MAX 8u    /* of callers on this machine: others have their part */
#define LOCAL_EACH 4u   /* of one user of it; uids that are so far apart count as one */
#define LOCAL_USERS 1024u
#define OUT_MAX (16u << 20)
#define CALLER_S 10
#define MEND_AGAIN_NS (5 * NS_PER_S)
#define TIDY_EACH 3 /* of these */
#define ROWS 24     /* of a terminal whose size is not known yet */
#define COLUMNS 80

static struct {
    pthread_mutex_t lock; /* guards settings, out, session, threads, local, each */
    pthread_mutex_t edit; /* one change at a time: containers have two names meanwhile. Guards is_whole */
    bool is_whole;        /* no change was left half made */
    struct settings settings;
    struct instance where;
    struct buf out;
    uint64_t session; /* of the link: an answer of one before is nobody's */
    unsigned threads, local;
    unsigned each[LOCAL_USERS]; /* the local ones by whose they are */
    int to_main, listener;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .edit = PTHREAD_MUTEX_INITIALIZER, .listener = -1};

struct task {
    struct control c;
    struct buf frame; /* what the call points into */
    uint64_t session;
    int fd; /* of a caller on this machine; -1: the server asks */
    struct ucred peer;
};

/* ---- one call ---- */

static int show_spec(struct control *c, struct error *e) {
    AUTO(control_seen_done) struct control_seen s = {0};
    AUTO(buf_done) struct buf keep = {0};
    struct container_spec spec;
    int r = control_see(c, c->call.of, &s, e);
    if (r >= 0) r = control_may(&c->who, &s, CONTAINER_VERB_SPEC, e);
    if (r >= 0) r = control_see_image(c, &s, e);
    if (r < 0) return r;
    control_spec(&s, &keep, &spec);
    container_spec_put_json(&spec, &c->out);
    return 0;
}

static int edit(struct control *c, struct error *e) {
    pthread_mutex_lock(&self.edit);
    int r = control_edit(c, e);
    if (c->call.verb == CONTAINER_VERB_EDIT) self.is_whole = false; /* what could not be put back or away is, later */
    pthread_mutex_unlock(&self.edit);
    return r;
}

/* The server has streams for it. */
static int stay(struct control *c, struct error *e) {
    if (c->who.account[0]) return fail(e, -EINVAL, "a log is followed, and a shell opened, by a stream");
    return c->call.verb == CONTAINER_VERB_SHELL ? control_shell(c, c->call.of, ROWS, COLUMNS, &c->end, e)
                                                : control_follow(c, c->call.of, c->call.lines, &c->end, e);
}

static int perform(struct control *c, struct error *e) {
    switch ((enum container_verb)c->call.verb) {
    case CONTAINER_VERB_LIST: return control_list(c, e);
    case CONTAINER_VERB_IMAGES: return control_images(c, e);
    case CONTAINER_VERB_SPEC: return show_spec(c, e);
    case CONTAINER_VERB_LOG: return control_log(c, e);
    case CONTAINER_VERB_FOLLOW:
    case CONTAINER_VERB_SHELL: return stay(c, e);
    case CONTAINER_VERB_UI: return control_ui(c, e);
    case CONTAINER_VERB_ADD: return control_add(c, e);
    case CONTAINER_VERB_TRY:
    case CONTAINER_VERB_EDIT: return edit(c, e);
    case CONTAINER_VERB_START:
    case CONTAINER_VERB_STOP:
    case CONTAINER_VERB_RESTART:
    case CONTAINER_VERB_REMOVE: return control_act(c, e);
    case CONTAINER_VERB_COUNT: break;
    }
    return fail(e, -EINVAL, "this gpumgr does not know what is asked of its containers");
}

static void settle(struct control *c) {
    pthread_mutex_lock(&self.lock);
    c->settings = self.settings;
    pthread_mutex_unlock(&self.lock);
    c->where = &self.where;
    size_t n = strcspn(c->settings.engines_docker, ",");
    snprintf(c->socket, sizeof c->socket, "%.*s", (int)(n < sizeof c->socket ? n : 0), c->settings.engines_docker);
}

/* What was done is in everybody's list of events, with who did it. */
static void tell(const struct control *c) {
    char text[168];
    const char *user = c->who.login.user[0] ? c->who.login.user : "a user without a name";
    if (!c->event[0]) return;
    snprintf(text, sizeof text, "%.110s by %.50s", c->event, c->who.account[0] ? c->who.account : user);
    tasks_event(EVENT_INFO, "container", 0, text);
}

/* Reading the list is everybody's who is signed in: an account without a user here may just do nothing, but for what administrators
 * may do with everybody's: the first of them is root, and as root nothing runs for the web. */
static int know_account(struct control *c, enum container_verb v, struct error *e) {
    bool looks = v == CONTAINER_VERB_LIST || v == CONTAINER_VERB_IMAGES;
    int r = control_who_account(c, e);
    if (r >= 0 || (!looks && !(c->call.is_admin && control_is_for_admins(v)))) return r;
    control_who_done(&c->who);
    c->who = (struct control_who){
        .is_admin = c->call.is_admin, .login = {.uid = UINT32_MAX, .user = "", .cwd = "/", .origin = ""}
    };
    snprintf(c->who.account, sizeof c->who.account, "%s", c->call.account);
    return 0;
}

static int know_caller(struct task *t, const struct ucred *peer, struct error *e) {
    struct control *c = &t->c;
    if (peer) {
        control_who_local(c, t->fd, peer->uid, peer->gid);
        return 0;
    }
    return know_account(c, (enum container_verb)c->call.verb, e);
}

static void run_call(struct task *t, const struct ucred *peer) {
    struct control *c = &t->c;
    struct error e = {0};
    settle(c);
    int r = *c->socket ? know_caller(t, peer, &e) : fail(&e, -ENOTCONN, "no container engine is set (engines.docker)");
    if (r >= 0) r = perform(c, &e);
    if (r >= 0) tell(c);
    if (container_verb_changes((enum container_verb)c->call.verb))
        log_line(r < 0 ? LOG_WARN : LOG_INFO, "container", -1, "%s %s for %s%s (uid %u): %s",
                 container_verb_name((enum container_verb)c->call.verb), c->call.of, *c->who.account ? "account " : "",
                 *c->who.account     ? c->who.account
                 : c->who.login.user ? c->who.login.user
                                     : "",
                 c->who.login.uid, r < 0 ? e.text : "done");
    c->answer.request = c->call.request;
    c->answer.result = r < 0 ? r : 0;
    if (r < 0) snprintf(c->answer.text, sizeof c->answer.text, "%s", e.text);
    c->answer.body = (const uint8_t *)c->out.s;
    c->answer.len = r < 0 || c->out.len > WIRE_CONTAINER_ANSWER_MAX ? 0 : c->out.len;
}

static unsigned *each_of(const struct task *t) { return &self.each[t->peer.uid % LOCAL_USERS]; }

static void count_locked(const struct task *t, int by) {
    self.threads += (unsigned)by;
    if (t->fd < 0) return;
    self.local += (unsigned)by;
    *each_of(t) += (unsigned)by;
}

static void count_task(const struct task *t, int by) {
    pthread_mutex_lock(&self.lock);
    count_locked(t, by);
    pthread_mutex_unlock(&self.lock);
}

static void task_free(struct task *t) {
    count_task(t, -1);
    if (t->fd >= 0) close(t->fd);
    control_who_done(&t->c.who);
    buf_done(&t->c.out);
    buf_done(&t->frame);
    free(t);
}

/* One user alone cannot keep all the others out, by calls in which he says nothing. */
static bool has_room(const struct task *t) {
    if (self.threads >= THREADS_MAX) return false;
    return t->fd < 0 || (self.local < LOCAL_MAX && *each_of(t) < LOCAL_EACH);
}

/* What fails is freed, and a caller's connection closed. */
static int begin_thread(struct task *t, void *(*run)(void *), struct error *e) {
    pthread_mutex_lock(&self.lock);
    bool is_full = !has_room(t);
    count_locked(t, 1);
    pthread_mutex_unlock(&self.lock);
    int r = is_full ? fail(e, -EAGAIN, "too many calls about containers are under way; try again in a moment")
                    : thread_start(run, t, STACK_BYTES, "containers", e);
    if (r < 0) task_free(t);
    return r;
}

/* ---- the server asks ---- */

static void wake(void) { (void)!write(self.to_main, &(uint64_t){1}, sizeof(uint64_t)); }

static void say(uint64_t session, const struct wire_container_answer *a) {
    pthread_mutex_lock(&self.lock);
    if (session == self.session && self.out.len < OUT_MAX) wire_put_container_answer(&self.out, a);
    pthread_mutex_unlock(&self.lock);
    wake();
}

static void *serve_server(void *arg) {
    struct task *t = arg;
    run_call(t, NULL);
    say(t->session, &t->c.answer);
    task_free(t);
    return NULL;
}

bool control_take(const struct wire_frame *f) {
    struct wire_container_call call;
    struct wire_frame own;
    struct error e;
    if (f->type != WIRE_CONTAINER_CALL) return false;
    if (wire_get_container_call(f, &call, &e) < 0) return true;
    struct task *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->fd = -1;
    size_t from = wire_begin(&t->frame, WIRE_CONTAINER_CALL);
    buf_add(&t->frame, f->body, f->len);
    wire_end(&t->frame, from);
    pthread_mutex_lock(&self.lock);
    t->session = self.session;
    pthread_mutex_unlock(&self.lock);
    struct wire_container_answer refusal = {.request = call.request};
    uint64_t session = t->session;
    int r = wire_frame(t->frame.s, t->frame.len, &own, &e);
    if (r > 0) r = wire_get_container_call(&own, &t->c.call, &e);
    if (r >= 0) r = begin_thread(t, serve_server, &e);
    if (r >= 0) return true;
    refusal.result = r;
    snprintf(refusal.text, sizeof refusal.text, "%s", e.text);
    say(session, &refusal);
    return true;
}

void control_link_down(void) {
    pthread_mutex_lock(&self.lock);
    self.session++;
    buf_done(&self.out);
    pthread_mutex_unlock(&self.lock);
}

int control_fd(void) { return self.to_main; }

void control_put(struct uplink *u, size_t most_bytes) {
    uint64_t n;
    (void)!read(self.to_main, &n, sizeof n);
    pthread_mutex_lock(&self.lock);
    if (uplink_queued(u) < most_bytes && self.out.len) {
        buf_add(&u->out, self.out.s, self.out.len);
        buf_clear(&self.out);
    }
    pthread_mutex_unlock(&self.lock);
}

/* ---- a caller on this machine ---- */

static int hear(int fd, struct buf *frame, struct wire_container_call *ret, struct error *e) {
    char piece[16384];
    struct wire_frame f;
    for (;;) {
        int r = frame->len ? wire_frame(frame->s, frame->len, &f, e) : 0;
        if (r < 0) return r;
        if (r > 0) return wire_get_container_call(&f, ret, e);
        if (frame->len > CONTAINER_RECORD_MAX + 4096) return fail(e, -EPROTO, "more than a call");
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(e, -EPIPE, "the caller went away");
        buf_add(frame, piece, (size_t)n);
    }
}

static void answer_caller(struct task *t) {
    AUTO(buf_done) struct buf out = {0};
    wire_put_container_answer(&out, &t->c.answer);
    for (size_t at = 0; at < out.len;) {
        ssize_t w = send(t->fd, out.s + at, out.len - at, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) break;
        at += (size_t)w;
    }
}

/* One who stays takes nobody's turn away. */
static void stay_with(struct task *t, uint32_t uid) {
    count_task(t, -1);
    control_session(t->fd, &t->c.end);
    count_task(t, 1);
    control_session_end(uid);
}

static void serve_call(struct task *t, const struct ucred *peer) {
    struct error e = {0};
    bool stays = t->c.call.verb == CONTAINER_VERB_FOLLOW || t->c.call.verb == CONTAINER_VERB_SHELL;
    if (stays && control_session_begin(peer->uid, &e) < 0) {
        t->c.answer.result = e.code;
        snprintf(t->c.answer.text, sizeof t->c.answer.text, "%s", e.text);
        answer_caller(t);
        return;
    }
    run_call(t, peer);
    answer_caller(t);
    if (stays && t->c.answer.result >= 0)
        stay_with(t, peer->uid);
    else if (stays)
        control_session_end(peer->uid);
}

static void *serve_caller(void *arg) {
    struct task *t = arg;
    struct timeval patience = {.tv_sec = CALLER_S};
    struct error e;
    setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (t->peer.uid != UINT32_MAX && hear(t->fd, &t->frame, &t->c.call, &e) >= 0) serve_call(t, &t->peer);
    task_free(t);
    return NULL;
}

static void *listen_thread(void *arg) {
    struct error e;
    for (;;) {
        int fd = accept4(self.listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EINTR && errno != ECONNABORTED) clock_sleep_until(clock_boot_ns() + 100 * NS_PER_MS);
            continue;
        }
        struct task *t = calloc(1, sizeof *t);
        socklen_t n = sizeof t->peer;
        if (!t) abort();
        t->fd = fd;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &t->peer, &n) < 0) t->peer.uid = UINT32_MAX; /* nobody's uid */
        (void)!begin_thread(t, serve_caller, &e);
    }
    return NULL;
}

/* ---- a shell, a log or a port, as a stream ---- */

static int open_end(const struct settings *s, const struct wire_stream_open *o, struct stream_end *ret,
                    struct error *e) {
    struct control *c = calloc(1, sizeof *c);
    if (!c) abort();
    settle(c);
    snprintf(c->call.account, sizeof c->call.account, "%s", o->account);
    c->call.is_admin = o->is_admin;
    enum container_verb verb = o->kind == WIRE_STREAM_LOG ? CONTAINER_VERB_LOG : CONTAINER_VERB_SHELL;
    int r = *c->socket ? know_account(c, verb, e) : fail(e, -ENOTCONN, "no container engine is set (engines.docker)");
    if (r >= 0 && o->kind == WIRE_STREAM_EXEC) r = control_shell(c, o->container, o->rows, o->columns, ret, e);
    if (r >= 0 && o->kind == WIRE_STREAM_LOG) r = control_follow(c, o->container, o->rows, ret, e);
    if (r >= 0 && o->kind == WIRE_STREAM_CONTAINER) r = control_port(c, o, ret, e);
    control_who_done(&c->who);
    free(c);
    return r;
}

/* ---- the start ---- */

/* A change that was interrupted is put right before anybody makes another. */
static void *mend_thread(void *arg) {
    struct control *c = calloc(1, sizeof *c);
    if (!c) abort();
    for (unsigned round = 0;; round++) {
        settle(c);
        pthread_mutex_lock(&self.edit);
        if (*c->socket && !self.is_whole) self.is_whole = control_mend(c);
        if (*c->socket && round % TIDY_EACH == 0) control_tidy(c);
        pthread_mutex_unlock(&self.edit);
        clock_sleep_until(clock_boot_ns() + MEND_AGAIN_NS);
    }
    return NULL;
}

static int listen_at(const struct instance *where, struct error *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[256];
    instance_path(where, path, sizeof path, CONTAINERS_SOCKET);
    if (strlen(path) >= sizeof a.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    unlink(path);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0 || chmod(path, 0666) < 0 || listen(fd, 64) < 0)
        return fail_errno(e, errno, "%s", path);
    self.listener = fd;
    fd = -1;
    return 0;
}

int control_start(const struct instance *where, const struct settings *s, struct error *e) {
    self.where = *where;
    self.settings = *s;
    self.to_main = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self.to_main < 0) return fail_errno(e, errno, "containers");
    streams_on(WIRE_STREAM_EXEC, open_end);
    streams_on(WIRE_STREAM_CONTAINER, open_end);
    streams_on(WIRE_STREAM_LOG, open_end);
    int r = listen_at(where, e);
    if (r >= 0) r = thread_start(listen_thread, NULL, STACK_BYTES, "containers", e);
    return r < 0 ? r : thread_start(mend_thread, NULL, STACK_BYTES, "containers", e);
}

/* Where nothing is bound any more. */
void control_close(void) {
    char root[300];
    snprintf(root, sizeof root, "%s/containers", self.where.dir);
    (void)umount2(root, UMOUNT_NOFOLLOW);
}

void control_reload(const struct settings *s) {
    pthread_mutex_lock(&self.lock);
    self.settings = *s;
    pthread_mutex_unlock(&self.lock);
}
