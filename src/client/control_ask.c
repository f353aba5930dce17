#include "client/control_ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"

enum { PATIENCE_MS = 1000 };

_Static_assert(CONTROL_ARGUMENTS == ARRAY_LEN(((struct control_request *)0)->argument), "as many as a message has");

static int refused(const struct instance *i, const char *path, int errnum, struct error *e) {
    if (errnum == EACCES || errnum == EPERM)
        return fail(e, -EPERM, "only root and the owner of this gpumgr (uid %u) may ask its sampler",
                    (unsigned)i->owner);
    return fail_errno(e, errnum, "the sampler cannot be asked: %s", path);
}

int control_ask(const struct instance *i, unsigned worker, enum control_verb verb, const int64_t *argument,
                struct control_reply *ret, struct error *e) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char path[256];
    instance_path(i, path, sizeof path, "sampler.%u.sock", worker);
    if (strlen(path) >= sizeof to.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno(e, errno, "socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return refused(i, path, errno, e);
    struct control_request q = {.magic = CONTROL_MAGIC, .verb = (uint32_t)verb};
    if (argument) memcpy(q.argument, argument, sizeof q.argument);
    if (send(fd, &q, sizeof q, MSG_NOSIGNAL) != (ssize_t)sizeof q) return fail_errno(e, errno, "%s", path);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, PATIENCE_MS) <= 0) return fail(e, -ETIMEDOUT, "%s: the sampler does not answer", path);
    ssize_t n = recv(fd, ret, sizeof *ret, 0);
    if (n != (ssize_t)sizeof *ret || ret->magic != CONTROL_MAGIC)
        return fail(e, -EPROTO, "%s: refused, or not an answer of gpumgr's sampler", path);
    ret->text[sizeof ret->text - 1] = 0;
    if (ret->result < 0) return fail(e, ret->result, "the sampler: %s", ret->text);
    return 0;
}
