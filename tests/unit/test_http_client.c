/* HTTP out against servers that answer from a script, in a process of their own: good ones and bad ones. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "net/http_client.h"
#include "tests/test.h"

struct peer {
    int listener, port;
    pid_t pid;
    char path[64];
};

/* Reads up to the empty line and what the scripts never exceed of a body; then says its piece. */
static void serve_one(int listener, const char *says, int hold_ms) {
    char got[4096];
    size_t n = 0;
    int fd = accept(listener, NULL, NULL);
    while (n + 1 < sizeof got) {
        ssize_t r = read(fd, got + n, sizeof got - 1 - n);
        if (r <= 0) break;
        got[n += (size_t)r] = 0;
        const char *end = strstr(got, "\r\n\r\n"), *len = strcasestr(got, "Content-Length:");
        if (end && (!len || strlen(end + 4) >= strtoul(len + 15, NULL, 10))) break;
    }
    if (strcmp(says, "ECHO") == 0) {
        const char *end = strstr(got, "\r\n\r\n");
        size_t head = end ? (size_t)(end - got) : n;
        dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%.*s|%s",
                head + 1 + strlen(end + 4), (int)head, got, end + 4);
    } else {
        (void)!write(fd, says, strlen(says));
    }
    if (hold_ms) poll(NULL, 0, hold_ms);
    close(fd);
}

static void peer_open(struct peer *p, bool is_unix, const char *says, int hold_ms) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t len = sizeof in;
    snprintf(p->path, sizeof p->path, "/tmp/test_http_client.%d", (int)getpid());
    snprintf(un.sun_path, sizeof un.sun_path, "%s", p->path);
    unlink(p->path);
    p->listener = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, is_unix ? (void *)&un : (void *)&in, is_unix ? sizeof un : sizeof in), 0);
    assert_int_equal(listen(p->listener, 4), 0);
    if (!is_unix) getsockname(p->listener, (struct sockaddr *)&in, &len);
    p->port = ntohs(in.sin_port);
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_one(p->listener, says, hold_ms);
        _exit(0);
    }
}

static void peer_close(struct peer *p) {
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->listener);
    unlink(p->path);
}

static void answers(void **state) {
    static const struct {
        const char *name, *says;
        bool is_unix;
        size_t most;
        int hold_ms, want, status;
        const char *body;
    } rows[] = {
        {"plain",               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",                               false, 0,  0,     0,           200, "hi" },
        {"over a Unix socket",  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",                               true,  0,  0,     0,           200, "hi" },
        {"an error has a body", "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nnot",                              false, 0,  0,     0,           404, "not"},
        {"no redirect",         "HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", false, 0,  0,     0,
         302,                                                                                                                                       ""   },
        {"chunks",              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",    false, 0,  0,     0,           200,
         "hi"                                                                                                                                            },
        {"too large",           "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",                     false, 10, 0,     -EMSGSIZE,   0,   ""   },
        {"cut off",             "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello",                           false, 0,  0,     -EIO,        0,   ""   },
        {"nothing",             "",                                                                             false, 0,  0,     -ECONNRESET, 0,   ""   },
        {"silent",              "",                                                                             false, 0,  60000, -ETIMEDOUT,  0,   ""   },
        {"no HTTP",             "SSH-2.0-x\r\n",                                                                false, 0,  0,     -EPROTO,     0,   ""   },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(http_answer_done) struct http_answer a = {0};
        char url[64];
        struct peer p = {0};
        struct error e = {0};
        peer_open(&p, rows[i].is_unix, rows[i].says, rows[i].hold_ms);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/secret-path", rows[i].is_unix ? 80 : p.port);
        struct http_ask ask = {.url = url,
                               .unix_path = rows[i].is_unix ? p.path : NULL,
                               .most = rows[i].most,
                               .total_ms = rows[i].want == -ETIMEDOUT ? 400 : 60000};
        int r = http_ask(&ask, &a, &e);
        if (r != rows[i].want) fail_msg("%s: %d (%s), not %d", rows[i].name, r, e.text, rows[i].want);
        if (r < 0 && (!*e.text || strstr(e.text, "secret"))) fail_msg("%s: says \"%s\"", rows[i].name, e.text);
        if (r == 0) {
            assert_int_equal(a.status, rows[i].status);
            assert_string_equal(a.body.s ? a.body.s : "", rows[i].body);
        }
        peer_close(&p);
    }
}

static void asks(void **state) {
    AUTO(http_answer_done) struct http_answer a = {0};
    struct peer p = {0};
    struct error e = {0};
    char url[64];
    peer_open(&p, false, "ECHO", 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x?y=1", p.port);
    struct http_ask ask = {
        .method = "PUT",
        .url = url,
        .headers = {"X-One: 1", "Content-Type: application/json"},
        .body = "{}",
        .body_len = 2
    };
    assert_int_equal(http_ask(&ask, &a, &e), 0);
    assert_non_null(strstr(a.body.s, "PUT /x?y=1 HTTP/1.1"));
    assert_non_null(strstr(a.body.s, "X-One: 1"));
    assert_non_null(strstr(a.body.s, "|{}"));
    assert_null(strstr(a.body.s, "Expect"));
    assert_string_equal(a.type, "text/plain");
    peer_close(&p);
}

static int piece(void *ctx, const char *bytes, size_t n) {
    struct buf *b = ctx;
    buf_add(b, bytes, n);
    return strstr(b->s, "three") ? -ECANCELED : 0;
}

static void streams(void **state) {
    AUTO(http_answer_done) struct http_answer a = {0};
    AUTO(buf_done) struct buf got = {0};
    struct peer p = {0};
    struct error e = {0};
    char url[64];
    peer_open(&p, false, "HTTP/1.1 200 OK\r\n\r\none two three", 60000);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", p.port);
    struct http_ask ask = {.url = url, .total_ms = -1, .piece = piece, .ctx = &got};
    assert_int_equal(http_ask(&ask, &a, &e), -ECANCELED);
    assert_string_equal(got.s, "one two three");
    peer_close(&p);
}

static void nobody_there(void **state) {
    AUTO(http_answer_done) struct http_answer a = {0};
    struct error e = {0};
    struct http_ask tcp = {.url = "http://user:pass@127.0.0.1:1/T0K3N"},
                    un = {.url = "http://x/", .unix_path = "/nonexistent"};
    struct http_ask file = {.url = "file:///etc/passwd"};
    assert_int_equal(http_ask(&tcp, &a, &e), -ECONNREFUSED);
    assert_string_equal(e.text, "127.0.0.1:1: no connection");
    assert_int_equal(http_ask(&un, &a, &e), -ECONNREFUSED);
    assert_int_equal(http_ask(&file, &a, &e), -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers), cmocka_unit_test(asks), cmocka_unit_test(streams),
                                       cmocka_unit_test(nobody_there)};
    struct error e;
    if (http_client_start(&e) < 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
