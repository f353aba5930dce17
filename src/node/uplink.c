#include "node/uplink.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define FIRST_PAUSE_NS (100 * NS_PER_MS)
#define LONGEST_PAUSE_NS (2 * NS_PER_S) /* well within what the ring keeps */
#define CONNECT_NS (5 * NS_PER_S)
#define STUCK_NS (30 * NS_PER_S) /* he takes nothing for so long: perhaps another one would */
#define KEEP_BYTES 65536         /* a buffer that has grown beyond this is given back when it is empty */

void uplink_init(struct uplink *u, const char *path) {
    memset(u, 0, sizeof *u);
    snprintf(u->path, sizeof u->path, "%s", path);
    u->fd = -1;
    u->jitter = (uint64_t)clock_boot_ns() ^ (uint64_t)getpid() << 32;
}

static void drop(struct uplink *u) {
    if (u->fd >= 0) close(u->fd);
    u->fd = -1;
    u->sent = 0;
    buf_done(&u->out);
    wire_stream_done(&u->in);
    u->state = UPLINK_DOWN;
}

void uplink_done(struct uplink *u) { drop(u); }

size_t uplink_queued(const struct uplink *u) { return u->out.len - u->sent; }

/* Doubling, and then between half and all of it: a hundred nodes do not come back in step. */
static int64_t pause_ns(struct uplink *u) {
    int64_t most_ns = FIRST_PAUSE_NS << (u->failures < 5 ? u->failures : 5);
    if (most_ns > LONGEST_PAUSE_NS) most_ns = LONGEST_PAUSE_NS;
    u->jitter = u->jitter * 6364136223846793005ull + 1442695040888963407ull;
    return most_ns / 2 + (int64_t)((u->jitter >> 33) % (uint64_t)(most_ns / 2));
}

void uplink_close(struct uplink *u, int64_t now_ns, const char *why) {
    if (u->state == UPLINK_UP && now_ns - u->since_ns > 10 * NS_PER_S) u->failures = 0;
    if (why && u->state == UPLINK_UP && !u->is_quiet)
        log_line(LOG_WARN, "link_down", -1, "the server is gone: %s", why);
    drop(u);
    u->try_ns = now_ns + pause_ns(u);
    u->failures++;
}

/* Whoever listens there must be whom the directory belongs to: else it is somebody else's server. */
static bool is_trusted(const struct uplink *u) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    struct stat st;
    char dir[sizeof u->path];
    snprintf(dir, sizeof dir, "%s", u->path);
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    if (getsockopt(u->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || stat(dir, &st) < 0) return false;
    return peer.uid == 0 || peer.uid == geteuid() || peer.uid == st.st_uid;
}

static bool is_made(struct uplink *u, int64_t now_ns) {
    if (!is_trusted(u)) {
        uplink_close(u, now_ns, NULL);
        log_line(LOG_ERROR, "link", -1, "%s: whoever listens there is not this instance's server", u->path);
        return false;
    }
    u->state = UPLINK_UP;
    u->since_ns = u->moved_ns = now_ns;
    return true;
}

static bool try_connect(struct uplink *u, int64_t now_ns) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", u->path);
    u->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (u->fd < 0) {
        uplink_close(u, now_ns, NULL);
        return false;
    }
    u->since_ns = now_ns;
    if (connect(u->fd, (const struct sockaddr *)&to, sizeof to) == 0) return is_made(u, now_ns);
    if (errno == EINPROGRESS) {
        u->state = UPLINK_CONNECTING;
        return false;
    }
    uplink_close(u, now_ns, NULL); /* no server, or one that is too busy to accept: EAGAIN */
    return false;
}

bool uplink_tick(struct uplink *u, int64_t now_ns) {
    if (u->state == UPLINK_DOWN && now_ns >= u->try_ns) return try_connect(u, now_ns);
    if (u->state == UPLINK_CONNECTING && now_ns - u->since_ns > CONNECT_NS) uplink_close(u, now_ns, NULL);
    if (u->state == UPLINK_UP && uplink_queued(u) && now_ns - u->moved_ns > STUCK_NS)
        uplink_close(u, now_ns, "it takes nothing any more");
    return false;
}

short uplink_events(const struct uplink *u) {
    if (u->state == UPLINK_DOWN) return 0;
    if (u->state == UPLINK_CONNECTING) return POLLOUT;
    return (short)(POLLIN | (uplink_queued(u) ? POLLOUT : 0));
}

void uplink_flush(struct uplink *u, int64_t now_ns) {
    if (u->state != UPLINK_UP) return;
    while (uplink_queued(u)) {
        ssize_t n = send(u->fd, u->out.s + u->sent, uplink_queued(u), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0) {
            uplink_close(u, now_ns, strerror(errno));
            return;
        }
        u->sent += (size_t)n;
        u->moved_ns = now_ns;
    }
    if (uplink_queued(u)) {
        if (u->sent < KEEP_BYTES || u->sent < u->out.len / 2) return;
        memmove(u->out.s, u->out.s + u->sent, uplink_queued(u)); /* one who is never done must not grow for ever */
        u->out.len -= u->sent;
        u->sent = 0;
        return;
    }
    u->sent = 0;
    u->moved_ns = now_ns;
    if (u->out.cap > KEEP_BYTES)
        buf_done(&u->out);
    else
        buf_clear(&u->out);
}

static void receive(struct uplink *u, int64_t now_ns) {
    char piece[65536];
    ssize_t n = recv(u->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n > 0)
        wire_stream_add(&u->in, piece, (size_t)n);
    else if (n == 0)
        uplink_close(u, now_ns, "it closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
        uplink_close(u, now_ns, strerror(errno));
}

bool uplink_ready(struct uplink *u, short events, int64_t now_ns) {
    if (u->state == UPLINK_CONNECTING && events) {
        int errnum = 0;
        socklen_t n = sizeof errnum;
        if (getsockopt(u->fd, SOL_SOCKET, SO_ERROR, &errnum, &n) == 0 && errnum == 0) return is_made(u, now_ns);
        uplink_close(u, now_ns, NULL);
        return false;
    }
    if (u->state == UPLINK_UP && (events & (POLLIN | POLLHUP | POLLERR))) receive(u, now_ns);
    if (u->state == UPLINK_UP && (events & POLLOUT)) uplink_flush(u, now_ns);
    return false;
}

int uplink_next(struct uplink *u, struct wire_frame *ret, int64_t now_ns) {
    struct error e;
    if (u->state != UPLINK_UP) return 0;
    int r = wire_stream_next(&u->in, ret, &e);
    if (r < 0) uplink_close(u, now_ns, e.text);
    return r > 0;
}
