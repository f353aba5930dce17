#include "node/docker_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_scan.h"
#include "net/http_reader.h"

#define ANSWER_MAX (4u << 20)
#define HEAD_MAX 16384u

int docker_first(const char *engines, char *ret, size_t room, struct error *e) {
    size_t n = strcspn(engines, ",");
    if (!n || n >= room) return fail(e, -ENOENT, "no container engine is set (engines.docker)");
    snprintf(ret, room, "%.*s", (int)n, engines);
    return 0;
}

static int dial(const char *path, int timeout_s, struct error *e) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = timeout_s};
    if (strlen(path) >= sizeof to.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno(e, errno, "a socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        return fail_errno(e, errno, "the container engine at %s", path);
    int taken = fd;
    fd = -1;
    return taken;
}

static int send_all(int fd, const struct buf *text, struct error *e) {
    for (size_t at = 0; at < text->len;) {
        ssize_t w = send(fd, text->s + at, text->len - at, MSG_NOSIGNAL);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return fail_errno(e, errno, "the container engine");
        at += (size_t)w;
    }
    return 0;
}

/* Behind a blank or an end of line in the target another request could begin, which nobody here has looked at. */
static bool is_target(const char *target) {
    for (; *target; target++)
        if ((unsigned char)*target <= ' ' || (unsigned char)*target >= 0x7f) return false;
    return true;
}

static int say(int fd, const char *method, const char *target, const char *more, const char *body, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    size_t n = body ? strlen(body) : 0;
    if (!is_target(target)) return fail(e, -EINVAL, "this cannot be asked of a container engine");
    buf_printf(&text, "%s %s HTTP/1.1\r\nHost: engine\r\nUser-Agent: gpumgr\r\n%s", method, target, more);
    if (body) buf_puts(&text, "Content-Type: application/json\r\n");
    buf_printf(&text, "Content-Length: %zu\r\n\r\n%s", n, body ? body : "");
    return send_all(fd, &text, e);
}

static ssize_t hear(int fd, char *to, size_t room, struct error *e) {
    for (;;) {
        ssize_t n = recv(fd, to, room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(e, errno == EAGAIN ? ETIMEDOUT : errno, "the container engine");
        return n;
    }
}

int docker_ask(const char *socket, const char *method, const char *target, const char *body, int timeout_s,
               struct buf *answer, struct error *e) {
    struct http_reader reader = {0};
    char piece[16384];
    buf_clear(answer);
    AUTO(fd_done) int fd = dial(socket, timeout_s, e);
    int r = fd < 0 ? fd : say(fd, method, target, "Connection: close\r\n", body, e);
    while (r >= 0 && reader.stage != HTTP_READER_WHOLE) {
        ssize_t n = hear(fd, piece, sizeof piece, e);
        if (n < 0) r = (int)n;
        if (n == 0) {
            r = http_reader_end(&reader, e);
            if (r < 0) r = fail_in(e, r, "the container engine");
            break;
        }
        if (n > 0 && http_reader_take(&reader, piece, (size_t)n, ANSWER_MAX, answer, e) < 0) r = e->code;
    }
    int status = reader.status;
    http_reader_done(&reader);
    buf_puts(answer, "");
    return r < 0 ? r : status;
}

struct complaint {
    char *to;
    size_t room;
};

static void find_message(void *ctx, const struct json_scan_value *v) {
    struct complaint *c = ctx;
    if (json_scan_is(v, 1, "message") || json_scan_is(v, 1, "error")) snprintf(c->to, c->room, "%s", v->text);
}

void docker_complaint(const struct buf *answer, int status, char *ret, size_t room) {
    struct complaint c = {ret, room};
    snprintf(ret, room, "status %d", status);
    (void)!json_scan(answer->s, answer->len, find_message, &c, NULL);
}

/* After the head the connection is the container's: no HTTP any more. */
int docker_attach(const char *socket, const char *name, struct buf *rest, struct error *e) {
    char target[200], piece[4096];
    AUTO(buf_done) struct buf head = {0};
    snprintf(target, sizeof target, "/containers/%s/attach?stream=1&stdout=1&stderr=1", name);
    AUTO(fd_done) int fd = dial(socket, 30, e);
    int r = fd < 0 ? fd : say(fd, "POST", target, "Connection: Upgrade\r\nUpgrade: tcp\r\n", NULL, e);
    if (r < 0) return r;
    const char *end;
    while (!(end = head.s ? strstr(head.s, "\r\n\r\n") : NULL)) {
        ssize_t n = hear(fd, piece, sizeof piece, e);
        if (n < 0) return (int)n;
        if (n == 0 || head.len > HEAD_MAX)
            return fail(e, -EPROTO, "the container engine does not let us hear %s", name);
        buf_add(&head, piece, (size_t)n);
    }
    if (strncmp(head.s, "HTTP/1.1 101", 12) != 0 && strncmp(head.s, "HTTP/1.1 200", 12) != 0)
        return fail(e, -EPROTO, "the container engine does not let us hear %s: %.60s", name, head.s);
    buf_add(rest, end + 4, head.len - (size_t)(end + 4 - head.s));
    struct timeval for_ever = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
    int taken = fd;
    fd = -1;
    return taken;
}

/* Reads the head of an answer and nothing beyond it; the connection waits for ever then. Takes fd. */
static int after_head(int taken, const char *what, struct error *e) {
    AUTO(buf_done) struct buf head = {0};
    AUTO(fd_done) int fd = taken;
    while (head.len < 4 || memcmp(head.s + head.len - 4, "\r\n\r\n", 4) != 0) {
        char byte;
        ssize_t n = hear(fd, &byte, 1, e);
        if (n < 0) return (int)n;
        if (n == 0 || head.len > HEAD_MAX) return fail(e, -EPROTO, "the container engine does not open %s", what);
        buf_putc(&head, byte);
    }
    const char *space = strchr(head.s, ' ');
    int status = space ? atoi(space) : 0;
    int code = status == 404 ? -ENOENT : status == 409 ? -EEXIST : -EPROTO;
    if (status != 101 && status != 200)
        return fail(e, code, "the container engine does not open %s: %.*s", what, (int)strcspn(head.s, "\r\n"), head.s);
    struct timeval for_ever = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever);
    taken = fd;
    fd = -1;
    return taken;
}

int docker_hijack(const char *socket, const char *target, const char *body, struct error *e) {
    AUTO(fd_done) int fd = dial(socket, 30, e);
    int r = fd < 0 ? fd : say(fd, "POST", target, "Connection: Upgrade\r\nUpgrade: tcp\r\n", body, e);
    if (r < 0) return r;
    int taken = fd;
    fd = -1;
    return after_head(taken, "a terminal", e);
}

/* In the older HTTP an answer is what comes until the end, without lengths in between. */
int docker_follow(const char *socket, const char *target, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_done) int fd = dial(socket, 30, e);
    if (fd < 0) return fd;
    buf_printf(&text, "GET %s HTTP/1.0\r\nHost: engine\r\nUser-Agent: gpumgr\r\n\r\n", target);
    int r = send_all(fd, &text, e);
    if (r < 0) return r;
    int taken = fd;
    fd = -1;
    return after_head(taken, "its log", e);
}
