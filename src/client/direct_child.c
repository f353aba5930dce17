#include "client/direct_child.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/guard_restore.h"

/* Values read here are shown at once or not at all. */
#define CURRENT_NS (60 * NS_PER_S)

/* Averages between two readings (GPM) need some time between them. */
#define SECOND_LOOK_NS (150 * NS_PER_MS)

struct child {
    struct direct_shared *s;
    struct gpu_driver *driver;
    struct gpu *gpu[GPU_MAX];
    int ask_fd, answer_fd;
};

static void say(const struct child *c, char what) {
    if (write(c->answer_fd, &what, 1) != 1) _exit(0);
}

static void say_failed(const struct child *c, const struct error *e) {
    c->s->error = *e;
    say(c, DIRECT_FAILED);
}

static int open_driver(struct child *c, const char *library, struct error *e) {
    if (c->driver) return 0;
    int r = gpu_driver_open(library, &c->driver, e);
    if (r < 0) return r;
    struct direct_shared *s = c->s;
    snprintf(s->version, sizeof s->version, "%s", gpu_driver_version(c->driver));
    snprintf(s->library, sizeof s->library, "%s", gpu_library_path(c->driver));
    s->call_count = gpu_calls(c->driver);
    if (s->call_count > GPU_CALLS_MAX) s->call_count = GPU_CALLS_MAX;
    for (unsigned i = 0; i < s->call_count; i++) {
        const struct gpu_call *call = gpu_call(c->driver, i);
        struct direct_call *to = &s->call[i];
        unsigned n = 0;
        snprintf(to->name, sizeof to->name, "%s", call->name);
        to->lists_processes = call->lists_processes;
        to->for_instances = call->for_instances;
        for (; n < DIRECT_METRICS_MAX && call->metrics && call->metrics[n] >= 0; n++) to->metrics[n] = call->metrics[n];
        to->metrics[n] = -1;
    }
    r = gpu_count(c->driver, e);
    if (r < 0) return r;
    s->gpu_count = r < GPU_MAX ? r : GPU_MAX;
    return 0;
}

static void set_state(struct direct_gpu *g, enum device_state state, const char *text) {
    struct ring_state *s = &g->device.state;
    *s = (struct ring_state){.since_boot_ns = clock_boot_ns(), .since_real_ns = clock_real_ns(), .state = state};
    snprintf(s->text, sizeof s->text, "%.*s", (int)sizeof s->text - 1, text);
}

static void know(struct direct_gpu *to, const struct gpu *g, int32_t parent) {
    to->device.inventory = *gpu_inventory(g);
    to->device.inventory.parent = parent;
    to->is_known = true;
    set_state(to, DEVICE_STARTING, "");
}

/* Where a GPU's instances lie: all are numbered in one run, GPU by GPU, as the GPUs are opened. */
static void open_gpu(struct child *c, int32_t index) {
    struct direct_shared *s = c->s;
    struct direct_gpu *to = &s->gpu[index];
    struct error e;
    int r = gpu_open(c->driver, (unsigned)index, &c->gpu[index], &e);
    if (r < 0) {
        c->gpu[index] = NULL;
        memset(to, 0, sizeof *to);
        inventory_init(&to->device.inventory, index);
        set_state(to, r == -EACCES ? DEVICE_FORBIDDEN : DEVICE_LOST, e.text);
        return;
    }
    know(to, c->gpu[index], -1);
    guard_restore_lever(c->gpu[index], to->lever, sizeof to->lever, to->lever_why, sizeof to->lever_why);
    for (unsigned i = 0; i < gpu_instances(c->gpu[index]); i++)
        if (GPU_MAX + s->instance_count < DEVICE_MAX)
            know(&s->gpu[GPU_MAX + s->instance_count++], gpu_instance(c->gpu[index], i), index);
}

static void take(struct direct_gpu *to, const struct sample *sample, const struct ring_processes *p) {
    int64_t for_ns[METRIC_COUNT];
    for (int i = 0; i < METRIC_COUNT; i++) for_ns[i] = CURRENT_NS;
    latest_take(&to->device.latest, sample, for_ns);
    if (p->boot_ns) to->device.processes = *p;
}

/* Makes the calls whose bits are set in `which`; returns those worth asking again. -ENXIO ends it all. */
static int read_calls(struct child *c, struct gpu *g, struct direct_gpu *to, uint64_t which, uint64_t *again) {
    struct sample sample = {.boot_ns = clock_boot_ns(), .real_ns = clock_real_ns()};
    struct ring_processes processes = {0};
    bool is_instance = to->device.inventory.parent >= 0;
    *again = 0;
    for (unsigned i = 0; i < c->s->call_count; i++) {
        if (!(which >> i & 1) || (is_instance && !c->s->call[i].for_instances)) continue;
        say(c, DIRECT_STEP);
        int r = gpu_read(g, i, &sample, &processes);
        to->cost[i] = gpu_cost(g, i);
        if (r == -EAGAIN) *again |= BIT(i);
        if (r == -ENXIO) return r;
        if (r == -ENODEV) {
            set_state(to, DEVICE_LOST, "the driver says that this GPU is lost");
            return 0;
        }
    }
    set_state(to, DEVICE_OK, "");
    take(to, &sample, &processes);
    return 0;
}

static struct gpu *gpu_of(const struct child *c, int32_t place, int32_t *ret_index) {
    const struct direct_gpu *to = &c->s->gpu[place];
    if (place < GPU_MAX) {
        *ret_index = place;
        return c->gpu[place];
    }
    int32_t parent = to->device.inventory.parent;
    unsigned nth = 0;
    for (int32_t i = GPU_MAX; i < place; i++) nth += c->s->gpu[i].device.inventory.parent == parent;
    *ret_index = parent;
    return c->gpu[parent] ? gpu_instance(c->gpu[parent], nth) : NULL;
}

static int read_all(struct child *c, const uint64_t *which, uint64_t *again) {
    struct direct_shared *s = c->s;
    for (int32_t place = 0; place < GPU_MAX + s->instance_count; place++) {
        if (place >= s->gpu_count && place < GPU_MAX) continue;
        int32_t index;
        struct gpu *g = gpu_of(c, place, &index);
        if (!g || s->hung >> index & 1 || !which[place]) continue;
        atomic_store(&s->at, index);
        int r = read_calls(c, g, &s->gpu[place], which[place], &again[place]);
        if (r < 0) return r;
    }
    return 0;
}

static int look(struct child *c, const char *library, char what, struct error *e) {
    static uint64_t which[DEVICE_MAX], again[DEVICE_MAX];
    atomic_store(&c->s->at, -1);
    say(c, DIRECT_STEP);
    int r = open_driver(c, library, e);
    if (r < 0) return r;
    for (int32_t i = 0; i < c->s->gpu_count; i++) {
        if (c->gpu[i] || c->s->hung >> i & 1) continue;
        atomic_store(&c->s->at, i);
        say(c, DIRECT_STEP);
        open_gpu(c, i);
    }
    if (what == DIRECT_INVENTORY) return 0;
    for (int32_t i = 0; i < DEVICE_MAX; i++) {
        which[i] = UINT64_MAX;
        again[i] = 0;
        memset(&c->s->gpu[i].device.latest, 0, c->s->gpu[i].is_known ? sizeof(struct latest) : 0);
    }
    r = read_all(c, which, again);
    uint64_t any = 0;
    for (int32_t i = 0; i < DEVICE_MAX; i++) any |= again[i];
    if (r == 0 && any) {
        clock_sleep_until(clock_boot_ns() + SECOND_LOOK_NS);
        memcpy(which, again, sizeof which);
        r = read_all(c, which, again);
    }
    return r < 0 ? fail(e, r, "the driver went away while it was being read; try again") : 0;
}

noreturn void direct_child(struct direct_shared *s, const char *library, int ask_fd, int answer_fd, pid_t parent) {
    struct child c = {.s = s, .ask_fd = ask_fd, .answer_fd = answer_fd};
    char what;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, who then ends us */
    while (read(ask_fd, &what, 1) == 1) {
        struct error e;
        if (look(&c, library, what, &e) < 0)
            say_failed(&c, &e);
        else
            say(&c, DIRECT_DONE);
    }
    _exit(0);
}
