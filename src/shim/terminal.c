#include "shim/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"

#define NAME "pty"
#define SEND_BYTES (1 << 20) /* what waits for whoever sits there */

static int open_pair(struct terminal *t, uid_t uid, struct error *e) {
    const struct winsize usual = {.ws_row = 24, .ws_col = 80};
    char name[64];
    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (t->master < 0 || grantpt(t->master) < 0 || unlockpt(t->master) < 0 ||
        ptsname_r(t->master, name, sizeof name) != 0)
        return fail_errno(e, errno, "a terminal");
    t->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->slave < 0) return fail_errno(e, errno, "%s", name);
    ioctl(t->slave, TIOCSWINSZ, &usual);
    if (geteuid() == 0 && fchown(t->slave, uid, (gid_t)-1) < 0) return fail_errno(e, errno, "%s", name);
    return 0;
}

int terminal_open(struct terminal *t, uid_t uid, gid_t gid, struct error *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = NAME};
    t->master = t->slave = t->listener = -1;
    t->uid = uid;
    for (int i = 0; i < TERMINAL_SEATS; i++) t->seat[i].fd = -1;
    int r = open_pair(t, uid, e);
    if (r < 0) return r;
    unlink(NAME);
    t->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->listener < 0 || bind(t->listener, (const struct sockaddr *)&at, sizeof at) < 0 || chmod(NAME, 0600) < 0 ||
        (geteuid() == 0 && lchown(NAME, uid, gid) < 0) || listen(t->listener, TERMINAL_SEATS) < 0)
        return fail_errno(e, errno, "a socket for the terminal");
    return 0;
}

void terminal_poll(const struct terminal *t, struct pollfd *fds) {
    bool is_full = true;
    for (int i = 0; i < TERMINAL_SEATS; i++) {
        is_full &= t->seat[i].fd >= 0;
        fds[i] = (struct pollfd){.fd = t->seat[i].fd, .events = POLLIN};
    }
    fds[TERMINAL_SEATS] = (struct pollfd){.fd = is_full ? -1 : t->listener, .events = POLLIN};
}

static void leave(struct terminal_seat *s) {
    fd_done(&s->fd);
    s->got = 0;
}

static void sit_down(struct terminal *t) {
    struct ucred who;
    socklen_t n = sizeof who;
    int size = SEND_BYTES;
    AUTO(fd_done) int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0) return;
    if (who.uid != t->uid && who.uid != 0) return;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    for (int i = 0; i < TERMINAL_SEATS; i++) {
        if (t->seat[i].fd >= 0) continue;
        t->seat[i] = (struct terminal_seat){.fd = fd};
        fd = -1;
        return;
    }
}

static unsigned number(const uint8_t *p) { return p[0] | (unsigned)p[1] << 8; }

static void typed(struct terminal *t, uint8_t kind, const uint8_t *bytes, unsigned len) {
    if (kind == JOBS_PTY_BYTES) (void)!write(t->master, bytes, len); /* a full terminal drops what is typed */
    if (kind != JOBS_PTY_SIZE || len < 4) return;
    const struct winsize ws = {.ws_row = (unsigned short)number(bytes), .ws_col = (unsigned short)number(bytes + 2)};
    if (ws.ws_row && ws.ws_col) ioctl(t->master, TIOCSWINSZ, &ws);
}

/* Whole records (model/jobs_socket.h) out of what came; false: this is not how one speaks here. */
static bool take_pieces(struct terminal *t, struct terminal_seat *s) {
    while (s->got >= JOBS_PTY_HEAD) {
        unsigned len = number(s->piece + 2), whole = JOBS_PTY_HEAD + len;
        if (len > JOBS_PTY_MOST || s->piece[0] > JOBS_PTY_SIZE) return false;
        if (s->got < whole) return true;
        typed(t, s->piece[0], s->piece + JOBS_PTY_HEAD, len);
        memmove(s->piece, s->piece + whole, s->got - whole);
        s->got -= whole;
    }
    return true;
}

static void listen_to(struct terminal *t, struct terminal_seat *s) {
    ssize_t n = recv(s->fd, s->piece + s->got, sizeof s->piece - s->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) s->got += (unsigned)n;
    if (n <= 0 || !take_pieces(t, s)) leave(s);
}

void terminal_ready(struct terminal *t, const struct pollfd *fds) {
    for (int i = 0; i < TERMINAL_SEATS; i++)
        if (fds[i].revents && t->seat[i].fd == fds[i].fd && fds[i].fd >= 0) listen_to(t, &t->seat[i]);
    if (fds[TERMINAL_SEATS].revents) sit_down(t);
}

void terminal_show(struct terminal *t, const char *bytes, size_t n) {
    for (int i = 0; i < TERMINAL_SEATS; i++) {
        if (t->seat[i].fd < 0) continue;
        if (send(t->seat[i].fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n) leave(&t->seat[i]);
    }
}

void terminal_close(struct terminal *t) {
    for (int i = 0; i < TERMINAL_SEATS; i++) leave(&t->seat[i]);
    if (t->listener >= 0) unlink(NAME);
    fd_done(&t->listener);
    fd_done(&t->slave);
    fd_done(&t->master);
}
