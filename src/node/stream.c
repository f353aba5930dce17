#include "node/stream.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/owners.h"
#include "node/reach.h"
#include "node/runs.h"
#include "node/ui_port.h"
#include "node/uplink.h"

#define STACK_BYTES (256 * 1024)
#define OPENING_MAX 64
#define CONNECT_MS 3000
#define QUEUE_MAX (1u << 20) /* bytes that wait for the server: beyond this nobody here is read */
#define TICK_MS 500
#define READS_AT_ONCE 4

struct stream {
    uint32_t id;
    bool is_open; /* else it is being opened */
    struct stream_end end;
    struct buf out; /* what the server sent and nobody here has taken yet: at most a window */
    size_t sent;    /* of out */
    uint32_t room;  /* bytes that the server has room for */
    bool is_dry;    /* nothing more was there just now */
    bool is_over;   /* no more will come from here; said */
    bool is_last;   /* no more will come from the server */
    bool is_shut;   /* and that was passed on */
    bool is_deaf;   /* nobody here takes anything any more */
};

/* What a thread is asked to open, and then what came of it. */
struct task {
    struct task *next;
    struct wire_stream_open o;
    stream_open_fn open;
    struct settings settings;
    struct stream_end end;
    uint64_t epoch;
    int result;
    struct error e;
};

static struct {
    struct uplink link;
    char jobs_dir[256], node[64], version[32];
    stream_open_fn open[WIRE_STREAM_KINDS];
    struct stream *of[WIRE_STREAMS_MAX];
    unsigned count, opening;
    uint64_t epoch; /* of the connection: what was asked for over an older one is let go */
    int wake;
    pthread_mutex_t lock; /* guards ready and settings */
    struct task *ready;
    struct settings settings;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- kinds ---- */

void streams_on(enum wire_stream_kind kind, stream_open_fn open) { self.open[kind] = open; }

static int open_run(const struct settings *s, const struct wire_stream_open *o, struct stream_end *ret,
                    struct error *e) {
    char run[OWNERS_NAME], dir[320];
    run_name(&o->key, run);
    snprintf(dir, sizeof dir, "%s/%s", self.jobs_dir, run);
    unsigned port = o->port ? o->port : ui_port_of(dir);
    if (!port) return fail(e, -ENOENT, "job %lld declared no UI, or does not run here", (long long)o->key.job);
    int fd = reach_run(s, run, (uint16_t)port, CONNECT_MS, e);
    ret->fd = fd;
    return fd < 0 ? fd : 0;
}

/* ---- what is said ---- */

static void say_word(enum wire_type type, uint32_t id, uint32_t value) {
    const struct wire_stream_word w = {id, value};
    wire_put_stream_word(&self.link.out, type, &w);
}

static void say_opened(uint32_t id, int result, const char *text) {
    struct wire_stream_opened o = {.id = id, .result = result};
    snprintf(o.text, sizeof o.text, "%s", result < 0 ? text : "");
    wire_put_stream_opened(&self.link.out, &o);
}

/* ---- streams ---- */

static void end_done(struct stream_end *end) {
    fd_done(&end->fd);
    if (end->done) end->done(end->ctx);
}

static struct stream *find(uint32_t id) {
    for (unsigned i = 0; i < self.count; i++)
        if (self.of[i]->id == id) return self.of[i];
    return NULL;
}

static void drop(struct stream *s) {
    for (unsigned i = 0; i < self.count; i++)
        if (self.of[i] == s) self.of[i] = self.of[--self.count];
    if (s->is_open) end_done(&s->end);
    buf_done(&s->out);
    free(s);
}

static void cut(struct stream *s) {
    say_word(WIRE_STREAM_CLOSE, s->id, 0);
    drop(s);
}

static void drop_all(void) {
    while (self.count) drop(self.of[0]);
    self.epoch++;
}

/* True: it is over, and gone. */
static bool is_finished(struct stream *s) {
    if (!s->is_over || !s->is_shut) return false;
    drop(s);
    return true;
}

/* Gives on what the server sent; the server has room for as much again. True: the stream is gone. */
static bool pass_on(struct stream *s) {
    size_t before = s->sent;
    while (s->sent < s->out.len && !s->is_deaf) {
        ssize_t n = send(s->end.fd, s->out.s + s->sent, s->out.len - s->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == ENOTSOCK) n = write(s->end.fd, s->out.s + s->sent, s->out.len - s->sent);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) s->is_deaf = true; /* what it still has to say may come all the same */
        if (n > 0) s->sent += (size_t)n;
    }
    if (s->is_deaf) s->sent = s->out.len;
    if (s->sent > before) say_word(WIRE_STREAM_WINDOW_MORE, s->id, (uint32_t)(s->sent - before));
    if (s->sent < s->out.len) return false;
    buf_clear(&s->out);
    s->sent = 0;
    if (!s->is_last || s->is_shut) return false;
    s->is_shut = true;
    shutdown(s->end.fd, SHUT_WR);
    return is_finished(s);
}

/* Takes what is there, as far as the server has room. True: the stream is gone. */
static bool take_from(struct stream *s) {
    static char piece[WIRE_STREAM_DATA_MAX];
    size_t most = s->room < sizeof piece ? s->room : sizeof piece;
    ssize_t n = read(s->end.fd, piece, most);
    s->is_dry = n < (ssize_t)most;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n > 0) {
        size_t left = s->end.take ? s->end.take(s->end.ctx, piece, (size_t)n) : (size_t)n;
        const struct wire_stream_data d = {s->id, (const uint8_t *)piece, left};
        if (left) wire_put_stream_data(&self.link.out, &d);
        s->room -= (uint32_t)left;
        return false;
    }
    if (n < 0 && errno != EIO) { /* a terminal's last one went: EIO */
        cut(s);
        return true;
    }
    s->is_over = true;
    say_word(WIRE_STREAM_END, s->id, 0);
    return is_finished(s);
}

/* ---- threads that may wait ---- */

static void *do_task(void *arg) {
    struct task *t = arg;
    t->end.fd = -1;
    t->result = t->open(&t->settings, &t->o, &t->end, &t->e);
    pthread_mutex_lock(&self.lock);
    t->next = self.ready;
    self.ready = t;
    pthread_mutex_unlock(&self.lock);
    uint64_t one = 1;
    if (write(self.wake, &one, sizeof one) < 0) return NULL; /* it is readable already */
    return NULL;
}

static struct task *task_new(void) {
    struct task *t = calloc(1, sizeof *t);
    if (!t) abort();
    pthread_mutex_lock(&self.lock);
    t->settings = self.settings;
    pthread_mutex_unlock(&self.lock);
    return t;
}

static int begin_opening(const struct wire_stream_open *o, struct error *e) {
    if (o->kind >= WIRE_STREAM_KINDS || !self.open[o->kind])
        return fail(e, -EOPNOTSUPP, "this machine's gpumgr does not know streams of that kind");
    if (self.count >= WIRE_STREAMS_MAX || self.opening >= OPENING_MAX)
        return fail(e, -EAGAIN, "too many streams at once to this machine");
    struct task *t = task_new();
    t->o = *o;
    t->open = self.open[o->kind];
    t->epoch = self.epoch;
    int r = thread_start(do_task, t, STACK_BYTES, "a stream", e);
    if (r < 0) {
        free(t);
        return r;
    }
    self.opening++;
    struct stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct stream){.id = o->id, .end.fd = -1, .room = WIRE_STREAM_WINDOW};
    self.of[self.count++] = s;
    return 0;
}

static void opened(struct task *t) {
    struct stream *s = t->epoch == self.epoch ? find(t->o.id) : NULL;
    self.opening--;
    if (!s) { /* closed meanwhile */
        if (t->result >= 0) end_done(&t->end);
    } else if (t->result < 0) {
        say_opened(t->o.id, t->result, t->e.text);
        drop(s);
    } else {
        s->end = t->end;
        s->is_open = true;
        say_opened(t->o.id, 0, "");
        (void)pass_on(s); /* what came meanwhile */
    }
    free(t);
}

static void on_wake(void) {
    uint64_t n;
    if (read(self.wake, &n, sizeof n) < 0) return;
    pthread_mutex_lock(&self.lock);
    struct task *t = self.ready;
    self.ready = NULL;
    pthread_mutex_unlock(&self.lock);
    while (t) {
        struct task *next = t->next;
        opened(t);
        t = next;
    }
}

/* ---- what the server says ---- */

static void on_open(const struct wire_frame *f) {
    struct wire_stream_open o;
    struct error e;
    if (wire_get_stream_open(f, &o, &e) < 0 || find(o.id)) return;
    int r = begin_opening(&o, &e);
    if (r < 0) say_opened(o.id, r, e.text);
}

static void on_data(const struct wire_frame *f) {
    struct wire_stream_data d;
    if (wire_get_stream_data(f, &d, NULL) < 0) return;
    struct stream *s = find(d.id);
    if (!s || s->is_last) return;
    if (s->out.len - s->sent + d.len > WIRE_STREAM_WINDOW) { /* more than there was room for */
        cut(s);
        return;
    }
    if (s->sent) {
        memmove(s->out.s, s->out.s + s->sent, s->out.len - s->sent);
        s->out.len -= s->sent;
        s->sent = 0;
    }
    buf_add(&s->out, d.bytes, d.len);
    if (s->is_open) (void)pass_on(s);
}

static void on_word(const struct wire_frame *f) {
    struct wire_stream_word w;
    if (wire_get_stream_word(f, &w, NULL) < 0) return;
    struct stream *s = find(w.id);
    if (!s) return;
    switch (f->type) {
    case WIRE_STREAM_WINDOW_MORE:
        s->room = w.value <= WIRE_STREAM_WINDOW - s->room ? s->room + w.value : s->room;
        break;
    case WIRE_STREAM_END:
        s->is_last = true;
        if (s->is_open) (void)pass_on(s);
        break;
    case WIRE_STREAM_CLOSE: drop(s); break;
    case WIRE_STREAM_SIZE:
        if (s->is_open && s->end.size) s->end.size(s->end.ctx, w.value >> 16, w.value & 0xffff);
        break;
    default: break;
    }
}

static void on_frames(int64_t now_ns) {
    struct wire_frame f;
    while (uplink_next(&self.link, &f, now_ns)) {
        if (f.version != WIRE_VERSION) continue;
        if (f.type == WIRE_STREAM_OPEN)
            on_open(&f);
        else if (f.type == WIRE_STREAM_DATA)
            on_data(&f);
        else if (f.type >= WIRE_STREAM_WINDOW_MORE && f.type <= WIRE_STREAM_SIZE)
            on_word(&f);
    }
}

/* ---- the thread ---- */

static void connected(void) {
    struct wire_stream_hello h = {0};
    drop_all();
    memcpy(h.node, self.node, sizeof h.node);
    memcpy(h.version, self.version, sizeof h.version);
    wire_put_stream_hello(&self.link.out, &h);
}

static struct pollfd poll_for(const struct stream *s) {
    short events = 0;
    if (s->is_open && !s->is_over && s->room && uplink_queued(&self.link) < QUEUE_MAX) events |= POLLIN;
    if (s->is_open && s->sent < s->out.len) events |= POLLOUT;
    return (struct pollfd){.fd = events ? s->end.fd : -1, .events = events};
}

static void on_streams(const struct pollfd *fds, const uint32_t *ids, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        struct stream *s = fds[i].revents ? find(ids[i]) : NULL;
        if (!s || !s->is_open || s->end.fd != fds[i].fd) continue;
        if (fds[i].revents & (POLLOUT | POLLERR) && s->sent < s->out.len && pass_on(s)) continue;
        if (!(fds[i].events & POLLIN) || !(fds[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
        for (int k = 0; k < READS_AT_ONCE && !s->is_over && s->room; k++)
            if (take_from(s) || s->is_dry) break;
    }
}

static void turn(void) {
    static struct pollfd fds[2 + WIRE_STREAMS_MAX];
    static uint32_t ids[WIRE_STREAMS_MAX];
    int64_t now_ns = clock_boot_ns();
    if (uplink_tick(&self.link, now_ns)) connected();
    uplink_flush(&self.link, now_ns);
    if (self.link.state != UPLINK_UP && self.count) drop_all();
    fds[0] = (struct pollfd){.fd = self.wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = self.link.fd, .events = uplink_events(&self.link)};
    unsigned count = self.count;
    for (unsigned i = 0; i < count; i++) {
        fds[2 + i] = poll_for(self.of[i]);
        ids[i] = self.of[i]->id;
    }
    int64_t left_ms = self.link.state == UPLINK_DOWN ? (self.link.try_ns - now_ns) / NS_PER_MS + 1 : TICK_MS;
    if (poll(fds, 2 + count, left_ms < 1 ? 1 : left_ms > TICK_MS ? TICK_MS : (int)left_ms) <= 0) return;
    now_ns = clock_boot_ns();
    if (fds[1].revents) {
        if (uplink_ready(&self.link, fds[1].revents, now_ns)) connected();
        on_frames(now_ns);
    }
    if (fds[0].revents) on_wake();
    on_streams(fds + 2, ids, count);
}

static void *run_thread(void *arg) {
    pthread_setname_np(pthread_self(), "streams");
    clock_be_prompt();
    for (;;) turn();
    return NULL;
}

int streams_start(const struct instance *where, const struct settings *s, const char *version, struct error *e) {
    char path[256];
    self.settings = *s;
    self.open[WIRE_STREAM_RUN] = open_run;
    snprintf(self.jobs_dir, sizeof self.jobs_dir, "%.240s/jobs", where->dir);
    snprintf(self.version, sizeof self.version, "%s", version);
    if (gethostname(self.node, sizeof self.node - 1) < 0 || !self.node[0]) strcpy(self.node, "localhost");
    instance_path(where, path, sizeof path, "server/flow.sock");
    uplink_init(&self.link, path);
    self.link.is_quiet = true;
    self.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self.wake < 0) return fail_errno(e, errno, "eventfd");
    return thread_start(run_thread, NULL, STACK_BYTES, "streams", e);
}

void streams_reload(const struct settings *s) {
    pthread_mutex_lock(&self.lock);
    self.settings = *s;
    pthread_mutex_unlock(&self.lock);
}
