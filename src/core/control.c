#include "core/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"

int control_listen(const char *path, int *ret_fd, struct error *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: too long for a socket; give a shorter --dir", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    unlink(path);
    mode_t before = umask(0177);
    int bound = bind(fd, (const struct sockaddr *)&at, sizeof at);
    umask(before);
    if (bound < 0 || listen(fd, 64) < 0) return fail_errno(e, errno, "%s", path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static bool is_allowed(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0) return false;
    return peer.uid == 0 || peer.uid == geteuid();
}

static void refuse(struct control_reply *a, int code, const char *why) {
    a->result = code;
    snprintf(a->text, sizeof a->text, "%s", why);
}

static void answer(int fd, const struct control_verb_row verbs[CONTROL_VERBS], void *ctx) {
    struct control_request q = {0};
    struct control_reply a = {.magic = CONTROL_MAGIC};
    ssize_t n = recv(fd, &q, sizeof q, MSG_TRUNC); /* with its true length: a longer message is not ours either */
    if (n < 0) return;                             /* silent for too long */
    if (!is_allowed(fd))
        refuse(&a, -EPERM, "only root and the owner of this gpumgr may ask");
    else if (n != sizeof q || q.magic != CONTROL_MAGIC || q.verb >= CONTROL_VERBS || !verbs[q.verb].run)
        refuse(&a, -EINVAL, "no such message");
    else
        verbs[q.verb].run(ctx, &q, &a);
    (void)!send(fd, &a, sizeof a, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void control_serve(int listener, const struct control_verb_row verbs[CONTROL_VERBS], void *ctx) {
    AUTO(fd_done) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    const struct timeval patience = {.tv_usec = 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    answer(fd, verbs, ctx);
}
