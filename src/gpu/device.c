/* The device interface over the back ends: remembers what each GPU supports and what each call costs, and lets no
 * impossible figure through. */
#include "gpu/device.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "gpu/backend.h"
#include "model/plausible.h"

/* Asking for the thread's CPU time costs as much as a cheap call: measure a few in many. */
#define MEASURE_EVERY 64
#define MEASURE_FIRST 8
#define FIRST_AGAIN_NS (3 * NS_PER_MS)

static const struct gpu_backend *const backends[] = {&nvml_backend};

int gpu_driver_open(const char *library, struct gpu_driver **ret, struct error *e) {
    int r = -ENODEV;
    for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
        r = backends[i]->open(library, ret, e);
        if (r >= 0) break;
    }
    return r;
}

void gpu_driver_close(struct gpu_driver *d) {
    if (d) d->backend->close(d);
}

const char *gpu_driver_version(const struct gpu_driver *d) { return d->version; }
const char *gpu_library_path(const struct gpu_driver *d) { return d->library; }
int gpu_count(struct gpu_driver *d, struct error *e) { return d->backend->count(d, e); }

int gpu_open(struct gpu_driver *d, unsigned index, struct gpu **ret, struct error *e) {
    return d->backend->gpu_open(d, index, ret, e);
}

void gpu_close(struct gpu *g) {
    if (g) g->driver->backend->gpu_close(g);
}

const struct inventory *gpu_inventory(const struct gpu *g) { return &g->inventory; }
unsigned gpu_instances(const struct gpu *g) { return g->instance_count; }
struct gpu *gpu_instance(const struct gpu *g, unsigned i) {
    return i < g->instance_count ? g->instance[i] : NULL;
}
int gpu_is_recut(struct gpu *g) { return g->driver->backend->is_recut(g); }
unsigned gpu_calls(const struct gpu_driver *d) { return d->backend->calls(); }
const struct gpu_call *gpu_call(const struct gpu_driver *d, unsigned call) { return d->backend->call(call); }

#define GET(member) atomic_load_explicit(&(member), memory_order_relaxed)
#define SET(member, value) atomic_store_explicit(&(member), (value), memory_order_relaxed)

struct gpu_cost gpu_cost(const struct gpu *g, unsigned call) {
    const struct gpu_note *n = &g->note[call];
    const char *why = GET(n->why);
    struct gpu_cost c = {.support = (enum gpu_support)GET(n->support),
                         .made = GET(n->made),
                         .wall_ns = GET(n->wall_ns),
                         .cpu_ns = GET(n->cpu_ns)};
    if (why) snprintf(c.why, sizeof c.why, "%s", why);
    return c;
}

/* What the result means, and what it teaches. A call that has worked and fails later has a fault; it is not missing. */
static int remember(struct gpu *g, unsigned call, int r) {
    struct gpu_note *n = &g->note[call];
    if (r >= 0) {
        SET(n->support, SUPPORT_YES);
        return r;
    }
    if (r == -ENODEV || r == -ENXIO) return r;
    if (GET(n->support) == SUPPORT_YES) return r == -EINVAL ? r : -EAGAIN;
    if (r != -ENOTSUP && r != -EINVAL && r != -EACCES) return -EAGAIN;
    SET(n->why, r == -EACCES ? "no permission" : g->driver->backend->why_not(g, call));
    SET(n->support, r == -EACCES ? SUPPORT_FORBIDDEN : SUPPORT_NO);
    return -ENOTSUP;
}

/* Makes the call and notes what it cost. Noise only ever adds (a cold cache, another process on the core), so less is
 * believed at once and more only slowly. */
static int read_measured(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p) {
    struct gpu_note *n = &g->note[call];
    int64_t wall_ns = clock_boot_ns(), cpu_ns = clock_thread_cpu_ns();
    int r = g->driver->backend->read(g, call, s, p);
    wall_ns = clock_boot_ns() - wall_ns;
    cpu_ns = clock_thread_cpu_ns() - cpu_ns;
    int64_t wall_was = GET(n->wall_ns), cpu_was = GET(n->cpu_ns);
    SET(n->wall_ns, !wall_was || wall_ns < wall_was ? wall_ns : (wall_was * 7 + wall_ns) / 8);
    SET(n->cpu_ns, !cpu_was || cpu_ns < cpu_was ? cpu_ns : (cpu_was * 7 + cpu_ns) / 8);
    return r;
}

/* The first call pays for cold caches and for what is set up once (a hundred times the usual price, seen on an H200):
 * one that is not dear is made three times, and the cheapest one tells the cost. */
static int read_first(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p) {
    int r = read_measured(g, call, s, p);
    for (int again = 0; again < 2 && r >= 0 && GET(g->note[call].wall_ns) < FIRST_AGAIN_NS; again++) {
        int next = read_measured(g, call, s, p);
        if (next < 0) break;
        r = next;
    }
    return r;
}

/* Drops what cannot be true and marks what was asked for. What this GPU has never told by this call was not: another
 * call may tell it. */
static int metrics_check(struct sample *s, const int *ids, struct gpu_note *n) {
    uint64_t yields = GET(n->yields);
    int came = 0;
    for (int i = 0; ids[i] >= 0; i++) {
        if (sample_has(s, ids[i]) && !value_is_plausible(metrics[ids[i]].unit, s->value[ids[i]]))
            bits_clear(s->has, ids[i]);
        if (sample_has(s, ids[i])) {
            yields |= BIT(i);
            came++;
        }
        if (yields & BIT(i)) bits_set(s->asked, ids[i]);
    }
    SET(n->yields, yields);
    return came;
}

int gpu_read(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p) {
    const struct gpu_backend *backend = g->driver->backend;
    struct gpu_note *n = &g->note[call];
    const int *ids = backend->call(call)->metrics;
    int support = GET(n->support);
    if (support == SUPPORT_NO || support == SUPPORT_FORBIDDEN) return -ENOTSUP;

    uint32_t made = GET(n->made);
    SET(n->made, made + 1);
    int r = support != SUPPORT_YES                              ? read_first(g, call, s, p)
            : made < MEASURE_FIRST || made % MEASURE_EVERY == 0 ? read_measured(g, call, s, p)
                                                                : backend->read(g, call, s, p);
    r = remember(g, call, r);
    if (r == -ENOTSUP) return r; /* another call may yield the same metrics: nothing is known to be absent */

    int came = metrics_check(s, ids, n);
    return r < 0 ? r : came;
}

int gpu_events_open(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret,
                    struct error *e) {
    return d->backend->events_open(d, gpus, n, ret, e);
}

void gpu_events_close(struct gpu_events *ev) {
    if (ev) ev->backend->events_close(ev);
}

int gpu_events_wait(struct gpu_events *ev, int timeout_ms, struct gpu_xid *ret) {
    return ev->backend->events_wait(ev, timeout_ms, ret);
}
