/* Requests are answered at once and from one thread; a client that does not read loses what it does not read. */
#include "sim/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "sim/commands.h"
#include "sim/settings.h"

static void drop(struct server *s, struct connection *c) {
    if (c->fd <= 0) return;
    if (c->task) tasks_remove(&s->machine->tasks, c->task);
    free(c->types);
    close(c->fd);
    *c = (struct connection){0};
}

static bool may_set(const struct connection *c) { return c->uid == 0 || c->uid == geteuid(); }

/* False when it could not be sent: the caller decides whether that matters. */
static bool tell(struct connection *c, const struct wire_reply *r) {
    size_t size = offsetof(struct wire_reply, text) + strnlen(r->text, sizeof r->text - 1) + 1;
    return send(c->fd, r, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static struct connection *owner_of(struct server *s, const struct task *t) {
    struct connection *c = &s->conn[t->owner];
    return c->fd > 0 && c->task == t ? c : NULL;
}

static void on_event(void *self, uint32_t gpu, uint64_t type, uint64_t value) {
    struct server *s = self;
    struct wire_reply r = {.verb = VERB_EVENT};
    r.event = (struct wire_event){.gpu = gpu, .type = type, .value = value, .gi = UINT32_MAX, .ci = UINT32_MAX};
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &s->conn[i];
        if (c->fd > 0 && c->types && c->types[gpu] & type) tell(c, &r);
    }
}

static void on_xid(void *self, uint32_t gpu, uint32_t code, uint32_t pid, const char *name, const char *rest) {
    struct server *s = self;
    kmsg_xid(s->kmsg, &s->machine->card[gpu], code, pid, name, rest);
}

static void on_driver(void *self) {
    struct server *s = self;
    if (s->machine->driver == SHM_DRIVER_DOWN) kmsg_line(s->kmsg, 6, "NVRM: unloading the simulated kernel module");
    if (s->machine->driver == SHM_DRIVER_UP)
        kmsg_line(s->kmsg, 6, "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04");
}

static void on_evict(void *self, struct task *t, int code, const char *why) {
    struct server *s = self;
    struct connection *c = owner_of(s, t);
    if (!c) return;
    struct wire_reply r = {.verb = VERB_TASK_DONE, .code = code};
    snprintf(r.text, sizeof r.text, "%s", why);
    tell(c, &r);
    drop(s, c);
}

/* Listens under another name first, so that a socket that can be seen can be connected to. The directory is reached through
 * its descriptor: sun_path holds 107 characters, directories of tests and containers are often deeper. */
static int listen_on(struct server *s, const char *dir, struct error *e) {
    AUTO(fd_done) int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) return fail_errno(e, errno, "open %s", dir);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" SHM_SOCKET ".new", dir_fd);
    s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listen_fd < 0) return fail_errno(e, errno, "socket");
    unlinkat(dir_fd, SHM_SOCKET ".new", 0);
    if (bind(s->listen_fd, (struct sockaddr *)&at, sizeof at) < 0) return fail_errno(e, errno, "bind %s", s->path);
    /* Anyone may look and run tasks, as on a real card; who may change things is asked of SO_PEERCRED. */
    if (fchmodat(dir_fd, SHM_SOCKET ".new", 0666, 0) < 0) return fail_errno(e, errno, "chmod %s", s->path);
    if (listen(s->listen_fd, 128) < 0) return fail_errno(e, errno, "listen on %s", s->path);
    if (renameat(dir_fd, SHM_SOCKET ".new", dir_fd, SHM_SOCKET) < 0) return fail_errno(e, errno, "rename %s", s->path);
    return 0;
}

int server_open(struct server *s, const char *dir, int epoll_fd, struct error *e) {
    s->listen_fd = -1;
    s->epoll_fd = epoll_fd;
    snprintf(s->path, sizeof s->path, "%s/" SHM_SOCKET, dir);
    s->machine->listener =
        (struct listener){.event = on_event, .xid = on_xid, .driver = on_driver, .evict = on_evict, .self = s};
    int r = listen_on(s, dir, e);
    if (r < 0) return r;
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = SERVER_LISTEN};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &ev) < 0) return fail_errno(e, errno, "epoll");
    return 0;
}

void server_close(struct server *s) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) drop(s, &s->conn[i]);
    if (s->listen_fd <= 0) return;
    close(s->listen_fd);
    unlink(s->path);
    s->listen_fd = -1;
}

void server_accept(struct server *s) {
    for (;;) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        uint32_t i = 0;
        while (i < CONNECTIONS_MAX && s->conn[i].fd > 0) i++;
        struct ucred who;
        socklen_t size = sizeof who;
        struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)i << 8 | SERVER_CLIENT};
        bool good = i < CONNECTIONS_MAX && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
                    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0;
        if (!good) {
            close(fd);
            continue;
        }
        s->conn[i] = (struct connection){.fd = fd, .pid = (uint32_t)who.pid, .uid = who.uid};
    }
}

static void ask_hello(struct server *s, struct connection *c, const struct wire_request *q, struct wire_reply *r) {
    (void)s;
    (void)q;
    r->hello = (struct wire_hello){.version = WIRE_VERSION, .pid = c->pid, .uid = c->uid, .may_set = may_set(c)};
}

static void ask_set(struct server *s, struct connection *c, const struct wire_request *q, struct wire_reply *r) {
    bool is_allowed = may_set(c) || settings_are_free(s->machine, q->gpu, &q->set);
    r->code = is_allowed ? settings_apply(s->machine, q->gpu, &q->set) : CODE_NO_PERMISSION;
}

static void ask_task(struct server *s, struct connection *c, const struct wire_request *q, struct wire_reply *r) {
    if (c->task) {
        r->code = CODE_INVALID;
        snprintf(r->text, sizeof r->text, "this connection is a task already");
        return;
    }
    r->code = machine_start(s->machine, &q->task, c->pid, c->uid, &c->task, r->text);
    if (r->code == CODE_OK) r->started.boot_ns = clock_boot_ns();
    if (c->task) c->task->owner = (uint64_t)(c - s->conn);
}

static void ask_subscribe(struct server *s, struct connection *c, const struct wire_request *q, struct wire_reply *r) {
    (void)s;
    if (!c->types) c->types = calloc(1, sizeof q->subscribe.types);
    if (c->types)
        memcpy(c->types, q->subscribe.types, sizeof q->subscribe.types);
    else
        r->code = CODE_MEMORY;
}

static void ask_command(struct server *s, struct connection *c, const struct wire_request *q, struct wire_reply *r) {
    AUTO(buf_done) struct buf out = {0};
    char line[sizeof q->command];
    memcpy(line, q->command, sizeof line);
    line[sizeof line - 1] = '\0';
    r->code = commands_run(s->machine, s->children, may_set(c), line, &out);
    snprintf(r->text, sizeof r->text, "%s", out.s ? out.s : "");
}

static void (*const verbs[])(struct server *, struct connection *, const struct wire_request *, struct wire_reply *) = {
    [VERB_HELLO] = ask_hello,         [VERB_SET] = ask_set,         [VERB_TASK] = ask_task,
    [VERB_SUBSCRIBE] = ask_subscribe, [VERB_COMMAND] = ask_command,
};

void server_receive(struct server *s, uint32_t id) {
    struct connection *c = &s->conn[id];
    if (c->fd <= 0) return;
    struct wire_request q;
    ssize_t n = recv(c->fd, &q, sizeof q, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    bool known = n == sizeof q && q.verb < sizeof verbs / sizeof *verbs && verbs[q.verb];
    if (!known) {
        drop(s, c);
        return;
    }
    struct wire_reply r = {.verb = q.verb};
    verbs[q.verb](s, c, &q, &r);
    /* A command can end this very connection's task, and with it the connection. */
    if (c->fd > 0 && !tell(c, &r)) drop(s, c);
}

void server_settle(struct server *s) {
    struct machine *m = s->machine;
    for (unsigned i = 0; i < m->tasks.high; i++) {
        struct task *t = &m->tasks.slot[i];
        if (!t->used || !t->done) continue;
        struct connection *c = owner_of(s, t);
        if (c) {
            struct wire_reply r = {.verb = VERB_TASK_DONE};
            r.done = (struct wire_done){t->ended_s - t->began_s, m->now_s - t->ended_s, t->ask.work_s};
            tell(c, &r);
            c->task = NULL;
        }
        tasks_remove(&m->tasks, t);
    }
}
