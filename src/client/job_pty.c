#include "client/job_pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/instance.h"

enum { LEAVE_KEY = 0x1d, SEND_MS = 5000 }; /* Ctrl-] */

/* By the directory's descriptor: a socket's own path may be too long for its address. */
static int dial(const char *dir, const struct wire_run_key *run, int *ret, struct error *e) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct instance i;
    char path[320];
    int r = instance_find(dir, &i, e);
    if (r < 0) return r;
    snprintf(path, sizeof path, "%s/jobs/%lld.%u.%u", i.dir, (long long)run->job, run->element, run->attempt);
    AUTO(fd_done) int at = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return fail_errno(e, errno, "%s", path);
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/pty", at);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno(e, errno, "socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return fail_errno(e, errno, "%s/pty", path);
    *ret = fd;
    fd = -1;
    return 0;
}

int job_pty_open(struct job_pty *p, const char *dir, const struct wire_run_key *run, struct error *e) {
    fd_done(&p->fd);
    int r = dial(dir, run, &p->fd, e);
    if (r < 0) return r;
    if (!p->is_raw && tcgetattr(STDIN_FILENO, &p->before) == 0) {
        struct termios raw = p->before;
        cfmakeraw(&raw);
        p->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    }
    return job_pty_size(p, e);
}

void job_pty_close(struct job_pty *p) {
    if (p->is_raw) tcsetattr(STDIN_FILENO, TCSADRAIN, &p->before);
    p->is_raw = false;
    fd_done(&p->fd);
}

static int send_all(struct job_pty *p, const struct buf *b, struct error *e) {
    for (size_t done = 0; done < b->len;) {
        ssize_t n = send(p->fd, b->s + done, b->len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd w = {.fd = p->fd, .events = POLLOUT};
            if (poll(&w, 1, SEND_MS) == 0) return fail(e, -ETIMEDOUT, "the job's terminal takes no more keys");
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(e, errno, "the job's terminal");
        done += (size_t)n;
    }
    return 0;
}

int job_pty_keys(struct job_pty *p, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    uint8_t keys[JOBS_PTY_MOST];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 1;
    if (n < 0) return fail_errno(e, errno, "standard input");
    p->has_no_keys = n == 0;
    if (n == 0) keys[n++] = 4; /* what Ctrl-D says */
    const uint8_t *leave = p->is_raw ? memchr(keys, LEAVE_KEY, (size_t)n) : NULL;
    if (leave) {
        p->has_left = true;
        n = leave - keys;
    }
    if (n) jobs_put_pty(&b, &(struct jobs_pty){.kind = JOBS_PTY_BYTES, .bytes = keys, .len = (uint16_t)n});
    return send_all(p, &b, e);
}

bool job_pty_drain(struct job_pty *p) {
    char bytes[65536];
    ssize_t n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN))) return true;
    fd_done(&p->fd);
    return false;
}

int job_pty_size(struct job_pty *p, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct winsize size;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0) return 0;
    jobs_put_pty(&b, &(struct jobs_pty){.kind = JOBS_PTY_SIZE, .rows = size.ws_row, .columns = size.ws_col});
    return send_all(p, &b, e);
}
