#include "client/top_feed.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/task_table.h"
#include "client/top_proc.h"
#include "client/top_remote.h"

int64_t top_newest_ns(const struct view *v) {
    int64_t newest = 0;
    for (size_t i = 0; i < v->count; i++)
        for (int m = 0; m < METRIC_COUNT; m++)
            if (v->of[i].latest.of[m].boot_ns > newest) newest = v->of[i].latest.of[m].boot_ns;
    return newest;
}

void top_remember(struct history *h, const struct view *v) {
    for (size_t i = 0; i < v->count; i++) {
        struct history_device *d = history_of(h, v->of[i].inventory.uuid);
        for (int m = 0; m < METRIC_COUNT; m++)
            if (latest_has(&v->of[i].latest, m, v->boot_ns))
                history_put(d, m, v->of[i].latest.of[m].boot_ns / NS_PER_S, v->of[i].latest.of[m].value);
    }
}

void top_feed_close(struct top_feed *f) {
    if (f) f->kind->close(f);
}

int top_feed_once(struct top_feed *f, struct top_data *d, int64_t timeout_ns, struct error *e) {
    int64_t until = clock_boot_ns() + timeout_ns;
    f->kind->ask(f);
    while (!f->kind->take(f, d, false)) {
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        int64_t left = until - clock_boot_ns();
        if (left <= 0 || *d->problem) break;
        poll(&p, 1, f->fd >= 0 ? (int)(left / NS_PER_MS) + 1 : 20);
    }
    if (*d->problem) return fail(e, -EIO, "%s", d->problem);
    return d->newest_ns || d->view.count
               ? 0
               : fail(e, -ETIMEDOUT, "nothing came within %lld s", (long long)(timeout_ns / NS_PER_S));
}

/* ---- rings ---- */

struct feed_rings {
    struct top_feed feed;
    struct source *source;
    struct top_proc *proc;
    struct task_table tasks; /* who knows the names of containers */
    bool has_looked_back;
};

/* What a ring holds beyond what is known of each of its devices. */
static void pull(const struct rings *r, unsigned at, struct history *h) {
    const struct ring *ring = &r->of[at].ring;
    unsigned worker = at << 24 ^ ring_writer(ring);
    for (uint32_t n = 0; n < ring_devices(ring); n++) {
        char uuid[sizeof ring_inventory(ring, n)->uuid];
        snprintf(uuid, sizeof uuid, "%.*s", (int)sizeof uuid - 1, ring_inventory(ring, n)->uuid);
        struct history_device *d = history_of(h, uuid);
        uint64_t head = ring_head(ring, n), slots = ring_slots(ring);
        if (d->worker != worker || d->number > head) d->number = 0;
        d->worker = worker;
        uint64_t from = head > slots && d->number + slots < head ? head - slots + 1 : d->number + 1;
        for (; from <= head; from++) {
            struct sample s;
            if (ring_sample(ring, n, from, &s)) history_take(d, &s);
        }
        d->number = head;
    }
}

static void rings_ask(struct top_feed *f) {}

/* Processes in a container by its name: the node knows it from the engine. */
static void name_containers(struct feed_rings *f, struct top_processes *p) {
    struct error ignored;
    for (int i = 0; i < p->count; i++) {
        struct top_process *one = &p->of[i];
        if (!*one->container || !one->is_here) continue;
        if (!*f->tasks.path && task_table_open(&f->tasks, &f->source->instance, &ignored) < 0) continue;
        task_table_container(&f->tasks, one->pid, one->start_ticks, one->container, sizeof one->container);
    }
}

static bool rings_take(struct top_feed *feed, struct top_data *d, bool is_paused) {
    struct feed_rings *f = (struct feed_rings *)feed;
    struct rings *r = &f->source->rings;
    struct error e;
    rings_refresh(r);
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (r->of[i].is_open) pull(r, i, &d->history);
    if (is_paused) return true;
    d->problem[0] = 0;
    if (source_view(f->source, &d->view, &e) < 0) snprintf(d->problem, sizeof d->problem, "%s", e.text);
    if (!rings_count(r))
        snprintf(d->problem, sizeof d->problem, "%s",
                 *r->problem ? r->problem : "gpumgr has stopped; waiting for it to start again");
    int64_t newest = top_newest_ns(&d->view);
    if (newest) d->newest_ns = newest;
    top_proc_list(f->proc, &d->view, &d->processes);
    name_containers(f, &d->processes);
    if (!f->has_looked_back && d->view.count) {
        char path[PATH_MAX];
        instance_path(&f->source->instance, path, sizeof path, "server/api.sock");
        top_past_local(path, &d->view, &d->history);
        f->has_looked_back = true;
    }
    return true;
}

static void rings_feed_close(struct top_feed *feed) {
    struct feed_rings *f = (struct feed_rings *)feed;
    top_proc_free(f->proc);
    task_table_close(&f->tasks);
    free(f);
}

struct top_feed *top_feed_rings(struct source *s) {
    static const struct top_feed_kind kind = {rings_ask, rings_take, rings_feed_close};
    struct feed_rings *f = calloc(1, sizeof *f);
    if (!f) abort();
    *f = (struct feed_rings){
        .feed = {.kind = &kind, .fd = -1},
          .source = s, .proc = top_proc_new()
    };
    return &f->feed;
}

/* ---- the driver, whose calls may take long ---- */

struct feed_driver {
    struct top_feed feed;
    struct source *source;
    struct top_proc *proc;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    bool is_asked, is_over, is_new;
    struct view view; /* what came last, with the lock */
    struct error error;
};

static void *driver_thread(void *arg) {
    struct feed_driver *f = arg;
    AUTO(view_done) struct view mine = {0};
    uint64_t one = 1;
    pthread_mutex_lock(&f->lock);
    while (!f->is_over) {
        if (!f->is_asked) {
            pthread_cond_wait(&f->asked, &f->lock);
            continue;
        }
        pthread_mutex_unlock(&f->lock);
        struct error e = {0};
        int r = source_view(f->source, &mine, &e);
        pthread_mutex_lock(&f->lock);
        if (r == 0) {
            struct view before = f->view;
            f->view = mine;
            mine = before;
        }
        f->error = e;
        f->is_new = true;
        f->is_asked = false;
        ssize_t ignored = write(f->feed.fd, &one, sizeof one);
        (void)ignored;
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void driver_ask(struct top_feed *feed) {
    struct feed_driver *f = (struct feed_driver *)feed;
    pthread_mutex_lock(&f->lock);
    f->is_asked = true;
    pthread_cond_signal(&f->asked);
    pthread_mutex_unlock(&f->lock);
}

static bool driver_take(struct top_feed *feed, struct top_data *d, bool is_paused) {
    struct feed_driver *f = (struct feed_driver *)feed;
    uint64_t count;
    ssize_t ignored = read(f->feed.fd, &count, sizeof count);
    (void)ignored;
    pthread_mutex_lock(&f->lock);
    bool is_new = f->is_new;
    f->is_new = false;
    if (is_new && !is_paused) {
        struct view before = d->view;
        d->view = f->view;
        f->view = before;
        snprintf(d->problem, sizeof d->problem, "%s", f->error.text);
    }
    pthread_mutex_unlock(&f->lock);
    if (!is_new || is_paused) return false;
    top_remember(&d->history, &d->view);
    int64_t newest = top_newest_ns(&d->view);
    if (newest) d->newest_ns = newest;
    top_proc_list(f->proc, &d->view, &d->processes);
    return true;
}

static void driver_close(struct top_feed *feed) {
    struct feed_driver *f = (struct feed_driver *)feed;
    pthread_mutex_lock(&f->lock);
    f->is_over = true;
    pthread_cond_signal(&f->asked);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    view_done(&f->view);
    top_proc_free(f->proc);
    close(f->feed.fd);
    free(f);
}

struct top_feed *top_feed_driver(struct source *s) {
    static const struct top_feed_kind kind = {driver_ask, driver_take, driver_close};
    struct feed_driver *f = calloc(1, sizeof *f);
    if (!f) abort();
    f->feed = (struct top_feed){.kind = &kind, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    f->source = s;
    f->proc = top_proc_new();
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->asked, NULL);
    if (f->feed.fd < 0 || pthread_create(&f->thread, NULL, driver_thread, f) != 0) abort();
    return &f->feed;
}
