/* The engines' thread and those who ask it, together: an engine that sends events as fast as it can, facts and news taken
 * meanwhile, and an end in the middle of it. For ThreadSanitizer above all. */
#include "node/engine.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/test.h"

enum { CONTAINERS = 100 };

static struct {
    char path[64];
    int listener;
    _Atomic bool is_over;
} fake;

static void id_of(int i, char ret[ENGINE_ID_HEX + 1]) { snprintf(ret, ENGINE_ID_HEX + 1, "%064x", i + 1); }

static bool put(int fd, const char *text) {
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Start and end of one container after the other, for ever. */
static void send_events(int fd) {
    put(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; !fake.is_over; i++) {
        char id[ENGINE_ID_HEX + 1], event[512], chunk[640];
        id_of(i % CONTAINERS, id);
        snprintf(event, sizeof event,
                 "{\"Type\":\"container\",\"Action\":\"%s\",\"Actor\":{\"ID\":\"%s\",\"Attributes\":{\"name\":\"c%d\","
                 "\"gpumgr.deadline\":\"%ds\"}}}\n",
                 i / CONTAINERS % 2 ? "die" : "start", id, i % CONTAINERS, i % CONTAINERS + 1);
        snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n", strlen(event), event);
        if (!put(fd, chunk)) return;
    }
}

static void *serve(void *arg) {
    int fd = (int)(intptr_t)arg;
    char text[1024];
    ssize_t n;
    while ((n = recv(fd, text, sizeof text - 1, 0)) > 0) {
        text[n] = 0;
        if (strncmp(text, "GET /events", 11) == 0)
            send_events(fd);
        else if (strncmp(text, "GET /containers/json", 20) == 0)
            put(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]");
        else
            put(fd, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    }
    close(fd);
    return NULL;
}

static void *listen_on(void *arg) {
    for (int fd; (fd = accept(fake.listener, NULL, NULL)) >= 0;) {
        pthread_t one;
        if (pthread_create(&one, NULL, serve, (void *)(intptr_t)fd) == 0) pthread_detach(one);
    }
    return NULL;
}

static void begin(pthread_t *ret) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(fake.path, sizeof fake.path, "/tmp/test_engine.%d", (int)getpid());
    strcpy(at.sun_path, fake.path);
    unlink(fake.path);
    fake.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fake.listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fake.listener, 8), 0);
    assert_int_equal(pthread_create(ret, NULL, listen_on, NULL), 0);
}

static void check(const struct engine_facts *f) {
    char id[ENGINE_ID_HEX + 1], name[16];
    int i = (int)(f->deadline_ns / NS_PER_S) - 1;
    id_of(i, id);
    snprintf(name, sizeof name, "c%d", i);
    assert_string_equal(f->id, id); /* never half of one and half of another */
    assert_string_equal(f->name, name);
}

static void asked_while_it_hears(void **state) {
    struct engine_setup setup = {.docker = fake.path, .podman = ""};
    struct engine *g = NULL;
    struct error e;
    pthread_t listener;
    unsigned news_count = 0, known = 0;
    begin(&listener);
    assert_int_equal(engine_new(&setup, &g, &e), 0);
    int64_t began_ns = clock_boot_ns();
    while (clock_boot_ns() < began_ns + 2 * NS_PER_S || news_count <= CONTAINERS || known <= CONTAINERS) {
        assert_true(clock_boot_ns() < began_ns + 60 * NS_PER_S);
        struct pollfd p = {.fd = engine_fd(g), .events = POLLIN};
        struct engine_facts f, all[CONTAINERS + 1];
        enum engine_news news;
        char id[ENGINE_ID_HEX + 1];
        poll(&p, 1, 10);
        for (int i = 0; i < 1000 && engine_next(g, &news, id); i++) {
            news_count++;
            if (news != ENGINE_MANY && engine_facts(g, id, &f)) check(&f), known++;
        }
        unsigned n = engine_all(g, all, CONTAINERS + 1);
        assert_true(n <= CONTAINERS);
        for (unsigned i = 0; i < n; i++) check(&all[i]);
        id_of(100000, id);
        assert_false(engine_facts(g, id, &f));
        assert_false(engine_facts(g, "not an id", &f));
    }
    engine_free(g); /* while it hears: it would never end if it had to hear out */
    engine_free(NULL);
    fake.is_over = true;
    shutdown(fake.listener, SHUT_RDWR);
    pthread_join(listener, NULL);
    unlink(fake.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(asked_while_it_hears)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
