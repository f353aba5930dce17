/* The device interface over the back ends: remembers what each GPU supports and what each call costs, and lets no
 * impossible figure through. */
#include "gpu/device.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/backend.h"
#include "model/plausible.h"

/* Asking for the thread's CPU time costs as much as a cheap call: measure a few in many. */
#define MEASURE_EVERY 64
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
struct gpu_cost gpu_cost(const struct gpu *g, unsigned call) {
    return g->cost[call];
}

static void remember_support(struct gpu_cost *c, int r) {
    if (r >= 0) c->support = SUPPORT_YES;
    if (c->support == SUPPORT_YES) return; /* it has worked: what fails later is a fault, not a missing ability */
    if (r == -ENOTSUP) c->support = SUPPORT_NO;
    if (r == -EACCES) c->support = SUPPORT_FORBIDDEN;
}

/* Makes the call and notes what it cost; smoothed, so that one slow answer does not change the plan. */
static int read_measured(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p, bool is_fresh) {
    struct gpu_cost *c = &g->cost[call];
    int64_t wall_ns = clock_boot_ns(), cpu_ns = clock_thread_cpu_ns();
    int r = g->driver->backend->read(g, call, s, p);
    wall_ns = clock_boot_ns() - wall_ns;
    cpu_ns = clock_thread_cpu_ns() - cpu_ns;
    c->wall_ns = is_fresh ? wall_ns : (c->wall_ns * 7 + wall_ns) / 8;
    c->cpu_ns = is_fresh ? cpu_ns : (c->cpu_ns * 7 + cpu_ns) / 8;
    return r;
}

/* The first call pays for cold caches and for what is set up once (a hundred times the usual price, seen on an H200):
 * one that is not dear is made twice, and the second one tells the cost. */
static int read_first(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p) {
    int r = read_measured(g, call, s, p, true);
    if (r >= 0 && g->cost[call].wall_ns < FIRST_AGAIN_NS) r = read_measured(g, call, s, p, true);
    return r;
}

int gpu_read(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p) {
    const struct gpu_backend *backend = g->driver->backend;
    struct gpu_cost *cost = &g->cost[call];
    const int *ids = backend->call(call)->metrics;
    if (cost->support == SUPPORT_NO || cost->support == SUPPORT_FORBIDDEN) return -ENOTSUP;

    uint32_t made = cost->made++;
    int r = made == 0                   ? read_first(g, call, s, p)
            : made % MEASURE_EVERY == 0 ? read_measured(g, call, s, p, false)
                                        : backend->read(g, call, s, p);
    remember_support(cost, r);

    int came = 0;
    for (int i = 0; ids[i] >= 0; i++) {
        bits_set(s->asked, ids[i]);
        if (!sample_has(s, ids[i])) continue;
        if (!value_is_plausible(metrics[ids[i]].unit, s->value[ids[i]]))
            bits_clear(s->has, ids[i]);
        else
            came++;
    }
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
