/* Plays a gpumgr whose guards do as they are told, for tests of `gpumgr guard`: guard_actor DIR. It holds the directory,
 * writes two rings (worker 0 has GPUs 0 and 2: power limit and none; worker 1 has GPU 1: locked clocks) and answers the
 * control sockets. What it is asked it prints, a line each: WORKER VERB ARGUMENTS. Ends with its standard input. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/instance.h"
#include "base/shm.h"
#include "core/control.h"
#include "model/guard.h"
#include "model/ring.h"

enum { WORKERS = 2, CARDS = 2 };

static struct worker {
    struct shm shm;
    struct ring ring;
    struct ring_guard guard[CARDS];
    uint32_t count;
    int control;
} workers[WORKERS];

static void must(int r, const struct error *e) {
    if (r >= 0) return;
    fprintf(stderr, "guard_actor: %s\n", e->text);
    exit(1);
}

static void publish(struct worker *w) {
    for (uint32_t i = 0; i < w->count; i++) ring_put_guard(&w->ring, i, &w->guard[i]);
    ring_beat(&w->ring, clock_boot_ns());
    ring_toll(&w->ring);
    shm_wake(ring_bell(&w->ring));
}

static void lay_out(const struct instance *where, unsigned n, const struct inventory *cards, uint32_t count) {
    struct worker *w = &workers[n];
    struct error e;
    char path[256];
    const struct ring_spec spec = {.devices = count, .slots = 8, .inventory = cards};
    instance_path(where, path, sizeof path, "ring.%u", n);
    must(shm_create(path, ring_size(count, spec.slots), 0644, &w->shm, &e), &e);
    ring_format(&w->ring, w->shm.mem, &spec, (uint32_t)getpid(), clock_boot_ns());
    w->count = count;
    ring_put_driver(&w->ring, &(struct ring_driver){.state = DRIVER_OK, .since_real_ns = clock_real_ns()});
    for (uint32_t i = 0; i < count; i++)
        ring_put_state(&w->ring, i, &(struct ring_state){.state = DEVICE_OK, .since_real_ns = clock_real_ns()});
    publish(w);
    must(shm_publish(path, &e), &e);
    instance_path(where, path, sizeof path, "sampler.%u.sock", n);
    must(control_listen(path, &w->control, &e), &e);
}

static struct inventory card(int index) {
    struct inventory i = {.index = index, .parent = -1, .temp_slowdown_c = 89, .limit_min_mw = -1};
    snprintf(i.uuid, sizeof i.uuid, "GPU-%d0000000-aaaa", index);
    snprintf(i.name, sizeof i.name, "NVIDIA Actor");
    return i;
}

static struct ring_guard guard(enum guard_control lever, double floor, double baseline) {
    struct ring_guard g = {
        .since_real_ns = clock_real_ns(),
        .mode = lever ? RING_GUARD_ACTS : RING_GUARD_OBSERVES,
        .lever = lever,
        .target = {84, 92, NAN},
        .reading = {81, 70, NAN},
        .floor = floor,
        .baseline = baseline,
        .limit = baseline,
        .withheld_w = lever == GUARD_BY_POWER ? 0 : NAN
    };
    snprintf(g.why, sizeof g.why, lever ? "it can be moved" : "nothing can be moved");
    return g;
}

/* ---- verbs ---- */

static struct ring_guard *guard_at(struct worker *w, int64_t index) {
    for (uint32_t i = 0; i < w->count; i++)
        if (ring_inventory(&w->ring, i)->index == index) return &w->guard[i];
    return NULL;
}

static void act(struct worker *w, const struct control_request *q, struct ring_guard *g) {
    int64_t now_ns = clock_boot_ns();
    if (q->verb == CONTROL_GUARD_SET) {
        g->manual_until_ns = now_ns + q->argument[3] * NS_PER_MS;
        g->confirm_by_ns = q->argument[4] ? now_ns + q->argument[4] * NS_PER_MS : 0;
        if (q->argument[1] == CONTROL_GUARD_LIMIT) g->limit = (double)q->argument[2] / 1e3;
        if (q->argument[1] == CONTROL_GUARD_TARGET) g->target[GUARD_CORE] = (double)q->argument[2] / 1e3;
    } else if (q->verb == CONTROL_GUARD_CONFIRM) {
        g->confirm_by_ns = 0;
    } else {
        g->manual_until_ns = g->confirm_by_ns = 0;
        g->limit = g->baseline;
    }
    publish(w);
}

static void on_guard(void *ctx, const struct control_request *q, struct control_reply *a) {
    struct worker *w = ctx;
    struct ring_guard *g = guard_at(w, q->argument[0]);
    printf("%d %u %lld %lld %lld %lld %lld\n", (int)(w - workers), q->verb, (long long)q->argument[0],
           (long long)q->argument[1], (long long)q->argument[2], (long long)q->argument[3], (long long)q->argument[4]);
    fflush(stdout);
    a->result = g ? 0 : -2;
    if (!g) snprintf(a->text, sizeof a->text, "no such GPU here");
    if (g) act(w, q, g);
}

static const struct control_verb_row verbs[CONTROL_VERBS] = {
    [CONTROL_GUARD_SET] = {"set",     on_guard},
    [CONTROL_GUARD_CONFIRM] = {"confirm", on_guard},
    [CONTROL_GUARD_RESTORE] = {"restore", on_guard},
};

static void serve(void) {
    struct pollfd fds[WORKERS + 1] = {
        [WORKERS] = {.fd = STDIN_FILENO, .events = POLLIN}
    };
    for (int i = 0; i < WORKERS; i++) fds[i] = (struct pollfd){.fd = workers[i].control, .events = POLLIN};
    while (!fds[WORKERS].revents) {
        poll(fds, WORKERS + 1, 200);
        for (int i = 0; i < WORKERS; i++) {
            if (fds[i].revents) control_serve(fds[i].fd, verbs, &workers[i]);
            ring_beat(&workers[i].ring, clock_boot_ns());
        }
    }
}

int main(int argc, char **argv) {
    static struct inventory first[CARDS], second;
    struct instance where;
    struct error e;
    int lock;
    if (argc != 2) return 2;
    must(instance_open(argv[1], &where, &e), &e);
    must(instance_lock(&where, &lock, &e), &e);
    first[0] = card(0);
    first[1] = card(2);
    second = card(1);
    workers[0].guard[0] = guard(GUARD_BY_POWER, 200, 700);
    workers[0].guard[1] = guard(GUARD_BY_NONE, NAN, NAN);
    workers[1].guard[0] = guard(GUARD_BY_CLOCKS, 300, 1530);
    lay_out(&where, 0, first, CARDS);
    lay_out(&where, 1, &second, 1);
    printf("ready\n");
    fflush(stdout);
    serve();
    return 0;
}
