#include "server/live.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "model/guard.h"

#define FIRST_FOR_NS (5ll * 1000000000) /* how long a reading counts before the node has told */

/* ---- nodes and their devices ---- */

static void devices_drop(struct live_node *n) {
    for (uint16_t i = 0; i < n->devices; i++) {
        free(n->device[i].process);
        free(n->device[i].series);
    }
    free(n->device);
    n->device = NULL;
    n->devices = n->inventories = 0;
}

static void node_free(struct live_node *n) {
    devices_drop(n);
    live_tasks_done(&n->tasks);
    free(n->host_series);
    free(n);
}

void live_done(struct live *l) {
    for (size_t i = 0; i < l->count; i++) node_free(l->node[i]);
    free(l->node);
    *l = (struct live){0};
}

struct live_node *live_find_node(const struct live *l, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->node[i]->name, name) == 0) return l->node[i];
    return NULL;
}

struct live_device *live_find_gpu(const struct live *l, const char *uuid, struct live_node **node) {
    for (size_t i = 0; i < l->count; i++)
        for (uint16_t d = 0; d < l->node[i]->devices; d++) {
            struct live_device *device = &l->node[i]->device[d];
            if (!device->is_known || live_is_instance(device) || strcmp(device->is.uuid, uuid) != 0) continue;
            if (node) *node = l->node[i];
            return device;
        }
    return NULL;
}

static struct live_node *node_add(struct live *l, const char *name) {
    struct live_node *n = calloc(1, sizeof *n), **more = realloc(l->node, (l->count + 1) * sizeof(void *));
    if (!n || !more) abort();
    snprintf(n->name, sizeof n->name, "%s", name);
    size_t at = l->count++;
    l->node = more;
    for (; at > 0 && strcmp(l->node[at - 1]->name, name) > 0; at--) l->node[at] = l->node[at - 1];
    l->node[at] = n;
    return n;
}

/* A card that another node had, or that this one had under another number, is where it was told last. */
static void device_claim(struct live *l, struct live_node *n, const char *uuid) {
    for (size_t i = 0; i < l->count; i++)
        for (uint16_t d = 0; l->node[i] != n && d < l->node[i]->devices; d++)
            if (strcmp(l->node[i]->device[d].is.uuid, uuid) == 0) l->node[i]->device[d].is_known = false;
}

/* ---- frames ---- */

struct taking {
    struct live *live;
    struct live_node *node;
    const struct wire_frame *frame;
    int64_t now_ns, now_real_ns;
};

static int take_hello(struct live *l, struct live_node **node, void *link, const struct wire_frame *f, int64_t now_ns,
                      struct error *e) {
    struct wire_hello h;
    int r = wire_get_hello(f, &h, e);
    if (r < 0) return r;
    if (!*h.node) return fail(e, -EPROTO, "a node without a name");
    struct live_node *n = live_find_node(l, h.node);
    if (!n && l->count >= LIVE_NODES_MAX) return fail(e, -EPROTO, "too many nodes");
    if (!n) n = node_add(l, h.node);
    if (*node && *node != n) live_part(l, *node);
    devices_drop(n);
    bool is_other_boot = strcmp(n->boot_id, h.boot_id) != 0;
    if (is_other_boot) live_tasks_done(&n->tasks);
    snprintf(n->boot_id, sizeof n->boot_id, "%s", h.boot_id);
    snprintf(n->version, sizeof n->version, "%s", h.version);
    wire_map_make(&n->gpu_map, &h.gpu, metric_find);
    wire_map_make(&n->host_map, &h.host, host_metric_find);
    n->device = calloc(h.devices ? h.devices : 1, sizeof *n->device);
    if (!n->device) abort();
    n->devices = h.devices;
    for (uint16_t i = 0; i < n->devices; i++) n->device[i].node = n;
    n->sources = h.sources;
    memset(n->source, 0, sizeof n->source);
    n->marks = marks_of(l->marks, n->name, n->boot_id);
    n->clock_ahead_ns = h.boot_ns - now_ns;
    n->link = link;
    n->is_welcomed = false;
    l->shape++;
    if (is_other_boot && l->on_boot) l->on_boot(l->ctx, n);
    *node = n;
    return h.devices == 0 ? 1 : 0;
}

static struct live_device *device_of(const struct taking *t, uint16_t number) {
    return number < t->node->devices && t->node->device[number].is_known ? &t->node->device[number] : NULL;
}

/* For frames that name a device: refuses one that was not told. */
static int no_device(uint16_t number, struct error *e) { return fail(e, -EPROTO, "device %u was not told", number); }

static int take_inventory(const struct taking *t, struct error *e) {
    struct inventory is;
    uint16_t number, source;
    int r = wire_get_inventory(t->frame, &number, &source, &is, e);
    if (r < 0) return r;
    struct live_node *n = t->node;
    if (number >= n->devices) return no_device(number, e);
    if (is.parent >= n->devices || is.parent == number)
        return fail(e, -EPROTO, "an instance of a device that was not told");
    struct live_device *d = &n->device[number];
    device_claim(t->live, n, is.uuid);
    if (!d->is_known) n->inventories++;
    d->is = is;
    d->source = source;
    d->is_known = true;
    d->changed = ~0u;
    for (int i = 0; i < METRIC_COUNT; i++) d->for_ns[i] = FIRST_FOR_NS;
    t->live->shape++;
    if (n->inventories < n->devices || n->is_welcomed) return 0;
    return 1;
}

static int take_sample(const struct taking *t, struct error *e) {
    struct sample s;
    uint16_t number;
    int64_t mark;
    int r = wire_get_sample(t->frame, &t->node->gpu_map, &number, &mark, &s, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, number);
    if (!d) return no_device(number, e);
    struct mark *known = marks_device(t->node->marks, d->is.uuid);
    if (known && mark <= known->mark) return 0;
    if (known) known->mark = mark;
    latest_take(&d->latest, &s, d->for_ns);
    if (s.boot_ns > d->sample_boot_ns) d->sample_boot_ns = s.boot_ns;
    if (t->live->on_sample) t->live->on_sample(t->live->ctx, t->node, d, &s);
    return 0;
}

static int take_latest(const struct taking *t, struct error *e) {
    struct latest latest;
    int64_t for_ns[METRIC_COUNT] = {0};
    uint16_t number;
    int r = wire_get_latest(t->frame, &t->node->gpu_map, &number, &latest, for_ns, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, number);
    if (!d) return no_device(number, e);
    d->latest = latest;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (for_ns[i] > 0) d->for_ns[i] = for_ns[i];
    return 0;
}

static int take_state(const struct taking *t, struct error *e) {
    struct ring_state state;
    uint16_t number;
    int r = wire_get_state(t->frame, &number, &state, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, number);
    if (!d) return no_device(number, e);
    d->state = state;
    d->changed |= LIVE_STATE;
    return 0;
}

static int take_xids(const struct taking *t, struct error *e) {
    struct ring_xids xids;
    uint16_t number;
    int r = wire_get_xids(t->frame, &number, &xids, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, number);
    if (!d) return no_device(number, e);
    d->xids = xids;
    d->changed |= LIVE_XIDS;
    return 0;
}

static bool is_same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The guard's readings change every second; what is shown of it seldom does. */
static bool looks_alike(const struct ring_guard *a, const struct ring_guard *b) {
    return a->mode == b->mode && a->lever == b->lever && a->reason == b->reason && is_same(a->limit, b->limit) &&
           is_same(a->baseline, b->baseline) && is_same(a->target[GUARD_CORE], b->target[GUARD_CORE]) &&
           strcmp(a->why, b->why) == 0;
}

static int take_guard(const struct taking *t, struct error *e) {
    struct ring_guard guard;
    uint16_t number;
    int r = wire_get_guard(t->frame, &number, &guard, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, number);
    if (!d) return no_device(number, e);
    bool has_guard = guard.since_real_ns || *guard.why;
    if (has_guard != d->has_guard || !looks_alike(&guard, &d->guard)) d->changed |= LIVE_GUARD;
    d->guard = guard;
    d->has_guard = has_guard;
    return 0;
}

static int take_processes(const struct taking *t, struct error *e) {
    struct wire_processes list;
    struct wire_process p;
    int r = wire_get_processes(t->frame, &list, e);
    if (r < 0) return r;
    struct live_device *d = device_of(t, list.device);
    if (!d) return no_device(list.device, e);
    free(d->process);
    d->process = list.count ? calloc(list.count, sizeof *d->process) : NULL;
    if (list.count && !d->process) abort();
    d->process_count = 0;
    while (d->process_count < list.count && wire_next_process(&list, &p)) d->process[d->process_count++] = p;
    d->process_total = list.total;
    d->processes_boot_ns = list.boot_ns;
    d->changed |= LIVE_PROCESSES;
    return 0;
}

static int take_driver(const struct taking *t, struct error *e) {
    struct ring_driver driver;
    uint16_t source;
    int r = wire_get_driver(t->frame, &source, &driver, e);
    if (r < 0) return r;
    if (source < WIRE_SOURCES_MAX) t->node->source[source].driver = driver;
    return 0;
}

static int take_host(const struct taking *t, struct error *e) {
    struct host_sample s;
    int64_t mark;
    int r = wire_get_host(t->frame, &t->node->host_map, &mark, &s, e);
    if (r < 0) return r;
    if (mark <= t->node->marks->host) return 0;
    t->node->marks->host = mark;
    t->node->host = s;
    if (t->live->on_host) t->live->on_host(t->live->ctx, t->node, &s);
    return 0;
}

static int take_event(const struct taking *t, struct error *e) {
    struct event ev;
    uint16_t source;
    int64_t mark;
    int r = wire_get_event(t->frame, &source, &mark, &ev, e);
    if (r < 0) return r;
    if (source >= WIRE_SOURCES_MAX || ev.device >= (int32_t)t->node->devices)
        return fail(e, -EPROTO, "an event of a source or device that was not told");
    bool is_new = mark > t->node->marks->event[source];
    if (is_new) t->node->marks->event[source] = mark;
    if (t->live->on_event) t->live->on_event(t->live->ctx, t->node, source, mark, &ev, is_new);
    return 0;
}

/* Who is on a card is shown by the names of containers, which come with the tasks. */
static void task_touches(struct live_node *n, const struct wire_task *t) {
    for (uint16_t i = 0; i < n->devices; i++)
        for (uint32_t p = 0; p < n->device[i].process_count; p++)
            if (n->device[i].process[p].of.pid == (uint32_t)t->task.key.pid) n->device[i].changed |= LIVE_PROCESSES;
}

static int take_task(const struct taking *t, struct error *e) {
    struct wire_task *task = malloc(sizeof *task); /* eight kilobytes */
    if (!task) abort();
    int r = wire_get_task(t->frame, task, e);
    if (r >= 0) {
        struct live_node *n = t->node;
        bool is_new = task->mark > n->marks->task;
        if (is_new) n->marks->task = task->mark;
        live_tasks_take(&n->tasks, task, is_new, t->now_ns, live_node_now(n, t->now_ns));
        task_touches(n, task);
        if (is_new && t->live->on_task) t->live->on_task(t->live->ctx, n, task);
    }
    free(task);
    return r;
}

static int take_container(const struct taking *t, struct error *e) {
    struct wire_container c;
    int r = wire_get_container(t->frame, &c, e);
    if (r < 0) return r;
    live_tasks_container(&t->node->tasks, &c, t->now_ns);
    if (t->live->on_container) t->live->on_container(t->live->ctx, t->node, &c);
    return 0;
}

static int take_node(const struct taking *t, struct error *e) {
    int r = wire_get_node(t->frame, &t->node->tasks.node, e);
    if (r >= 0) t->node->tasks.has_node = true;
    return r;
}

static int take_uses(const struct taking *t, struct error *e) {
    struct wire_uses list;
    struct wire_use use;
    int r = wire_get_uses(t->frame, &list, e);
    if (r < 0) return r;
    while (wire_next_use(&list, &use)) live_tasks_use(&t->node->tasks, &use);
    return 0;
}

static int take_round(const struct taking *t, struct error *e) {
    struct wire_round round;
    int r = wire_get_round(t->frame, &round, e);
    if (r < 0) return r;
    struct live_node *n = t->node;
    n->clock_ahead_ns = round.boot_ns - t->now_ns;
    for (uint16_t i = 0; i < round.sources && i < WIRE_SOURCES_MAX; i++) n->source[i].beat_ns = round.source[i].beat_ns;
    n->rounds++;
    n->tasks.is_filled = true;
    live_tasks_prune(&n->tasks, t->now_ns);
    if (t->live->on_round) t->live->on_round(t->live->ctx, n);
    return 0;
}

static void gone_set(struct live *l, struct live_node *n, bool is_gone) {
    n->is_gone = is_gone;
    l->version++;
    if (l->on_gone) l->on_gone(l->ctx, n);
}

int live_take(struct live *l, struct live_node **node, void *link, const struct wire_frame *f, int64_t now_ns,
              int64_t now_real_ns, struct error *e) {
    static int (*const takers[])(const struct taking *t, struct error *e) = {
        [WIRE_INVENTORY] = take_inventory, [WIRE_SAMPLE] = take_sample,       [WIRE_LATEST] = take_latest,
        [WIRE_STATE] = take_state,         [WIRE_PROCESSES] = take_processes, [WIRE_XIDS] = take_xids,
        [WIRE_GUARD] = take_guard,         [WIRE_DRIVER] = take_driver,       [WIRE_HOST] = take_host,
        [WIRE_EVENT] = take_event,         [WIRE_ROUND] = take_round,         [WIRE_TASK] = take_task,
        [WIRE_CONTAINER] = take_container, [WIRE_NODE] = take_node,           [WIRE_USE] = take_uses,
    };
    int r = 0;
    if (f->version != WIRE_VERSION) return 0; /* a newer node's: skipped, as the protocol says */
    if (f->type == WIRE_HELLO) {
        r = take_hello(l, node, link, f, now_ns, e);
    } else if (!*node) {
        return fail(e, -EPROTO, "the node did not say who it is");
    } else if (f->type < ARRAY_LEN(takers) && takers[f->type]) {
        struct taking t = {l, *node, f, now_ns, now_real_ns};
        r = takers[f->type](&t, e);
    }
    if (r < 0) return r;
    struct live_node *n = *node;
    if (n->is_gone) gone_set(l, n, false); /* while it still says how long it was silent */
    n->seen_ns = now_ns;
    n->seen_real_ns = now_real_ns;
    l->version++;
    return r;
}

void live_part(struct live *l, struct live_node *n) {
    if (!n) return;
    n->link = NULL;
    n->is_welcomed = false;
    l->version++;
}

struct live_node *live_expect(struct live *l, const char *name, int64_t seen_real_ns, bool is_gone, int64_t now_ns) {
    if (l->count >= LIVE_NODES_MAX || live_find_node(l, name)) return NULL;
    struct live_node *n = node_add(l, name);
    n->seen_ns = now_ns - LIVE_STALE_NS - 1;
    n->seen_real_ns = seen_real_ns;
    n->is_gone = is_gone;
    l->shape++;
    return n;
}

void live_forget(struct live *l, struct live_node *n) {
    size_t at = 0;
    while (at < l->count && l->node[at] != n) at++;
    if (at == l->count) return;
    memmove(&l->node[at], &l->node[at + 1], (--l->count - at) * sizeof(void *));
    node_free(n);
    l->version++;
    l->shape++;
}

/* ---- how fresh it is ---- */

void live_tick(struct live *l, int64_t now_ns) {
    if (!l->ticked_ns || now_ns - l->ticked_ns > LIVE_STALE_NS) l->awake_ns = now_ns;
    l->ticked_ns = now_ns;
    int64_t after_ns = l->gone_after_ns ? l->gone_after_ns : LIVE_GONE_NS;
    for (size_t i = 0; i < l->count; i++) {
        struct live_node *n = l->node[i];
        int64_t since_ns = n->seen_ns > l->awake_ns ? n->seen_ns : l->awake_ns;
        if (!n->is_gone && now_ns - since_ns > after_ns) gone_set(l, n, true);
    }
}

const char *live_node_state(const struct live_node *n, int64_t now_ns) {
    if (n->is_gone) return "gone";
    return now_ns - n->seen_ns > LIVE_STALE_NS ? "stale" : "ok";
}

const char *live_device_state(const struct live_node *n, const struct live_device *d, int64_t now_ns, char *why,
                              size_t room) {
    char age[32];
    int64_t node_silent_ns = now_ns - n->seen_ns;
    if (node_silent_ns > LIVE_STALE_NS) {
        number_age(node_silent_ns, age, sizeof age);
        snprintf(why, room, "its node has said nothing for %s", age);
        return "stale";
    }
    int64_t beat_ns = d->source < WIRE_SOURCES_MAX ? n->source[d->source].beat_ns : 0;
    int64_t silent_ns = live_node_now(n, now_ns) - beat_ns;
    if (beat_ns && silent_ns > LIVE_STALE_NS) {
        number_age(silent_ns, age, sizeof age);
        snprintf(why, room, "its sampler has said nothing for %s", age);
        return "stale";
    }
    snprintf(why, room, "%s", d->state.text);
    return device_state_name((enum device_state)d->state.state);
}
