/* The web server: whoever is slow, silent or greedy is let go, and answers that come later find their way or learn that nobody
 * waits. Each test has a server of its own: a hasty one where running out of time is what is tested, else a patient one, which
 * a client that gets no processor for a while does not notice. The loop runs in a thread of its own; the client is this one,
 * with sockets that block until there is something to see. */
#include "net/http_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http_socket.h"
#include "tests/test.h"
#include "tests/unit/scratch.h"

#define HOST "Host: x\r\n\r\n"

enum { CONNECTIONS = 8, STREAM_QUEUE = 64 * 1024, PATIENCE_S = 60 };

static const struct http_limits hasty = {.connections = CONNECTIONS,
                                         .per_address = CONNECTIONS,
                                         .idle_ns = 400 * NS_PER_MS,
                                         .request_ns = 200 * NS_PER_MS,
                                         .stall_ns = 300 * NS_PER_MS,
                                         .stream_queue = STREAM_QUEUE};
static const struct http_limits patient = {.connections = CONNECTIONS,
                                           .per_address = CONNECTIONS,
                                           .idle_ns = PATIENCE_S * NS_PER_S,
                                           .request_ns = PATIENCE_S * NS_PER_S,
                                           .stall_ns = PATIENCE_S * NS_PER_S,
                                           .stream_queue = STREAM_QUEUE};

struct rig {
    struct loop *loop;
    struct http_server *http;
    pthread_t thread;
    char dir[64], path[108];
    _Atomic int gone, streams;
    struct http_request *stream, *later;
    _Atomic bool has_later;
};

static void on_gone(struct http_request *r) {
    struct rig *rig = r->ctx;
    if (rig->stream == r) rig->stream = NULL;
    if (rig->later == r) rig->later = NULL;
    atomic_fetch_add(&rig->gone, 1);
}

static void fill(void *ctx) {
    static char block[16384];
    struct rig *rig = ctx;
    if (!rig->stream) return;
    struct http_shared *s = http_shared_new(block, sizeof block);
    http_stream_write(rig->stream, s);
    http_shared_drop(s);
}

static void answer(void *ctx) {
    struct rig *rig = ctx;
    if (rig->later) http_reply(rig->later, 200, "text/plain", "later", 5);
    rig->later = NULL;
}

/* A WebSocket that says everything again; "end" ends it, "fill" is answered with more than a reader that reads nothing takes. */
struct echo {
    struct rig *rig;
    struct http_request *r;
    size_t sent;
};

static void fill_up(struct echo *echo) {
    static char block[4096];
    while (http_socket_room(echo->r) >= sizeof block && echo->sent < ((size_t)64 << 20)) {
        http_socket_send(echo->r, block, sizeof block, false);
        echo->sent += sizeof block;
    }
}

static void on_message(void *ctx, const void *bytes, size_t n, bool is_text) {
    struct echo *echo = ctx;
    if (n == 4 && memcmp(bytes, "fill", 4) == 0) {
        fill_up(echo);
        atomic_store(&echo->rig->streams, (int)echo->sent);
    } else if (n == 3 && memcmp(bytes, "end", 3) == 0) {
        http_socket_end(echo->r, WEBSOCKET_NORMAL, "as you wish");
        free(echo);
    } else {
        http_socket_send(echo->r, bytes, n, is_text);
    }
}

static void on_socket_gone(void *ctx) {
    struct echo *echo = ctx;
    atomic_fetch_add(&echo->rig->gone, 1);
    free(echo);
}

static void serve_socket(struct rig *rig, struct http_request *r) {
    static const struct http_socket_events events = {.message = on_message, .gone = on_socket_gone};
    struct error e;
    struct echo *echo = calloc(1, sizeof *echo);
    *echo = (struct echo){.rig = rig, .r = r};
    if (http_socket_begin(r, &events, echo, NULL, &e) >= 0) return;
    free(echo);
    http_reply(r, http_status_of(e.code), "text/plain", e.text, strlen(e.text));
}

static void serve(void *ctx, struct http_request *r) {
    static char large[4 * 1024 * 1024];
    struct rig *rig = ctx;
    r->ctx = rig;
    if (strcmp(r->head.path, "/socket") == 0) {
        serve_socket(rig, r);
    } else if (strcmp(r->head.path, "/large") == 0) {
        http_reply(r, 200, "text/plain", large, sizeof large);
    } else if (strcmp(r->head.path, "/stream") == 0) {
        rig->stream = r;
        http_on_gone(r, on_gone);
        http_stream_begin(r, "text/event-stream");
    } else if (strcmp(r->head.path, "/later") == 0) {
        rig->later = r;
        http_on_gone(r, on_gone);
        atomic_store(&rig->has_later, true);
    } else {
        http_reply(r, 200, "text/plain", r->body.len ? r->body.s : "ok", r->body.len ? r->body.len : 2);
    }
}

static size_t body_max(void *ctx, const struct http_request *r) { return 64; }

static void refuse(void *ctx, struct http_request *r, int status, const char *sentence) {
    http_reply(r, status, "text/plain", sentence, strlen(sentence));
}

static void *run(void *ctx) {
    struct rig *rig = ctx;
    loop_run(rig->loop);
    return NULL;
}

static void stop(void *ctx) { loop_stop(((struct rig *)ctx)->loop); }

static int setup(void **state, const struct http_limits *limits) {
    static struct rig rig;
    struct error e;
    struct http_service service = {.body_max = body_max, .serve = serve, .refuse = refuse, .ctx = &rig};
    memset(&rig, 0, sizeof rig);
    snprintf(rig.path, sizeof rig.path, "%s/http.sock", scratch_make(rig.dir, "/dev/shm"));
    assert_int_equal(loop_new(&rig.loop, &e), 0);
    assert_int_equal(http_server_new(rig.loop, &service, &rig.http, &e), 0);
    http_set_limits(rig.http, limits);
    assert_int_equal(http_listen_unix(rig.http, rig.path, 0600, &e), 0);
    pthread_create(&rig.thread, NULL, run, &rig);
    *state = &rig;
    return 0;
}

static int with_haste(void **state) { return setup(state, &hasty); }
static int with_patience(void **state) { return setup(state, &patient); }

static int teardown(void **state) {
    struct rig *rig = *state;
    loop_post(rig->loop, stop, rig);
    pthread_join(rig->thread, NULL);
    http_server_free(rig->http);
    loop_free(rig->loop);
    scratch_remove(rig->dir);
    return 0;
}

/* ---- the client ---- */

static int connect_to(const struct rig *rig) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, rig->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval most = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void say(int fd, const char *text) {
    size_t n = strlen(text);
    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* Reads to the end, or until `until` is there. */
static char *hear(int fd, const char *until) {
    static char text[65536];
    size_t len = 0;
    text[0] = 0;
    while (len < sizeof text - 1 && (!until || !strstr(text, until))) {
        ssize_t n = recv(fd, text + len, sizeof text - 1 - len, 0);
        if (n <= 0) {
            assert_true(n == 0 || errno == ECONNRESET);
            break;
        }
        len += (size_t)n;
        text[len] = 0;
    }
    return text;
}

/* How many bytes come until the end. */
static size_t drain(int fd) {
    static char text[65536];
    size_t len = 0;
    for (ssize_t n; (n = recv(fd, text, sizeof text, 0)) > 0;) len += (size_t)n;
    return len;
}

static void wait_gone(struct rig *rig, int want) {
    int64_t until_ns = clock_boot_ns() + PATIENCE_S * NS_PER_S;
    while (atomic_load(&rig->gone) < want) {
        assert_true(clock_boot_ns() < until_ns);
        usleep(1000);
    }
}

static void went_round(void *ctx) { sem_post(ctx); }

/* The loop has gone round: once it takes a new connection, once more it reads what came over it. */
static void settle(struct rig *rig) {
    sem_t turn;
    sem_init(&turn, 0, 0);
    for (int i = 0; i < 3; i++) {
        loop_post(rig->loop, went_round, &turn);
        while (sem_wait(&turn) < 0) {}
    }
    sem_destroy(&turn);
}

/* ---- tests ---- */

static void pipelined(void **state) {
    int fd = connect_to(*state);
    say(fd, "GET /a HTTP/1.1\r\n" HOST "POST /b HTTP/1.1\r\nContent-Length: 3\r\n" HOST "one"
            "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "3\r\ntwo\r\n0\r\n\r\n"
            "GET /d HTTP/1.1\r\nConnection: close\r\n" HOST);
    const char *got = hear(fd, NULL), *one = strstr(got, "\r\n\r\none"), *two = strstr(got, "\r\n\r\ntwo");
    assert_non_null(one);
    assert_true(two > one);
    assert_non_null(strstr(two, "Connection: close"));
    close(fd);
}

static void slow_head(void **state) {
    int fd = connect_to(*state);
    say(fd, "GET / HTTP/1.1\r\nA");
    assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 408 "));
    close(fd);
}

static void slow_body(void **state) {
    int fd = connect_to(*state);
    say(fd, "POST / HTTP/1.1\r\nContent-Length: 9\r\n" HOST "abc");
    assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 408 "));
    close(fd);
}

static void idle(void **state) {
    int fd = connect_to(*state);
    assert_string_equal(hear(fd, NULL), "");
    close(fd);
}

static void too_large(void **state) {
    int fd = connect_to(*state);
    say(fd, "POST / HTTP/1.1\r\nContent-Length: 65\r\n" HOST);
    assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 413 "));
    close(fd);
    fd = connect_to(*state);
    say(fd, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST "40\r\n"
            "0123456789012345678901234567890123456789012345678901234567890123\r\n1\r\n");
    assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 413 "));
    close(fd);
}

static void continues(void **state) {
    int fd = connect_to(*state);
    say(fd, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n" HOST);
    assert_non_null(strstr(hear(fd, "\r\n\r\n"), "HTTP/1.1 100 Continue"));
    say(fd, "abc");
    assert_non_null(strstr(hear(fd, "abc"), "HTTP/1.1 200 "));
    close(fd);
}

/* Those who are in the middle of something stay, and no more than there is room for are heard. */
static void crowded(void **state) {
    struct rig *rig = *state;
    int fd[CONNECTIONS + 4];
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        fd[i] = connect_to(rig);
        send(fd[i], "GET", 3, MSG_NOSIGNAL);
        settle(rig);
    }
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        static const char rest[] = " / HTTP/1.1\r\nConnection: close\r\n" HOST;
        send(fd[i], rest, sizeof rest - 1, MSG_NOSIGNAL);
        bool is_heard = strstr(hear(fd[i], NULL), "200 OK");
        assert_int_equal(is_heard, i < CONNECTIONS);
        close(fd[i]);
    }
}

/* Who only waits makes room. */
static void idle_make_room(void **state) {
    int fd[20];
    for (int i = 0; i < 20; i++) {
        fd[i] = connect_to(*state);
        say(fd[i], "GET / HTTP/1.1\r\n" HOST);
        assert_non_null(strstr(hear(fd[i], "\r\n\r\nok"), "200 OK"));
    }
    assert_string_equal(hear(fd[0], NULL), "");
    for (int i = 0; i < 20; i++) close(fd[i]);
}

/* Whoever asks for much and takes nothing is dropped. */
static void stalled(void **state) {
    int fd = connect_to(*state);
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    assert_true(drain(fd) < 4 * 1024 * 1024);
    close(fd);
}

/* Whoever takes it gets all of it, beside one who does not. */
static void taken(void **state) {
    int fd = connect_to(*state), good = connect_to(*state);
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    say(good, "GET /large HTTP/1.1\r\nConnection: close\r\n" HOST);
    assert_true(drain(good) > 4 * 1024 * 1024);
    close(good);
    close(fd);
}

static void slow_stream(void **state) {
    struct rig *rig = *state;
    int fd = connect_to(rig), before = atomic_load(&rig->gone);
    say(fd, "GET /stream HTTP/1.1\r\n" HOST);
    assert_non_null(strstr(hear(fd, "\r\n\r\n"), "text/event-stream"));
    for (int i = 0; i < 64; i++) loop_post(rig->loop, fill, rig);
    wait_gone(rig, before + 1);
    drain(fd);
    close(fd);
}

static void later(void **state) {
    struct rig *rig = *state;
    int fd = connect_to(rig), before = atomic_load(&rig->gone);
    atomic_store(&rig->has_later, false);
    say(fd, "GET /later HTTP/1.1\r\n" HOST);
    while (!atomic_load(&rig->has_later)) usleep(1000);
    loop_post(rig->loop, answer, rig);
    assert_non_null(strstr(hear(fd, "later"), "200 OK"));
    atomic_store(&rig->has_later, false);
    say(fd, "GET /later HTTP/1.1\r\n" HOST);
    while (!atomic_load(&rig->has_later)) usleep(1000);
    close(fd);
    wait_gone(rig, before + 1);
    loop_post(rig->loop, answer, rig);
}

/* Whoever shuts his side down after the request still gets the answer. */
static void half_closed(void **state) {
    int fd = connect_to(*state);
    say(fd, "GET /large HTTP/1.1\r\n" HOST);
    shutdown(fd, SHUT_WR);
    assert_true(drain(fd) > 4 * 1024 * 1024);
    close(fd);
}

#define UPGRADE                                                                                                        \
    "GET /socket HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"               \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" HOST

/* A client's frame whose mask changes nothing. */
static void send_frame(int fd, int first, const char *bytes) {
    AUTO(buf_done) struct buf b = {0};
    buf_putc(&b, (char)first);
    buf_putc(&b, (char)(0x80 | strlen(bytes)));
    buf_add(&b, "\0\0\0\0", 4);
    buf_puts(&b, bytes);
    assert_int_equal(send(fd, b.s, b.len, MSG_NOSIGNAL), b.len);
}

static void expect(int fd, const void *bytes, size_t n) {
    char got[256];
    assert_int_equal(recv(fd, got, n, MSG_WAITALL), n);
    assert_memory_equal(got, bytes, n);
}

static int open_socket(struct rig *rig) {
    static const char head[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    int fd = connect_to(rig);
    say(fd, UPGRADE);
    expect(fd, head, sizeof head - 1);
    return fd;
}

/* Both ways, a ping in between, longer than a connection may be idle; then either side ends it. */
static void socket_talk(void **state) {
    struct rig *rig = *state;
    int before = atomic_load(&rig->gone), fd = open_socket(rig);
    for (int64_t until_ns = clock_boot_ns() + 2 * hasty.idle_ns; clock_boot_ns() < until_ns; usleep(20000)) {
        send_frame(fd, 0x81, "hello");
        expect(fd, "\x81\x05hello", 7);
    }
    send_frame(fd, 0x89, "p");
    expect(fd, "\x8a\x01p", 3);
    send_frame(fd, 0x81, "end");
    expect(fd,
           "\x88\x0d\x03\xe8"
           "as you wish",
           15);
    assert_int_equal(drain(fd), 0);
    close(fd);
    assert_int_equal(atomic_load(&rig->gone), before);
    fd = open_socket(rig);
    send_frame(fd, 0x88, "\x03\xe9");
    expect(fd, "\x88\x02\x03\xe9", 4);
    wait_gone(rig, before + 1);
    close(fd);
    fd = open_socket(rig);
    close(fd);
    wait_gone(rig, before + 2);
    fd = open_socket(rig);
    say(fd, "no frame at all");
    wait_gone(rig, before + 3);
    close(fd);
}

/* A reader that takes nothing: what waits for him is bounded, and after a while he is gone. */
static void socket_stalled(void **state) {
    struct rig *rig = *state;
    int before = atomic_load(&rig->gone), fd = open_socket(rig);
    atomic_store(&rig->streams, 0);
    send_frame(fd, 0x81, "fill");
    while (!atomic_load(&rig->streams)) usleep(1000);
    assert_in_range(atomic_load(&rig->streams), 4096, STREAM_QUEUE);
    for (int i = 0; i < 100; i++) /* nor does asking again help; he may be gone by now */
        send(fd, "\x81\x84\0\0\0\0fill", 10, MSG_NOSIGNAL);
    wait_gone(rig, before + 1);
    close(fd);
    fd = connect_to(rig);
    say(fd, "GET /socket HTTP/1.1\r\n" HOST);
    assert_non_null(strstr(hear(fd, "asked for"), "400 Bad Request"));
    close(fd);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN); /* as in the server: readers that are gone */
#define HASTY(name) cmocka_unit_test_setup_teardown(name, with_haste, teardown)
#define PATIENT(name) cmocka_unit_test_setup_teardown(name, with_patience, teardown)
    const struct CMUnitTest tests[] = {
        PATIENT(pipelined),   HASTY(slow_head), HASTY(slow_body),        HASTY(idle),          PATIENT(too_large),
        PATIENT(continues),   HASTY(stalled),   PATIENT(taken),          PATIENT(slow_stream), PATIENT(later),
        PATIENT(half_closed), PATIENT(crowded), PATIENT(idle_make_room), HASTY(socket_talk),   HASTY(socket_stalled),
    };
    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
