/* Connect, send a packet, wait for a packet. See wire.h for what the packets mean. */
#include "sim/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* sun_path holds 107 characters; a deeper directory is reached through its descriptor. */
static int socket_address(const char *dir, struct sockaddr_un *ret, int *ret_dirfd) {
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_dirfd = -1;
    if ((size_t)snprintf(ret->sun_path, sizeof ret->sun_path, "%s/" SHM_SOCKET, dir) < sizeof ret->sun_path) return 0;
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/" SHM_SOCKET, fd);
    *ret_dirfd = fd;
    return 0;
}

int client_open(const char *dir) {
    struct sockaddr_un to;
    int dirfd;
    int r = socket_address(dir, &to, &dirfd);
    if (r < 0) return r;

    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    r = fd < 0 ? -errno : connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ? -errno : fd;
    if (r < 0 && fd >= 0) close(fd);
    if (dirfd >= 0) close(dirfd);
    return r;
}

void client_close(int fd) {
    if (fd >= 0) close(fd);
}

static int wait_readable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int r;
    do r = poll(&p, 1, timeout_ms);
    while (r < 0 && errno == EINTR && timeout_ms < 0);
    return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

int client_receive(int fd, struct wire_reply *ret, int timeout_ms) {
    int r = wait_readable(fd, timeout_ms);
    if (r < 0) return r;
    ssize_t n = recv(fd, ret, sizeof *ret, MSG_DONTWAIT);
    if (n < 0) return -errno;
    if ((size_t)n <= offsetof(struct wire_reply, text)) return n == 0 ? -EPIPE : -EPROTO;
    ((char *)ret)[n - 1] = '\0';
    return 0;
}

int client_ask(int fd, const struct wire_request *q, struct wire_reply *ret, int timeout_ms) {
    if (send(fd, q, sizeof *q, MSG_NOSIGNAL) < 0) return -errno;
    return client_receive(fd, ret, timeout_ms);
}

int client_once(const char *dir, const struct wire_request *q, struct wire_reply *ret) {
    int fd = client_open(dir);
    if (fd < 0) return fd;
    int r = client_ask(fd, q, ret, 5000);
    client_close(fd);
    return r;
}
