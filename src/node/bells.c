#include "node/bells.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/shm.h"
#include "base/thread.h"
#include "model/ring.h"

#define STACK_BYTES (64 * 1024)
#define LOOK_NS NS_PER_S            /* whether the file was replaced, when the bell is silent */
#define ABSENT_NS (500 * NS_PER_MS) /* no ring, and for long */
#define SOON_NS (20 * NS_PER_MS)    /* no ring yet: what runs for a moment only must not come before us */
#define SOON_FOR_NS (10 * NS_PER_S)

struct bell {
    char path[256];
    int fd;
    struct shm shm;
    struct ring ring;
    uint64_t turn[DEVICE_MAX];
};

static void ring_out(const struct bell *b) {
    uint64_t one = 1;
    if (write(b->fd, &one, sizeof one) < 0) return; /* it is readable already */
}

static bool is_news(struct bell *b) {
    bool is_new = false;
    for (uint32_t d = 0; d < ring_devices(&b->ring) && d < DEVICE_MAX; d++) {
        uint64_t turn = ring_processes_turn(&b->ring, d);
        is_new |= turn != b->turn[d];
        b->turn[d] = turn;
    }
    return is_new;
}

/* Until the file is another one: a sampler that replaces it tolls the old bell. */
static void follow(struct bell *b) {
    for (;;) {
        uint32_t seen = atomic_load(ring_bell(&b->ring));
        if (is_news(b)) ring_out(b);
        if (shm_is_replaced(&b->shm, b->path)) return;
        shm_wait(ring_bell(&b->ring), seen, LOOK_NS);
    }
}

static void *run(void *arg) {
    struct bell *b = arg;
    pthread_setname_np(pthread_self(), "bell");
    clock_be_prompt();
    for (int64_t since_ns = clock_boot_ns();;) {
        struct error e;
        bool has_followed = false;
        if (shm_open_file(b->path, false, 4096, &b->shm, &e) >= 0) {
            has_followed = ring_attach(&b->ring, b->shm.mem, b->shm.size, &e) >= 0;
            if (has_followed) {
                ring_out(b);
                follow(b);
                since_ns = clock_boot_ns();
            }
            shm_done(&b->shm);
            ring_out(b);
        }
        if (has_followed && access(b->path, F_OK) == 0) continue; /* the next one is there */
        int64_t now_ns = clock_boot_ns();
        clock_sleep_until(now_ns + (now_ns - since_ns < SOON_FOR_NS ? SOON_NS : ABSENT_NS));
    }
    return NULL;
}

void bells_start(const struct instance *where, unsigned workers, int fd) {
    for (unsigned i = 0; i < workers; i++) {
        struct error e;
        struct bell *b = calloc(1, sizeof *b); /* lives as long as its thread: for good */
        if (!b) break;
        instance_path(where, b->path, sizeof b->path, "ring.%u", i);
        b->fd = fd;
        if (thread_start(run, b, STACK_BYTES, "the ring", &e) >= 0) continue;
        log_line(LOG_WARN, "thread", -1, "nobody waits on %s: tasks are noticed once a second: %s", b->path, e.text);
        free(b);
    }
}
