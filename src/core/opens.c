#include "core/opens.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/openings.h"

#define STACK_BYTES (64 * 1024)
#define COMING_NS (3 * NS_PER_S) /* CUDA takes some 0.3 s from the first open until it is listed */
#define AGAIN_NS (10 * NS_PER_S) /* device files come with the driver */
#define SOON_NS (100 * NS_PER_MS)
#define SOON_TRIES 100

int opens_minor(struct opens *o, unsigned i) {
    const struct watch *w = &o->watches[i];
    if (!watch_is_running(&o->watches[i]) || w->device < 0) return -1;
    const struct inventory *inv = ring_inventory(&w->common->board->ring, (unsigned)w->device);
    return inv->minor >= 0 ? inv->minor : inv->index;
}

static void mark_all(struct opens *o, struct openings *files) {
    char path[512];
    openings_renew(files);
    for (unsigned i = 0; i < o->count; i++) {
        int minor = opens_minor(o, i);
        if (minor < 0) continue;
        snprintf(path, sizeof path, "%s/nvidia%d", o->dir, minor);
        (void)openings_add(files, path, i);
    }
}

/* Our own readings open the file, too. */
static void announce(void *ctx, int64_t tag, int32_t pid) {
    struct opens *o = ctx;
    int64_t now_ns = clock_boot_ns();
    if (pid == getpid()) return;
    for (unsigned i = 0; i < o->count; i++)
        if ((tag == OPENINGS_ANY || tag == i) && watch_is_running(&o->watches[i]))
            watch_hunt(&o->watches[i], pid ? (uint32_t)pid : WATCH_OPENER, now_ns, now_ns + COMING_NS);
}

/* For so long, or until shortly after a file went away: then they are all marked anew. */
static void follow(struct opens *o, struct openings *files, int64_t for_ns) {
    int64_t until_ns = clock_boot_ns() + for_ns;
    for (;;) {
        int64_t left_ns = until_ns - clock_boot_ns();
        struct pollfd p = {.fd = files->fd, .events = POLLIN};
        if (left_ns <= 0) return;
        int r = poll(&p, 1, (int)(left_ns / NS_PER_MS) + 1);
        if (r > 0 && !openings_read(files, announce, o)) until_ns = clock_boot_ns() + SOON_NS;
    }
}

static void *opens_main(void *arg) {
    struct opens *o = arg;
    struct openings_file file[GPU_MAX];
    struct openings files;
    pthread_setname_np(pthread_self(), "opens");
    clock_be_prompt();
    openings_begin(&files, file, GPU_MAX);
    if (files.fd < 0) {
        log_line(LOG_WARN, "no_inotify", -1, "new processes are noticed at the next round only: %s", strerror(errno));
        return NULL;
    }
    for (unsigned tries = 0;; tries++) {
        mark_all(o, &files);
        /* Cards that are not running yet have no mark: soon after the start they will have. */
        follow(o, &files, files.count >= o->count || tries >= SOON_TRIES ? AGAIN_NS : SOON_NS);
    }
}

void opens_start(struct opens *o) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, opens_main, o)) log_line(LOG_WARN, "thread", -1, "device files are not watched");
    pthread_attr_destroy(&attr);
}
