/* `gpumgr containers shell` and `logs --follow`: the connection to the node stays, and carries what the container says (and of a shell
 * what is typed) until one side has enough. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "client/containers.h"
#include "client/jobs_talk.h"
#include "client/output.h"
#include "model/wire_stream.h"

enum { ID = 1, CTRL_D = 4, ANSWER_MS = 60000 };

struct session {
    struct jobs_talk talk;
    bool is_shell, is_raw, has_no_keys;
    struct termios before;
    int signals;
};

static int open_session(struct session *s, const char *dir, const struct wire_container_call *call, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_container_answer answer;
    struct wire_frame f;
    wire_put_container_call(&b, call);
    int r = jobs_talk_open_at(&s->talk, dir, CONTAINERS_SOCKET, e);
    if (r >= 0) r = jobs_talk_send(&s->talk, &b, e);
    if (r >= 0) r = jobs_talk_next(&s->talk, ANSWER_MS, &f, e);
    if (r == 0) return fail(e, -ETIMEDOUT, "the node does not answer");
    if (r == -ECONNRESET) return fail(e, -EAGAIN, "the node does not take the question now; try again in a moment");
    if (r >= 0) r = wire_get_container_answer(&f, &answer, e);
    if (r < 0) return r;
    return answer.result < 0 ? fail(e, answer.result, "%s", answer.text) : 0;
}

static int send_size(struct session *s, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct winsize z;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &z) < 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &z) < 0) return 0;
    if (!z.ws_row || !z.ws_col) return 0;
    wire_put_stream_word(&b, WIRE_STREAM_SIZE,
                         &(struct wire_stream_word){ID, (uint32_t)z.ws_row << 16 | (uint32_t)z.ws_col});
    return jobs_talk_send(&s->talk, &b, e);
}

static int begin_terminal(struct session *s, struct error *e) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0) return fail_errno(e, errno, "signalfd");
    if (tcgetattr(STDIN_FILENO, &s->before) == 0) {
        struct termios raw = s->before;
        cfmakeraw(&raw);
        s->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    }
    return send_size(s, e);
}

static void session_done(struct session *s) {
    if (s->is_raw) tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    fd_done(&s->signals);
    jobs_talk_close(&s->talk);
}

static int send_keys(struct session *s, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    uint8_t keys[4096];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
    if (n < 0) return fail_errno(e, errno, "standard input");
    s->has_no_keys = n == 0;
    if (n == 0) keys[n++] = CTRL_D;
    wire_put_stream_data(&b, &(struct wire_stream_data){ID, keys, (size_t)n});
    return jobs_talk_send(&s->talk, &b, e);
}

/* All frames that are there. 1: it goes on; 0: over, with a code. */
static int take_frames(struct session *s, int *ret_code, struct error *e) {
    struct wire_frame f;
    int r;
    while ((r = jobs_talk_next(&s->talk, 0, &f, e)) > 0) {
        AUTO(buf_done) struct buf text = {0};
        struct wire_stream_data d;
        struct wire_stream_word w;
        if (f.type == WIRE_STREAM_END) {
            r = wire_get_stream_word(&f, &w, e);
            *ret_code = r < 0 ? 0 : (int)w.value;
            return r < 0 ? r : 0;
        }
        if ((r = wire_get_stream_data(&f, &d, e)) < 0) return r;
        buf_add(&text, d.bytes, d.len);
        if (output_write(&text) < 0) return fail(e, -EPIPE, "standard output");
    }
    return r < 0 ? r : 1;
}

/* Until something is there: for him, from him, or a window of another size. */
static int wait_for_news(struct session *s, struct error *e) {
    struct signalfd_siginfo signal;
    struct pollfd p[] = {
        {.fd = s->talk.fd,                                         .events = POLLIN},
        {.fd = s->is_shell && !s->has_no_keys ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = s->signals,                                         .events = POLLIN},
    };
    if (poll(p, 3, -1) < 0) return errno == EINTR ? 1 : fail_errno(e, errno, "poll");
    if (p[2].revents && read(s->signals, &signal, sizeof signal) > 0) {
        int r = send_size(s, e);
        if (r < 0) return r;
    }
    if (p[1].revents) {
        int r = send_keys(s, e);
        if (r < 0) return r;
    }
    return 1;
}

int containers_session(const char *dir, const struct wire_container_call *call, int *ret_code, struct error *e) {
    AUTO(session_done)
    struct session s = {.talk = JOBS_TALK_CLOSED, .is_shell = call->verb == CONTAINER_VERB_SHELL, .signals = -1};
    int r = open_session(&s, dir, call, e);
    if (r >= 0 && s.is_shell) r = begin_terminal(&s, e);
    if (r >= 0) r = 1;
    while (r > 0 && (r = take_frames(&s, ret_code, e)) > 0) r = wait_for_news(&s, e); /* some came with the answer */
    return r == -ECONNRESET ? fail(e, -ECONNRESET, "the node went away") : r;
}
