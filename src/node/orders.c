#include "node/orders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "model/control.h"
#include "node/session.h"

#define PATIENCE_NS (3 * NS_PER_S)

/* One question to one sampler. An order for all GPUs is one question to each; its result is the first failure. */
struct question {
    int fd; /* 0: free */
    uint64_t id;
    int64_t until_ns;
    struct wire_order_result worst; /* what another question of this order came to, when that was a failure */
};

static struct {
    struct instance where;
    struct question question[ORDERS_MAX];
} self;

void orders_init(const struct instance *where) { self.where = *where; }

static void say(struct uplink *u, const struct wire_order_result *r, int64_t now_ns) {
    if (u->state != UPLINK_UP) return;
    wire_put_order_result(&u->out, r);
    uplink_flush(u, now_ns);
}

static void refuse(struct uplink *u, uint64_t id, int code, const char *why, int64_t now_ns) {
    struct wire_order_result r = {.id = id, .result = code};
    snprintf(r.text, sizeof r.text, "%s", why);
    say(u, &r, now_ns);
}

static bool passes(uint32_t verb) {
    return verb == CONTROL_LOOK || verb == CONTROL_GUARD_SET || verb == CONTROL_GUARD_CONFIRM ||
           verb == CONTROL_GUARD_RESTORE;
}

static struct question *free_question(void) {
    for (unsigned i = 0; i < ORDERS_MAX; i++)
        if (!self.question[i].fd) return &self.question[i];
    return NULL;
}

static struct question *another_of(uint64_t id) {
    for (unsigned i = 0; i < ORDERS_MAX; i++)
        if (self.question[i].fd && self.question[i].id == id) return &self.question[i];
    return NULL;
}

static int ask(unsigned worker, const struct wire_order *o, int64_t index, int64_t now_ns) {
    struct question *q = free_question();
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char path[256];
    if (!q) return -EBUSY;
    instance_path(&self.where, path, sizeof path, "sampler.%u.sock", worker);
    if (strlen(path) >= sizeof to.sun_path) return -ENAMETOOLONG;
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) return -errno;
    struct control_request request = {.magic = CONTROL_MAGIC, .verb = o->verb, .argument = {index}};
    memcpy(request.argument + 1, o->value, sizeof o->value);
    if (send(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof request) return -errno;
    *q = (struct question){.fd = fd, .id = o->id, .until_ns = now_ns + PATIENCE_NS};
    fd = -1;
    return 0;
}

static int ask_all(const struct wire_order *o, int64_t now_ns) {
    int r = 0;
    for (unsigned w = 0; w < session_workers() && r >= 0; w++) r = ask(w, o, -1, now_ns);
    for (struct question *q; r < 0 && (q = another_of(o->id));) { /* refused as a whole: nobody waits for the rest */
        close(q->fd);
        *q = (struct question){0};
    }
    return r;
}

void orders_take(struct uplink *u, const struct wire_frame *f, int64_t now_ns) {
    struct wire_order o;
    struct error e;
    unsigned worker;
    int32_t index;
    int r;
    if (wire_get_order(f, &o, &e) < 0) {
        uplink_close(u, now_ns, e.text);
        return;
    }
    if (!passes(o.verb)) {
        refuse(u, o.id, -EPERM, "this is not for a server to ask", now_ns);
        return;
    }
    if (!o.uuid[0] && o.verb != CONTROL_LOOK && o.verb != CONTROL_GUARD_RESTORE) {
        refuse(u, o.id, -EINVAL, "no GPU is named", now_ns);
        return;
    }
    if (o.uuid[0] && !session_find(o.uuid, &worker, &index)) {
        refuse(u, o.id, -ENODEV, "there is no such GPU on this machine now", now_ns);
        return;
    }
    log_line(LOG_INFO, "order", -1, "the server asks: verb %u for %s", o.verb, o.uuid[0] ? o.uuid : "all GPUs");
    r = o.uuid[0] ? ask(worker, &o, index, now_ns) : ask_all(&o, now_ns);
    if (r == -EBUSY)
        refuse(u, o.id, r, "too many orders wait for an answer", now_ns);
    else if (r < 0)
        refuse(u, o.id, -EHOSTDOWN, "the sampler does not listen now", now_ns);
}

unsigned orders_poll(struct pollfd *fds) {
    unsigned n = 0;
    for (unsigned i = 0; i < ORDERS_MAX; i++)
        if (self.question[i].fd) fds[n++] = (struct pollfd){.fd = self.question[i].fd, .events = POLLIN};
    return n;
}

static void settle(struct uplink *u, struct question *q, const struct wire_order_result *r, int64_t now_ns) {
    struct wire_order_result all = q->worst.result < 0 ? q->worst : *r;
    close(q->fd);
    *q = (struct question){0};
    struct question *other = another_of(r->id);
    if (!other)
        say(u, &all, now_ns);
    else if (all.result < 0)
        other->worst = all;
}

static void answered(struct uplink *u, struct question *q, int64_t now_ns) {
    struct control_reply a = {0};
    struct wire_order_result r = {.id = q->id};
    ssize_t n = recv(q->fd, &a, sizeof a, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    a.text[sizeof a.text - 1] = 0;
    if (n != (ssize_t)sizeof a || a.magic != CONTROL_MAGIC) {
        r.result = -EHOSTDOWN;
        snprintf(r.text, sizeof r.text, "the sampler went away");
    } else {
        r.result = a.result < 0 ? a.result : 0;
        r.value = a.value;
        snprintf(r.text, sizeof r.text, "%s", a.text);
    }
    settle(u, q, &r, now_ns);
}

void orders_ready(struct uplink *u, const struct pollfd *fds, unsigned n, int64_t now_ns) {
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; fds[k].revents && i < ORDERS_MAX; i++)
            if (self.question[i].fd == fds[k].fd) answered(u, &self.question[i], now_ns);
}

void orders_tick(struct uplink *u, int64_t now_ns) {
    for (unsigned i = 0; i < ORDERS_MAX; i++) {
        struct question *q = &self.question[i];
        if (!q->fd || now_ns < q->until_ns) continue;
        struct wire_order_result r = {.id = q->id, .result = -ETIMEDOUT, .text = "the sampler does not answer"};
        settle(u, q, &r, now_ns);
    }
}

void orders_drop(void) {
    for (unsigned i = 0; i < ORDERS_MAX; i++) {
        if (self.question[i].fd) close(self.question[i].fd);
        self.question[i] = (struct question){0};
    }
}
