#include "client/top_mirror.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "model/guard.h"
#include "model/guard_words.h"

/* What was told counts as current for so long; a stream that is silent for longer is called stale anyway. */
#define CURRENT_NS (10 * NS_PER_S)

void top_mirror_done(struct top_mirror *m) {
    view_done(&m->view);
    top_processes_done(&m->processes);
    *m = (struct top_mirror){0};
}

static void copy_text(const struct json_tree *j, char *ret, size_t room) {
    const char *text = json_tree_text(j, NULL);
    if (text) snprintf(ret, room, "%s", text);
}

static int32_t whole(const struct json_tree *j, int32_t otherwise) {
    double n = json_tree_number(j, otherwise);
    return n >= INT32_MIN && n <= INT32_MAX ? (int32_t)n : otherwise;
}

/* Seconds of Unix time, or 2026-11-15T04:22:34.123Z. */
static int64_t time_of(const struct json_tree *j) {
    double seconds = json_tree_number(j, NAN);
    if (seconds > 0 && seconds < 1e10) return (int64_t)(seconds * 1e9);
    struct tm tm = {0};
    const char *rest = strptime(json_tree_text(j, ""), "%Y-%m-%dT%H:%M:%S", &tm);
    return rest ? (int64_t)timegm(&tm) * NS_PER_S : 0;
}

static struct view_device *find(struct top_mirror *m, const char *uuid) {
    for (size_t i = 0; i < m->view.count; i++)
        if (strcmp(m->view.of[i].inventory.uuid, uuid) == 0) return &m->view.of[i];
    return NULL;
}

/* A message, and when it came. */
struct delta {
    struct top_mirror *m;
    int64_t now_ns, now_real_ns;
};

/* ---- a GPU ---- */

struct telling {
    struct view_device *d;
    int64_t now_ns;
};

static void take_metric(void *ctx, const char *name, const struct json_tree *value) {
    struct telling *t = ctx;
    int id = metric_find(name);
    double number = json_tree_number(value, NAN);
    if (id < 0) return;
    t->d->latest.of[id].value = isfinite(number) ? number : 0;
    t->d->latest.of[id].boot_ns = isfinite(number) ? t->now_ns : 0;
    t->d->latest.of[id].until_ns = t->now_ns + CURRENT_NS;
}

static void take_state(struct view_device *d, const struct json_tree *j, int64_t now_ns, int64_t now_real_ns) {
    const char *word = json_tree_text(json_tree_get(j, "state"), NULL);
    if (!word) return;
    d->state = (struct ring_state){.state = DEVICE_NOT_ANSWERING};
    for (int s = DEVICE_STARTING; s <= DEVICE_FORBIDDEN; s++)
        if (strcmp(word, device_state_name((enum device_state)s)) == 0) d->state.state = (uint64_t)s;
    d->state.since_real_ns = time_of(json_tree_get(j, "state_since"));
    d->state.since_boot_ns = now_ns - (now_real_ns - d->state.since_real_ns);
    copy_text(json_tree_get(j, "state_reason"), d->state.text, sizeof d->state.text);
    double age_s = json_tree_number(json_tree_get(j, "age_s"), 1);
    bool is_stale = strcmp(word, "stale") == 0;
    d->silent_ns = is_stale ? (int64_t)(age_s > 0 && age_s < 1e9 ? age_s * 1e9 : 1e9) : 0;
}

static void take_guard(struct view_device *d, const struct json_tree *j) {
    if (!j) return;
    struct ring_guard *g = &d->guard;
    const char *mode = json_tree_text(json_tree_get(j, "mode"), ""),
               *lever = json_tree_text(json_tree_get(j, "lever"), ""),
               *reason = json_tree_text(json_tree_get(j, "reason"), "");
    *g = (struct ring_guard){0};
    d->has_guard = !json_tree_is_null(j);
    for (uint64_t i = 0; i <= RING_GUARD_ACTS; i++)
        if (strcmp(guard_mode_word(&(struct ring_guard){.mode = i}), mode) == 0) g->mode = i;
    for (uint64_t i = 0; i < RING_GUARD_LEVERS; i++)
        if (strcmp(guard_lever_words(&(struct ring_guard){.lever = i}), lever) == 0) g->lever = i;
    for (uint64_t i = 0; i < RING_GUARD_REASONS; i++)
        if (strcmp(guard_reason_words((enum guard_reason)i), reason) == 0) g->reason = i;
    for (int i = 0; i < GUARD_SENSORS; i++) g->target[i] = g->reading[i] = NAN;
    g->target[GUARD_CORE] = json_tree_number(json_tree_get(j, "target"), NAN);
    g->limit = json_tree_number(json_tree_get(j, "limit"), NAN);
    g->baseline = json_tree_number(json_tree_get(j, "baseline"), NAN);
    copy_text(json_tree_get(j, "why"), g->why, sizeof g->why);
}

static void take_xids(struct view_device *d, const struct json_tree *j) {
    if (!j) return;
    d->xids.count = 0;
    for (size_t i = 0; i < json_tree_count(j) && i < RING_XIDS_MAX; i++) {
        const struct json_tree *one = json_tree_at(j, i);
        d->xids.of[d->xids.count].code = (uint64_t)whole(json_tree_get(one, "code"), 0);
        d->xids.of[d->xids.count].count = (uint64_t)whole(json_tree_get(one, "count"), 1);
        d->xids.of[d->xids.count++].last_real_ns = time_of(json_tree_get(one, "last"));
    }
}

/* ---- processes ---- */

static uint32_t kinds_of(const struct json_tree *j) {
    uint32_t kinds = 0;
    for (size_t i = 0; i < json_tree_count(j); i++) {
        const char *word = json_tree_text(json_tree_at(j, i), "");
        kinds |= strcmp(word, "compute") == 0    ? PROCESS_COMPUTE
                 : strcmp(word, "graphics") == 0 ? PROCESS_GRAPHICS
                 : strcmp(word, "mps") == 0      ? PROCESS_MPS
                                                 : 0;
    }
    return kinds;
}

static void take_processes(struct top_mirror *m, int gpu, const struct json_tree *j, int64_t now_real_ns) {
    int kept = 0;
    if (!j) return;
    for (int i = 0; i < m->processes.count; i++)
        if (m->processes.of[i].gpu != gpu) m->processes.of[kept++] = m->processes.of[i];
    m->processes.count = kept;
    for (size_t i = 0; i < json_tree_count(j) && i < RING_PROCESSES_MAX; i++) {
        const struct json_tree *one = json_tree_at(j, i);
        struct top_process *p = top_processes_add(&m->processes);
        int64_t started = time_of(json_tree_get(one, "started"));
        p->pid = (uint32_t)whole(json_tree_get(one, "pid"), 0);
        p->gpu = gpu;
        p->kinds = kinds_of(json_tree_get(one, "kinds"));
        p->instance = whole(json_tree_get(one, "gpu_instance"), -1);
        p->memory_bytes = json_tree_number(json_tree_get(one, "memory_bytes"), NAN);
        p->sm = json_tree_number(json_tree_get(one, "sm_ratio"), NAN);
        p->cpu = json_tree_number(json_tree_get(one, "cpu_ratio"), NAN);
        p->host_bytes = json_tree_number(json_tree_get(one, "host_memory_bytes"), NAN);
        if (started) p->running_s = (double)(now_real_ns - started) / 1e9;
        p->is_here = true; /* as far as looking goes; signals know that it is another machine */
        copy_text(json_tree_get(one, "user"), p->user, sizeof p->user);
        copy_text(json_tree_get(one, "command"), p->command, sizeof p->command);
        copy_text(json_tree_get(one, "container"), p->container, sizeof p->container);
    }
}

/* What a snapshot and a delta say of a device in the same words. */
static void take_device(struct top_mirror *m, struct view_device *d, const struct json_tree *j, int64_t now_ns,
                        int64_t now_real_ns) {
    struct telling t = {d, now_ns};
    take_state(d, j, now_ns, now_real_ns);
    json_tree_each(json_tree_get(j, "metrics"), take_metric, &t);
    take_guard(d, json_tree_get(j, "guard"));
    take_xids(d, json_tree_get(j, "xids"));
    if (d->inventory.parent < 0) take_processes(m, d->inventory.index, json_tree_get(j, "processes"), now_real_ns);
    d->processes.boot_ns = now_ns;
}

static void add_device(struct top_mirror *m, const struct json_tree *j, int32_t parent, int32_t index,
                       const struct delta *t) {
    struct view_device *d = view_add(&m->view);
    inventory_init(&d->inventory, index);
    copy_text(json_tree_get(j, "uuid"), d->inventory.uuid, sizeof d->inventory.uuid);
    copy_text(json_tree_get(j, "model"), d->inventory.name, sizeof d->inventory.name);
    copy_text(json_tree_get(j, "pci"), d->inventory.pci, sizeof d->inventory.pci);
    d->inventory.parent = parent;
    d->inventory.gi = whole(json_tree_get(j, "gpu_instance"), -1);
    take_device(m, d, j, t->now_ns, t->now_real_ns);
}

/* GPUs of several machines: each gets a number of its own, and its machine and its number there before its name. */
static bool is_of_many(const struct json_tree *gpus) {
    const char *first = json_tree_text(json_tree_get(json_tree_at(gpus, 0), "node"), "");
    for (size_t i = 1; i < json_tree_count(gpus); i++)
        if (strcmp(json_tree_text(json_tree_get(json_tree_at(gpus, i), "node"), ""), first) != 0) return true;
    return false;
}

static void add_gpu(struct top_mirror *m, const struct json_tree *j, bool is_one_of_many, const struct delta *t) {
    int32_t place = (int32_t)m->view.count, own = whole(json_tree_get(j, "index"), place);
    add_device(m, j, -1, is_one_of_many ? place : own, t);
    if (!is_one_of_many) return;
    struct inventory *i = &m->view.of[place].inventory;
    char name[sizeof i->name];
    snprintf(name, sizeof name, "%.40s:%d %.40s", json_tree_text(json_tree_get(j, "node"), "?"), own,
             view_short_name(&m->view.of[place]));
    memcpy(i->name, name, sizeof name);
}

/* ---- messages ---- */

/* All values that were told and not taken back are current again: a delta holds only what changed. */
static void refresh(struct top_mirror *m, int64_t now_ns, int64_t now_real_ns) {
    m->view.boot_ns = now_ns;
    m->view.real_ns = now_real_ns;
    for (size_t i = 0; i < m->view.count; i++) {
        struct latest *l = &m->view.of[i].latest;
        if (m->view.of[i].silent_ns) continue;
        for (int id = 0; id < METRIC_COUNT; id++)
            if (l->of[id].boot_ns) l->of[id].boot_ns = now_ns, l->of[id].until_ns = now_ns + CURRENT_NS;
    }
}

static void take_node(struct top_mirror *m, const struct json_tree *j) {
    char version[80] = "";
    copy_text(json_tree_get(json_tree_get(j, "driver"), "version"), version, sizeof version);
    for (size_t i = 0; *version && i < m->view.count; i++)
        snprintf(m->view.of[i].inventory.driver, sizeof m->view.of[i].inventory.driver, "%s", version);
    if (m->nodes++ == 0)
        copy_text(json_tree_get(j, "name"), m->host, sizeof m->host);
    else
        snprintf(m->host, sizeof m->host, "%d nodes", m->nodes);
}

void top_mirror_snapshot(struct top_mirror *m, const struct json_tree *j, int64_t now_ns, int64_t now_real_ns) {
    const struct json_tree *gpus = json_tree_get(j, "gpus"), *nodes = json_tree_get(j, "nodes");
    struct event events[VIEW_EVENTS_MAX];
    size_t event_count = m->view.event_count;
    memcpy(events, m->view.events, sizeof events);
    view_clear(&m->view);
    memcpy(m->view.events, events, sizeof events);
    m->view.event_count = event_count;
    top_processes_clear(&m->processes);
    m->view.driver.state = DRIVER_OK;
    const struct delta t = {m, now_ns, now_real_ns};
    bool are_of_many = is_of_many(gpus);
    for (size_t i = 0; i < json_tree_count(gpus) && i < GPU_MAX; i++)
        add_gpu(m, json_tree_at(gpus, i), are_of_many, &t);
    size_t count = m->view.count;
    for (size_t i = 0; i < count; i++) {
        const struct json_tree *instances = json_tree_get(json_tree_at(gpus, i), "instances");
        for (size_t k = 0; k < json_tree_count(instances) && k < MIG_MAX; k++)
            add_device(m, json_tree_at(instances, k), (int32_t)i, (int32_t)k, &t);
    }
    m->nodes = 0;
    for (size_t i = 0; i < json_tree_count(nodes); i++) take_node(m, json_tree_at(nodes, i));
    refresh(m, now_ns, now_real_ns);
    m->is_begun = true;
}

static void take_change(void *ctx, const char *uuid, const struct json_tree *j) {
    struct delta *d = ctx;
    struct view_device *gpu = find(d->m, uuid);
    if (gpu) take_device(d->m, gpu, j, d->now_ns, d->now_real_ns);
}

void top_mirror_delta(struct top_mirror *m, const struct json_tree *j, int64_t now_ns, int64_t now_real_ns) {
    struct delta d = {m, now_ns, now_real_ns};
    refresh(m, now_ns, now_real_ns);
    json_tree_each(json_tree_get(j, "gpus"), take_change, &d);
}

void top_mirror_event(struct top_mirror *m, const struct json_tree *j) {
    struct event ev = {.real_ns = time_of(json_tree_get(j, "time")), .device = -1};
    const char *severity = json_tree_text(json_tree_get(j, "severity"), ""),
               *gpu = json_tree_text(json_tree_get(j, "gpu"), "");
    for (int s = EVENT_INFO; s <= EVENT_CRITICAL; s++)
        if (strcmp(severity, event_severity_name((enum event_severity)s)) == 0) ev.severity = s;
    copy_text(json_tree_get(j, "kind"), ev.kind, sizeof ev.kind);
    copy_text(json_tree_get(j, "text"), ev.text, sizeof ev.text);
    for (size_t i = 0; i < m->view.count; i++)
        if (*gpu && strcmp(m->view.of[i].inventory.uuid, gpu) == 0) ev.device = (int32_t)i;
    if (*ev.text && ev.real_ns) view_add_event(&m->view, &ev);
}

/* ---- the past ---- */

void top_mirror_past(const struct json_tree *j, int64_t now_ns, int64_t now_real_ns, struct history *h) {
    const struct json_tree *all = json_tree_get(j, "series");
    for (size_t i = 0; i < json_tree_count(all); i++) {
        const struct json_tree *one = json_tree_at(all, i), *times = json_tree_get(one, "time"),
                               *means = json_tree_get(one, "mean");
        const char *of = json_tree_text(json_tree_get(one, "of"), "");
        int metric = metric_find(json_tree_text(json_tree_get(one, "metric"), ""));
        if (metric < 0 || strncmp(of, "gpu:", 4) != 0) continue;
        struct history_device *d = history_of(h, of + 4);
        for (size_t k = 0; k < json_tree_count(times); k++) {
            double at_s = json_tree_number(json_tree_at(times, k), NAN),
                   value = json_tree_number(json_tree_at(means, k), NAN);
            double ago_s = (double)now_real_ns / 1e9 - at_s;
            if (ago_s >= 0 && ago_s < HISTORY_ROWS && isfinite(value))
                history_put(d, metric, (now_ns - (int64_t)(ago_s * 1e9)) / NS_PER_S, value);
        }
    }
}
