/* Whose port it is. The tables of listening sockets as a kernel wrote them; then a run that is a process of this test: its port is
 * reached, and one that another process listens at is not. */
#include "node/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/owners.h"
#include "run/tree.h"
#include "tests/test.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define REST " 00000000:00000000 00:00000000 00000000     0        0 "

static void tables(void **state) {
    static const char v4[] = HEAD "   0: 0100007F:22B8 00000000:0000 0A" REST "1001 1 0 100 0 0 10 0\n"
                                  "   1: 00000000:1F90 00000000:0000 0A" REST "1002 1 0 100 0 0 10 0\n"
                                  "   2: 0100007F:22B8 0100007F:9C40 01" REST "1003 1 0 100 0 0 10 0\n"
                                  "   3: 0200A8C0:22B8 00000000:0000 0A" REST "1004 1 0 100 0 0 10 0";
    static const char v6[] =
        HEAD "   0: 00000000000000000000000000000000:22B8 00000000000000000000000000000000:0000 0A" REST "2001 1 0\n"
             "   1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A" REST "2002 1 0\n";
    static const struct {
        const char *text;
        bool is_v6;
        uint16_t port;
        unsigned count;
        uint64_t inode;
        const char *to;
    } rows[] = {
        {v4,           false, 8888, 2, 1001, "127.0.0.1"},
        {v4,           false, 8080, 1, 1002, "127.0.0.1"}, /* any address */
        {v4,           false, 8081, 0, 0,    NULL       },
        {v6,           true,  8888, 1, 2001, "::1"      },
        {v6,           true,  8080, 1, 2002, "::1"      },
        {"",           false, 8888, 0, 0,    NULL       },
        {"nonsense\n", false, 8888, 0, 0,    NULL       },
        {v4,           true,  8888, 0, 0,    NULL       }, /* lengths that do not fit */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reach_listener of[4];
        char to[64] = "";
        unsigned n = reach_listeners(rows[i].text, rows[i].is_v6, rows[i].port, of, 4);
        assert_int_equal(n, rows[i].count);
        if (!n) continue;
        assert_int_equal(of[0].inode, rows[i].inode);
        const struct sockaddr_in6 *v6_to = (const void *)&of[0].to;
        const struct sockaddr_in *v4_to = (const void *)&of[0].to;
        inet_ntop(of[0].to.ss_family, rows[i].is_v6 ? (const void *)&v6_to->sin6_addr : (const void *)&v4_to->sin_addr,
                  to, sizeof to);
        assert_string_equal(to, rows[i].to);
        assert_int_equal(ntohs(v4_to->sin_port), rows[i].port);
    }
    struct reach_listener one;
    assert_int_equal(reach_listeners(v4, false, 8888, &one, 1), 1); /* no more than there is room for */
}

/* backlog 0: only bound, so that nobody else has the port and nobody listens at it. */
static int bind_somewhere(uint16_t *port, int backlog) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    if (backlog) assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void runs(void **state) {
    struct error e = {0};
    static struct settings s;
    uint16_t own, others, none;
    int mine = bind_somewhere(&others, 4), silent = bind_somewhere(&none, 0), theirs = bind_somewhere(&own, 4);
    int ready[2];
    char word;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork(); /* a run whose shim has a child, which has the socket alone */
    if (child == 0) {
        close(mine);
        pid_t grandchild = fork();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (grandchild) {
            close(theirs);
            (void)!write(ready[1], "", 1);
        }
        for (;;) pause();
    }
    close(theirs);
    assert_int_equal(read(ready[0], &word, 1), 1); /* each has what it should have, and no more */
    close(ready[0]);
    close(ready[1]);
    struct owner o = {.name = "17.0.1", .shim = child, .shim_ticks = tree_ticks(child)};
    owners_put(&o, NULL, 0);
    int fd = reach_run(&s, "17.0.1", own, 10000, &e);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(reach_run(&s, "17.0.1", others, 1000, &e), -EPERM);
    assert_non_null(strstr(e.text, "is not of job 17"));
    assert_int_equal(reach_run(&s, "17.0.1", none, 1000, &e), -ECONNREFUSED);
    assert_non_null(strstr(e.text, "job 17 does not listen at port"));
    assert_int_equal(reach_run(&s, "18.0.1", own, 1000, &e), -ENOENT);
    owners_drop("17.0.1");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(mine);
    close(silent);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables), cmocka_unit_test(runs)};
    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
