#include "core/board.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define ENERGY_GAP_NS (30 * NS_PER_S)

static int gpu_index(const struct board *b, int device) {
    return device < 0 || (unsigned)device >= b->count ? -1 : ring_inventory(&b->ring, (unsigned)device)->index;
}

static void toll(struct board *b) {
    ring_toll(&b->ring);
    shm_wake(ring_bell(&b->ring));
}

/* ---- opening ---- */

static void devices_init(struct board *b, unsigned count, int64_t now_ns, bool is_adopted) {
    b->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct board_device *d = &b->device[i];
        memset(d, 0, sizeof *d);
        pthread_mutex_init(&d->lock, NULL);
        d->health.first_ns = now_ns;
        for (int m = 0; m < METRIC_COUNT; m++) d->for_ns[m] = 5 * NS_PER_S;
        struct ring_xids xids;
        if (!is_adopted) continue;
        if (ring_latest(&b->ring, i, &d->latest)) d->energy.joules = d->latest.of[METRIC_ENERGY].value;
        if (!ring_xids(&b->ring, i, &xids)) continue;
        for (uint64_t k = 0; k < xids.count && k < XID_CODES_MAX; k++) {
            d->xids.of[k].code = xids.of[k].code;
            d->xids.of[k].last_real_ns = xids.of[k].last_real_ns;
            d->xids.of[k].total = d->xids.of[k].seen[XID_FROM_DRIVER] = d->xids.of[k].seen[XID_FROM_LOG] =
                xids.of[k].count;
            d->xids.count++;
        }
    }
}

/* Nothing of the board may be used until it is open again. */
static void ring_leave(struct board *b) {
    shm_done(&b->shm);
    memset(&b->ring, 0, sizeof b->ring);
    b->count = 0;
}

static bool adopt(struct board *b, const char *path, const struct ring_spec *spec) {
    struct error ignored;
    struct shm shm = {0};
    struct ring ring;
    if (shm_open_file(path, true, 4096, &shm, &ignored) < 0) return false;
    if (ring_attach(&ring, shm.mem, shm.size, &ignored) < 0 ||
        !ring_adopt(&ring, spec, (uint32_t)getpid(), clock_boot_ns())) {
        shm_done(&shm);
        return false;
    }
    b->shm = shm;
    b->ring = ring;
    return true;
}

/* Whoever waits on the bell of the file that was here before is to look for the new one. */
static int publish(const char *path, struct error *e) {
    AUTO(shm_done) struct shm old = {0};
    struct error ignored;
    struct ring ring;
    bool has_old =
        shm_open_file(path, true, 4096, &old, &ignored) >= 0 && ring_attach(&ring, old.mem, old.size, &ignored) >= 0;
    int r = shm_publish(path, e);
    if (r < 0 || !has_old) return r;
    ring_toll(&ring);
    shm_wake(ring_bell(&ring));
    return 0;
}

static int create(struct board *b, const char *path, const struct ring_spec *spec, struct error *e) {
    struct shm shm = {0};
    int r = shm_create(path, ring_size(spec->devices, spec->slots), 0644, &shm, e);
    if (r < 0) return r;
    ring_format(&b->ring, shm.mem, spec, (uint32_t)getpid(), clock_boot_ns());
    r = publish(path, e);
    if (r < 0) {
        shm_done(&shm);
        return r;
    }
    b->shm = shm;
    return 0;
}

static void state_put(struct board *b, unsigned device, enum device_state state, const char *text) {
    struct ring_state s = {.since_boot_ns = clock_boot_ns(), .since_real_ns = clock_real_ns(), .state = state};
    snprintf(s.text, sizeof s.text, "%s", text);
    b->device[device].state = state;
    ring_put_state(&b->ring, device, &s);
}

/* Values of a card that does not answer are gone, whoever holds them. */
static void values_drop(struct board *b, unsigned device) {
    struct ring_processes nobody = {.boot_ns = 0};
    memset(&b->device[device].latest, 0, sizeof b->device[device].latest);
    ring_put_latest(&b->ring, device, &b->device[device].latest);
    ring_put_processes(&b->ring, device, &nobody);
}

int board_open(struct board *b, const char *path, const struct ring_spec *spec, struct error *e) {
    pthread_mutex_init(&b->event_lock, NULL);
    ring_leave(b);
    bool is_adopted = adopt(b, path, spec);
    if (!is_adopted) {
        int r = create(b, path, spec, e);
        if (r < 0) return r;
    }
    devices_init(b, spec->devices, clock_boot_ns(), is_adopted);
    for (unsigned i = 0; i < b->count; i++) state_put(b, i, DEVICE_STARTING, "");
    toll(b);
    return 0;
}

int board_open_absent(struct board *b, const char *path, const char *why, struct error *e) {
    struct error ignored;
    pthread_mutex_init(&b->event_lock, NULL);
    ring_leave(b);
    const struct ring_spec none = {.devices = 0, .slots = 64};
    bool have = shm_open_file(path, true, 4096, &b->shm, &ignored) == 0 &&
                ring_attach(&b->ring, b->shm.mem, b->shm.size, &ignored) == 0 &&
                ring_inherit(&b->ring, (uint32_t)getpid(), clock_boot_ns());
    if (!have) {
        ring_leave(b);
        int r = create(b, path, &none, e);
        if (r < 0) return r;
    }
    devices_init(b, ring_devices(&b->ring), clock_boot_ns(), have);
    ring_beat(&b->ring, clock_boot_ns());
    for (unsigned i = 0; i < b->count; i++) {
        values_drop(b, i);
        state_put(b, i, DEVICE_LOST, why);
    }
    board_driver(b, DRIVER_ABSENT, why);
    return 0;
}

void board_driver(struct board *b, enum ring_driver_state state, const char *text) {
    struct ring_driver d = {.since_real_ns = clock_real_ns(), .state = state};
    snprintf(d.text, sizeof d.text, "%s", text);
    pthread_mutex_lock(&b->event_lock);
    ring_put_driver(&b->ring, &d);
    pthread_mutex_unlock(&b->event_lock);
    toll(b);
}

unsigned board_remembered(const char *path, int index, struct inventory *ret, unsigned room) {
    struct error ignored;
    AUTO(shm_done) struct shm shm = {0};
    struct ring ring;
    unsigned n = 0;
    if (shm_open_file(path, false, 4096, &shm, &ignored) < 0 || ring_attach(&ring, shm.mem, shm.size, &ignored) < 0)
        return 0;
    for (uint32_t d = 0; d < ring_devices(&ring) && n < room; d++)
        if (ring_inventory(&ring, d)->index == index) ret[n++] = *ring_inventory(&ring, d);
    return n;
}

/* ---- readings ---- */

void board_begin(struct board *b, unsigned device, int64_t now_ns) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    d->health.asked_ns = now_ns;
    pthread_mutex_unlock(&d->lock);
}

static void energy_take(struct board_device *d, struct sample *s) {
    if (sample_has(s, METRIC_ENERGY)) sample_put(s, METRIC_ENERGY, energy_correct(&d->energy, s->value[METRIC_ENERGY]));
    if (!sample_has(s, METRIC_POWER)) return;
    double joules = energy_step(&d->energy, s->value[METRIC_POWER], s->boot_ns, ENERGY_GAP_NS);
    if (d->energy.has_counter || d->energy_is_ours) sample_put(s, METRIC_ENERGY, joules);
}

static void sample_out(struct board *b, unsigned device, struct sample *s) {
    struct board_device *d = &b->device[device];
    energy_take(d, s);
    latest_take(&d->latest, s, d->for_ns);
    ring_put_sample(&b->ring, device, s);
    ring_put_latest(&b->ring, device, &d->latest);
}

static const char *state_kind(enum device_state s) {
    static const char *const kinds[] = {"gpu_starting", "gpu_back",   "gpu_not_answering",
                                        "gpu_lost",     "gpu_fenced", "gpu_forbidden"};
    return kinds[s];
}

/* Under the device's lock. */
static void judge(struct board *b, unsigned device, int64_t now_ns) {
    struct board_device *d = &b->device[device];
    enum device_state was = d->state;
    enum device_state is = health_state(&d->health, now_ns, b->answer_ns, b->lost_ns);
    if (is == was) return;
    char text[104] = "";
    if (is != DEVICE_OK && is != DEVICE_STARTING) {
        snprintf(text, sizeof text, "%s", d->trouble[0] ? d->trouble : "a call to the driver has not come back");
        values_drop(b, device);
    }
    state_put(b, device, is, text);
    toll(b);
    bool is_first = is == DEVICE_OK && was == DEVICE_STARTING;
    if (is_first || ring_inventory(&b->ring, device)->parent >= 0) return;
    if (is == DEVICE_OK)
        board_event(b, EVENT_INFO, (int)device, state_kind(is), "answers again");
    else
        board_event(b, is == DEVICE_LOST ? EVENT_CRITICAL : EVENT_WARNING, (int)device, state_kind(is), "%s: %s",
                    device_state_name(is), text);
}

void board_end(struct board *b, unsigned device, struct sample *s, const struct ring_processes *p, bool says_lost,
               const char *trouble) {
    struct board_device *d = &b->device[device];
    int64_t now_ns = clock_boot_ns();
    pthread_mutex_lock(&d->lock);
    d->health.says_lost = says_lost;
    d->health.has_failed = !s;
    if (s) {
        d->health.good_ns = now_ns;
        d->trouble[0] = 0;
        sample_put(s, METRIC_XIDS, (double)xid_total(&d->xids));
        sample_out(b, device, s);
        if (p) ring_put_processes(&b->ring, device, p);
        d->health.asked_ns = 0;
    } else if (trouble) {
        snprintf(d->trouble, sizeof d->trouble, "%s", trouble);
    }
    judge(b, device, now_ns);
    if (!s) d->health.asked_ns = 0;
    pthread_mutex_unlock(&d->lock);
    if (s) toll(b);
}

static bool is_there(const struct board_device *d) { return d->state == DEVICE_OK || d->state == DEVICE_STARTING; }

bool board_is_there(struct board *b, unsigned device) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    bool there = is_there(d);
    pthread_mutex_unlock(&d->lock);
    return there;
}

void board_add(struct board *b, unsigned device, struct sample *s, const struct ring_processes *p) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    bool there = is_there(d);
    if (there) sample_out(b, device, s);
    if (there && p) ring_put_processes(&b->ring, device, p);
    pthread_mutex_unlock(&d->lock);
    if (there) toll(b);
}

void board_looked(struct board *b, unsigned device, const struct ring_processes *p) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    d->health.asked_ns = 0;
    bool is_news = p && is_there(d);
    if (is_news) ring_put_processes(&b->ring, device, p);
    pthread_mutex_unlock(&d->lock);
    if (is_news) toll(b);
}

void board_waits_for(struct board *b, unsigned device, const char *call) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    snprintf(d->trouble, sizeof d->trouble, "%s has not come back", call);
    pthread_mutex_unlock(&d->lock);
}

void board_fence(struct board *b, unsigned device, bool is_fenced, const char *why) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    d->health.is_fenced = is_fenced;
    if (is_fenced) snprintf(d->trouble, sizeof d->trouble, "%s", why);
    judge(b, device, clock_boot_ns());
    pthread_mutex_unlock(&d->lock);
}

void board_forbid(struct board *b, unsigned device, const char *why) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    d->health.is_forbidden = true;
    snprintf(d->trouble, sizeof d->trouble, "%s", why);
    judge(b, device, clock_boot_ns());
    pthread_mutex_unlock(&d->lock);
}

void board_keep(struct board *b, unsigned device, const int *ids, int64_t for_ns) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    for (; *ids >= 0; ids++) {
        d->for_ns[*ids] = for_ns;
        if (d->latest.of[*ids].boot_ns) d->latest.of[*ids].until_ns = d->latest.of[*ids].boot_ns + for_ns;
    }
    ring_put_latest(&b->ring, device, &d->latest);
    pthread_mutex_unlock(&d->lock);
}

void board_energy_is_ours(struct board *b, unsigned device) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    if (!d->energy_is_ours) d->energy.carried = d->energy.joules;
    d->energy_is_ours = true;
    pthread_mutex_unlock(&d->lock);
}

void board_judge(struct board *b, int64_t now_ns) {
    ring_beat(&b->ring, now_ns);
    for (unsigned i = 0; i < b->count; i++) {
        pthread_mutex_lock(&b->device[i].lock);
        judge(b, i, now_ns);
        pthread_mutex_unlock(&b->device[i].lock);
    }
}

void board_guard(struct board *b, unsigned device, const struct ring_guard *g) {
    pthread_mutex_lock(&b->device[device].lock);
    ring_put_guard(&b->ring, device, g);
    pthread_mutex_unlock(&b->device[device].lock);
}

/* ---- events ---- */

PRINTF(3, 0) static void event_out(struct board *b, struct event *ev, const char *fmt, va_list ap) {
    static const enum log_level levels[] = {LOG_INFO, LOG_WARN, LOG_ERROR, LOG_ERROR};
    ev->boot_ns = clock_boot_ns();
    ev->real_ns = clock_real_ns();
    vsnprintf(ev->text, sizeof ev->text, fmt, ap);
    pthread_mutex_lock(&b->event_lock);
    ring_put_event(&b->ring, ev);
    pthread_mutex_unlock(&b->event_lock);
    log_line(levels[ev->severity], ev->kind, gpu_index(b, ev->device), "%s", ev->text);
}

void board_event(struct board *b, enum event_severity severity, int device, const char *kind, const char *fmt, ...) {
    struct event ev = {.severity = severity, .device = device};
    va_list ap;
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    va_start(ap, fmt);
    event_out(b, &ev, fmt, ap);
    va_end(ap);
}

PRINTF(3, 4) static void xid_event(struct board *b, struct event *ev, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    event_out(b, ev, fmt, ap);
    va_end(ap);
}

static void xids_out(struct board *b, unsigned device) {
    const struct xid_count *c = &b->device[device].xids;
    struct ring_xids x = {.count = c->count};
    for (uint32_t i = 0; i < c->count; i++) {
        x.of[i].code = c->of[i].code;
        x.of[i].count = c->of[i].total;
        x.of[i].last_real_ns = c->of[i].last_real_ns;
    }
    ring_put_xids(&b->ring, device, &x);
}

void board_xid(struct board *b, unsigned device, uint64_t code, enum xid_source source, int pid, const char *process) {
    struct board_device *d = &b->device[device];
    pthread_mutex_lock(&d->lock);
    bool is_news = xid_take(&d->xids, code, source, clock_real_ns());
    if (is_news) xids_out(b, device);
    pthread_mutex_unlock(&d->lock);
    if (!is_news) return;
    const struct xid *x = xid_find(code);
    char who[64] = "";
    if (pid > 0) snprintf(who, sizeof who, " (pid %d%s%.32s)", pid, *process ? " " : "", process);
    struct event ev = {
        .severity = x->severity, .device = (int)device, .code = (int32_t)code, .pid = pid > 0 ? pid : 0, .kind = "xid"};
    xid_event(b, &ev, "XID %llu%s: %s; %s", (unsigned long long)code, who, x->what, x->advice);
    toll(b);
}
