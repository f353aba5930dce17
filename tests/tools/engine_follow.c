/* engine_follow DOCKER PODMAN [DIR [WORKERS]]: follows container engines as the node does, and prints a line of JSON for every
 * news. A line on its standard input is an id to ask for; its end ends the program. DIR: an instance whose samplers are
 * told. Lines "took_us" say how long the longest question took its caller. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "node/engine.h"

static const char *const news_names[] = {"facts", "started", "ended", "gone", "many"};

static void show(struct engine *g, const char *what, const char *id) {
    struct engine_facts f = {0};
    int64_t before_ns = clock_boot_ns();
    bool is_known = engine_facts(g, id, &f);
    int64_t took_ns = clock_boot_ns() - before_ns;
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_pair_str(&b, "news", what);
    json_pair_str(&b, "id", id);
    json_pair_num(&b, "at", (double)clock_real_ns() / 1e9);
    json_pair_bool(&b, "known", is_known);
    json_pair_int(&b, "took_us", took_ns / 1000);
    if (is_known) {
        json_pair_str(&b, "name", f.name);
        json_pair_str(&b, "image", f.image);
        json_pair_str(&b, "tenant", f.tenant);
        json_pair_str(&b, "bad_label", f.bad_label);
        json_pair_str(&b, "engine", engine_kind_name((enum engine_kind)f.engine));
        json_pair_str(&b, "state", engine_state_name((enum engine_state)f.state));
        json_pair_int(&b, "deadline_ms", f.deadline_ns / NS_PER_MS);
        json_pair_int(&b, "period_ms", f.period_ns / NS_PER_MS);
        json_pair_int(&b, "created", f.created_real_ns / NS_PER_S);
        json_pair_int(&b, "pid", f.pid);
        json_pair_int(&b, "uid", f.uid);
        json_pair_bool(&b, "own_devices", f.has_own_devices);
        if (f.priority != ENGINE_NO_PRIORITY) json_pair_int(&b, "priority", f.priority);
    }
    json_close(&b, '}');
    puts(b.s);
}

static bool on_input(struct engine *g) {
    static char text[4096];
    static size_t len;
    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - 1 - len);
    if (n <= 0) return false;
    len += (size_t)n;
    text[len] = 0;
    for (char *end; (end = strchr(text, '\n'));) {
        *end = 0;
        show(g, "asked", text);
        len -= (size_t)(end + 1 - text);
        memmove(text, end + 1, len + 1);
    }
    return true;
}

int main(int argc, char **argv) {
    struct error e;
    struct instance where;
    struct engine *g;
    struct engine_setup setup = {.docker = argc > 1 ? argv[1] : "", .podman = argc > 2 ? argv[2] : ""};
    log_open("follow", LOG_INFO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3) {
        if (instance_open(argv[3], &where, &e) < 0) return fprintf(stderr, "%s\n", e.text), 1;
        setup.where = &where;
        setup.workers = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
    }
    if (engine_new(&setup, &g, &e) < 0) return fprintf(stderr, "%s\n", e.text), 1;
    for (;;) {
        struct pollfd fds[] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = engine_fd(g), .events = POLLIN}
        };
        enum engine_news news;
        char id[ENGINE_ID_HEX + 1];
        if (poll(fds, 2, -1) < 0) break;
        while (fds[1].revents && engine_next(g, &news, id)) show(g, news_names[news], id);
        if (fds[0].revents && !on_input(g)) break;
    }
    int64_t before_ns = clock_boot_ns();
    engine_free(g);
    printf("{\"news\":\"over\",\"took_us\":%lld}\n", (long long)((clock_boot_ns() - before_ns) / 1000));
    return 0;
}
