/* A caller on this machine who stays: at a container's log, or at a shell in one. His connection carries the frames of streams
 * (model/wire_stream.h) from then on: STREAM_DATA both ways, STREAM_SIZE from him, STREAM_END with the exit code at last. Windows are
 * not needed: his connection is his alone, and fills up when he does not read. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "node/control_own.h"

#define SESSIONS_MAX 64u
#define SESSIONS_EACH 16u /* of one user */
#define ID 1u             /* there is one stream on it */

static struct {
    pthread_mutex_t lock; /* guards what follows */
    uint32_t uid[SESSIONS_MAX];
    unsigned count;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

int control_session_begin(uint32_t uid, struct error *e) {
    unsigned his = 0;
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.count; i++) his += self.uid[i] == uid;
    bool is_full = self.count >= SESSIONS_MAX || his >= SESSIONS_EACH;
    if (!is_full) self.uid[self.count++] = uid;
    pthread_mutex_unlock(&self.lock);
    return is_full ? fail(e, -EAGAIN, "too many shells and logs are open") : 0;
}

void control_session_end(uint32_t uid) {
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.count; i++)
        if (self.uid[i] == uid) {
            self.uid[i] = self.uid[--self.count];
            break;
        }
    pthread_mutex_unlock(&self.lock);
}

static bool send_all(int fd, const char *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t w = send(fd, bytes + at, n - at, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0 && errno == EAGAIN) { /* what leads into a container does not wait by itself */
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, -1);
            continue;
        }
        if (w <= 0) return false;
        at += (size_t)w;
    }
    return true;
}

/* What the container says. False: no more will come, or nobody hears it. */
static bool to_caller(int fd, struct stream_end *end) {
    static _Thread_local char piece[WIRE_STREAM_DATA_MAX / 4];
    AUTO(buf_done) struct buf out = {0};
    ssize_t n = read(end->fd, piece, sizeof piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n <= 0) return false;
    size_t left = end->take ? end->take(end->ctx, piece, (size_t)n) : (size_t)n;
    if (!left) return true;
    wire_put_stream_data(&out, &(struct wire_stream_data){ID, (const uint8_t *)piece, left});
    return send_all(fd, out.s, out.len);
}

static bool take_frame(const struct wire_frame *f, struct stream_end *end) {
    struct wire_stream_data d;
    struct wire_stream_word w;
    struct error ignored;
    if (f->type == WIRE_STREAM_DATA && wire_get_stream_data(f, &d, &ignored) >= 0)
        return !end->size || send_all(end->fd, (const char *)d.bytes, d.len); /* nobody writes into a log */
    if (f->type != WIRE_STREAM_SIZE || wire_get_stream_word(f, &w, &ignored) < 0) return false;
    if (end->size) end->size(end->ctx, w.value >> 16, w.value & 0xffff);
    return true;
}

/* Keys and sizes. False: he is gone. */
static bool from_caller(int fd, struct buf *in, struct stream_end *end) {
    char piece[16384];
    ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n <= 0) return false;
    buf_add(in, piece, (size_t)n);
    for (;;) {
        struct wire_frame f;
        struct error ignored;
        int r = in->len ? wire_frame(in->s, in->len, &f, &ignored) : 0;
        if (r == 0) return in->len < WIRE_STREAM_DATA_MAX + 4096;
        if (r < 0 || !take_frame(&f, end)) return false;
        memmove(in->s, in->s + r, in->len - (size_t)r);
        in->len -= (size_t)r;
    }
}

void control_session(int fd, struct stream_end *end) {
    AUTO(buf_done) struct buf in = {0}, out = {0};
    struct timeval for_ever = {0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof for_ever);
    bool is_here = true, is_on = true;
    while (is_here && is_on) {
        struct pollfd p[] = {
            {.fd = fd,      .events = POLLIN},
            {.fd = end->fd, .events = POLLIN},
        };
        if (poll(p, 2, -1) < 0) continue;
        if (p[0].revents) is_here = from_caller(fd, &in, end);
        if (is_here && p[1].revents) is_on = to_caller(fd, end);
    }
    if (is_here) {
        int code = end->code ? end->code(end->ctx) : 0;
        wire_put_stream_word(&out, WIRE_STREAM_END, &(struct wire_stream_word){ID, (uint32_t)code});
        (void)send_all(fd, out.s, out.len);
    }
    close(end->fd);
    if (end->done) end->done(end->ctx);
}
