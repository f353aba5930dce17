#include "client/rings.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static void let_go(struct rings_one *one) {
    shm_done(&one->shm);
    one->ring = (struct ring){0};
    one->is_open = false;
}

static int take_up(struct rings_one *one, struct error *e) {
    int r = shm_open_file(one->path, false, 1, &one->shm, e);
    if (r < 0) return r;
    r = ring_attach(&one->ring, one->shm.mem, one->shm.size, e);
    if (r < 0) {
        shm_done(&one->shm);
        return fail_in(e, r, "%s", one->path);
    }
    one->is_open = true;
    return 0;
}

void rings_refresh(struct rings *r) {
    r->problem[0] = 0;
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        struct rings_one *one = &r->of[i];
        struct error e;
        if (one->is_open && !shm_is_replaced(&one->shm, one->path)) continue;
        if (one->is_open) let_go(one);
        int got = take_up(one, &e);
        if (got < 0 && got != -ENOENT) snprintf(r->problem, sizeof r->problem, "%.*s", 159, e.text);
    }
}

void rings_open(struct rings *r, const struct instance *where) {
    memset(r, 0, sizeof *r);
    r->where = *where;
    for (int i = 0; i < RINGS_MAX; i++) instance_path(where, r->of[i].path, sizeof r->of[i].path, "ring.%d", i);
    rings_refresh(r);
}

void rings_close(struct rings *r) {
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (r->of[i].is_open) let_go(&r->of[i]);
}

unsigned rings_count(const struct rings *r) {
    unsigned n = 0;
    for (unsigned i = 0; i < RINGS_MAX; i++) n += r->of[i].is_open;
    return n;
}

static int64_t silence_ns(const struct rings_one *one, int64_t now_boot_ns) {
    int64_t ns = now_boot_ns - ring_beat_ns(&one->ring);
    return ns > RINGS_SILENT_NS ? ns : 0;
}

static bool has_process(const struct rings_one *one) {
    return kill((pid_t)ring_writer(&one->ring), 0) == 0 || errno == EPERM;
}

bool rings_are_live(const struct rings *r, int64_t now_boot_ns) {
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (r->of[i].is_open && !silence_ns(&r->of[i], now_boot_ns) && has_process(&r->of[i])) return true;
    return false;
}

int64_t rings_newest_ns(const struct rings *r) {
    struct sample s;
    int64_t newest = 0;
    for (unsigned i = 0; i < RINGS_MAX; i++)
        for (uint32_t d = 0; r->of[i].is_open && d < ring_devices(&r->of[i].ring); d++)
            if (ring_sample(&r->of[i].ring, d, ring_head(&r->of[i].ring, d), &s) && s.boot_ns > newest)
                newest = s.boot_ns;
    return newest;
}

/* ---- into a view ---- */

static void fill_events(const struct ring *ring, size_t first, struct view *v) {
    uint64_t head = ring_event_head(ring), oldest = head > RING_EVENTS ? head - RING_EVENTS + 1 : 1;
    for (uint64_t n = oldest; n <= head; n++) {
        struct event ev;
        if (!ring_event(ring, n, &ev)) continue;
        if (ev.device >= (int32_t)ring_devices(ring)) ev.device = -1;
        if (ev.device >= 0) ev.device += (int32_t)first;
        view_add_event(v, &ev);
    }
}

static void fill_one(const struct rings *r, unsigned worker, struct view *v) {
    const struct rings_one *one = &r->of[worker];
    const struct ring *ring = &one->ring;
    size_t first = v->count;
    struct ring_driver driver = {0};
    if (ring_driver(ring, &driver) && (v->driver.since_real_ns == 0 || driver.state != DRIVER_OK)) v->driver = driver;
    for (uint32_t n = 0; n < ring_devices(ring); n++) {
        struct view_device *d = view_add(v);
        d->inventory = *ring_inventory(ring, n);
        if (view_is_instance(d)) d->inventory.parent += (int32_t)first;
        if (!ring_state(ring, n, &d->state)) d->state = (struct ring_state){0};
        if (!ring_latest(ring, n, &d->latest)) memset(&d->latest, 0, sizeof d->latest);
        if (!ring_processes(ring, n, &d->processes)) memset(&d->processes, 0, sizeof d->processes);
        if (!ring_xids(ring, n, &d->xids)) memset(&d->xids, 0, sizeof d->xids);
        d->has_guard = ring_guard(ring, n, &d->guard) && (d->guard.since_real_ns || *d->guard.why);
        d->worker = worker;
        d->silent_ns = silence_ns(one, v->boot_ns);
    }
    fill_events(ring, first, v);
}

void rings_fill(const struct rings *r, struct view *v) {
    view_clear(v);
    v->source = VIEW_DAEMON;
    v->boot_ns = clock_boot_ns();
    v->real_ns = clock_real_ns();
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (r->of[i].is_open) fill_one(r, i, v);
    view_make_safe(v);
    view_order(v);
}

/* ---- waiting ---- */

struct rings_bells rings_listen(const struct rings *r) {
    struct rings_bells b = {{0}};
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (r->of[i].is_open) b.seen[i] = atomic_load_explicit(ring_bell(&r->of[i].ring), memory_order_acquire);
    return b;
}

/* One futex word can be waited on at a time (more needs Linux 5.16): the first live ring's. The others tick at the
 * same rate, so what they say is shown with it. */
void rings_wait(const struct rings *r, const struct rings_bells *before, int64_t timeout_ns) {
    int64_t now = clock_boot_ns();
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        if (!r->of[i].is_open || silence_ns(&r->of[i], now)) continue;
        shm_wait(ring_bell(&r->of[i].ring), before->seen[i], timeout_ns);
        return;
    }
    usleep((useconds_t)(timeout_ns / NS_PER_US));
}
