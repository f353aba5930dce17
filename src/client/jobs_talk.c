#include "client/jobs_talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum {
    SEND_MS = 10000,
    ANSWER_MS = 60000,
    FRAME_BYTES = WIRE_FRAME_MAX - (64 << 10),
    AGAIN_MS = 100,
    HOST_DOWN_MS = 10000,
    LOST_MS = 60000
};

static int not_running(struct error *e) {
    return fail(e, -ENOTCONN, "no gpumgr runs here that takes jobs; `gpumgr up` starts one");
}

int jobs_talk_open(struct jobs_talk *t, const char *dir, struct error *e) {
    return jobs_talk_open_at(t, dir, JOBS_SOCKET, e);
}

int jobs_talk_open_at(struct jobs_talk *t, const char *dir, const char *name, struct error *e) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct instance i;
    char path[300];
    int r = instance_find(dir, &i, e);
    if (r == -ENOENT) return not_running(e);
    if (r < 0) return r;
    instance_path(&i, path, sizeof path, "%s", name);
    if (strlen(path) >= sizeof to.sun_path)
        return fail(e, -ENAMETOOLONG, "%s: longer than a socket's path may be", path);
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno(e, errno, "socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED) return not_running(e);
        return fail_errno(e, errno, "the node cannot be asked: %s", path);
    }
    *t = (struct jobs_talk){.fd = fd};
    fd = -1;
    return 0;
}

void jobs_talk_close(struct jobs_talk *t) {
    fd_done(&t->fd);
    t->fd = -1;
    wire_stream_done(&t->in);
    t->in = (struct wire_stream){0};
}

static int went_away(struct error *e) { return fail(e, -ECONNRESET, "the node went away"); }

int jobs_talk_send(struct jobs_talk *t, const struct buf *b, struct error *e) {
    for (size_t done = 0; done < b->len;) {
        struct pollfd p = {.fd = t->fd, .events = POLLOUT};
        if (poll(&p, 1, SEND_MS) == 0) return fail(e, -ETIMEDOUT, "the node does not take what is said to it");
        ssize_t n = send(t->fd, b->s + done, b->len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return went_away(e);
        done += (size_t)n;
    }
    return 0;
}

int jobs_talk_next(struct jobs_talk *t, int timeout_ms, struct wire_frame *ret, struct error *e) {
    char bytes[65536];
    for (;;) {
        int r = wire_stream_next(&t->in, ret, e);
        if (r != 0) return r;
        struct pollfd p = {.fd = t->fd, .events = POLLIN};
        r = poll(&p, 1, timeout_ms);
        if (r < 0 && errno == EINTR) return 0;
        if (r <= 0) return r < 0 ? fail_errno(e, errno, "poll") : 0;
        ssize_t n = recv(t->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
        if (n <= 0) return went_away(e);
        wire_stream_add(&t->in, bytes, (size_t)n);
    }
}

int jobs_talk_result(struct jobs_talk *t, uint64_t request, struct wire_job_result *ret, struct error *e) {
    int64_t until = clock_boot_ns() + (t->patience_ms ? t->patience_ms : ANSWER_MS) * NS_PER_MS;
    for (;;) {
        struct wire_frame f;
        int64_t left_ms = (until - clock_boot_ns()) / NS_PER_MS;
        if (left_ms <= 0) return fail(e, -ETIMEDOUT, "the node does not answer");
        int r = jobs_talk_next(t, (int)left_ms, &f, e);
        if (r < 0) return r;
        if (r == 0 || (f.type != WIRE_JOB_SUBMITTED && f.type != WIRE_JOB_CONTROLLED)) continue;
        r = wire_get_job_result(&f, ret, e);
        if (r < 0) return r;
        if (ret->request != request) continue;
        return ret->result < 0 ? fail(e, ret->result, "%s", ret->text) : 0;
    }
}

/* ---- whole conversations ---- */

void jobs_batch_add(struct jobs_batch *b, const struct buf *record) {
    if (b->count == b->capacity) {
        b->capacity = b->capacity ? 2 * b->capacity : 16;
        size_t *more = realloc(b->len, b->capacity * sizeof *more);
        if (!more) abort();
        b->len = more;
    }
    b->len[b->count++] = record->len;
    buf_add(&b->records, record->s, record->len);
}

void jobs_batch_done(struct jobs_batch *b) {
    buf_done(&b->records);
    free(b->len);
    *b = (struct jobs_batch){0};
}

/* What the job gets from whoever hands it in; words point into `environment`. */
static int look_around(struct jobs_submit *s, struct buf *environment, struct error *e) {
    for (char **v = environ; *v; v++) job_word_put(environment, *v);
    if (environment->len > JOBS_ENVIRONMENT_MAX)
        return fail(e, -E2BIG, "your environment has %zu KiB; a job can take %u KiB with it", environment->len >> 10,
                    JOBS_ENVIRONMENT_MAX >> 10);
    s->environment = job_words_of(environment);
    s->umask = umask(0);
    umask(s->umask);
    if (!getcwd(s->cwd, sizeof s->cwd)) return fail_errno(e, errno, "the directory you are in");
    return 0;
}

static int submit_all(struct jobs_talk *t, struct jobs_submit *s, const struct jobs_batch *b, int64_t *ret_first,
                      struct error *e) {
    AUTO(buf_done) struct buf out = {0};
    struct wire_job_result result = {0};
    const char *at = b->records.s;
    s->request = ++t->request;
    size_t from = jobs_begin_submit(&out, s);
    for (size_t i = 0; i < b->count; at += b->len[i++]) jobs_add_submit(&out, at, b->len[i]);
    jobs_tail_submit(&out, s);
    wire_end(&out, from);
    int r = jobs_talk_send(t, &out, e);
    if (r >= 0) r = jobs_talk_result(t, s->request, &result, e);
    if (r < 0) return r;
    if (result.count != b->count) return fail(e, -EPROTO, "the node's answer makes no sense");
    *ret_first = result.first;
    return 0;
}

int jobs_talk_key(char *ret, size_t room, struct error *e) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return fail_errno(e, errno, "getrandom");
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(ret + 2 * i, room - 2 * i, "%02x", bytes[i]);
    return 0;
}

static int check_size(const struct jobs_batch *b, const struct buf *environment, struct error *e) {
    if (b->count > JOBS_SUBMIT_MAX)
        return fail(e, -EINVAL, "%zu jobs: %u can be handed in at once; nothing was taken", b->count, JOBS_SUBMIT_MAX);
    if (b->records.len + environment->len + 8 * b->count > FRAME_BYTES)
        return fail(e, -EINVAL, "%.1f MiB of jobs: %.1f can be handed in at once; nothing was taken",
                    (double)b->records.len / (1 << 20), (double)FRAME_BYTES / (1 << 20));
    return 0;
}

/* What a restart of node or server may take is waited for; who was never there is not. */
static bool may_ask_again(int r, bool was_there, int64_t begin_ns) {
    int64_t for_ns = clock_boot_ns() - begin_ns;
    if (r == -EHOSTDOWN) return for_ns < HOST_DOWN_MS * NS_PER_MS;
    bool is_lost = r == -ECONNRESET || r == -ETIMEDOUT || (was_there && r == -ENOTCONN);
    return is_lost && for_ns < LOST_MS * NS_PER_MS;
}

int jobs_talk_submit(const char *dir, const struct jobs_batch *b, int64_t *ret_first, struct error *e) {
    AUTO(buf_done) struct buf environment = {0};
    struct jobs_submit s = {.count = (uint16_t)b->count};
    int64_t begin_ns = clock_boot_ns();
    bool was_there = false;
    int r = look_around(&s, &environment, e);
    if (r >= 0) r = check_size(b, &environment, e);
    if (r >= 0) r = jobs_talk_key(s.key, sizeof s.key, e);
    if (r < 0) return r;
    for (;;) {
        AUTO(jobs_talk_close) struct jobs_talk t = JOBS_TALK_CLOSED;
        r = jobs_talk_open(&t, dir, e);
        was_there |= r >= 0;
        if (r >= 0) r = submit_all(&t, &s, b, ret_first, e);
        if (r >= 0 || !may_ask_again(r, was_there, begin_ns)) break;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * NS_PER_MS}, NULL);
    }
    if (r == -ECONNRESET || r == -ETIMEDOUT)
        return fail(e, r, "nobody said whether it was taken; `gpumgr jobs` shows it if so");
    return r;
}
