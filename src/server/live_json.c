#include "server/live_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/event.h"
#include "model/gpu_json.h"
#include "model/inventory_json.h"
#include "server/live_tasks_json.h"

/* ---- GPUs ---- */

static struct gpu_json_process process_at(const void *ctx, uint32_t at) {
    const struct live_device *d = ctx;
    const struct wire_process *p = &d->process[at];
    const struct live_task *task = live_tasks_of_pid(&d->node->tasks, (int32_t)p->of.pid);
    int64_t age_ns = live_node_now(d->node, clock_boot_ns()) - p->start_boot_ns;
    return (struct gpu_json_process){.of = &p->of,
                                     .user = p->user,
                                     .command = *p->command ? p->command : p->comm,
                                     .container = task ? task->container : NULL,
                                     .start_real_ns = p->start_boot_ns ? clock_real_ns() - age_ns : 0};
}

static struct gpu_json facts_of(const struct live_node *n, const struct live_device *d, int64_t now_ns, char *why,
                                size_t room) {
    return (struct gpu_json){.is = &d->is,
                             .state = live_device_state(n, d, now_ns, why, room),
                             .state_reason = why,
                             .state_since_real_ns = d->state.since_real_ns,
                             .latest = &d->latest,
                             .now_boot_ns = live_node_now(n, now_ns),
                             .lists_processes = d->processes_boot_ns != 0,
                             .process_count = d->process_count,
                             .process = process_at,
                             .ctx = d,
                             .xids = &d->xids,
                             .guard = d->has_guard ? &d->guard : NULL};
}

static bool is_instance_of(const struct live_device *d, const struct live_node *n, const struct live_device *gpu) {
    return d->is_known && d->is.parent == (int32_t)(gpu - n->device);
}

static void put_inventory(struct buf *b, const struct live_node *n, const struct live_device *d) {
    json_key(b, "inventory");
    json_open(b, '{');
    inventory_json(b, &d->is);
    if (d->is.mig_mode == 1) {
        json_key(b, "mig_instances");
        json_open(b, '[');
        for (uint16_t i = 0; i < n->devices; i++)
            if (is_instance_of(&n->device[i], n, d)) inventory_json_instance(b, &n->device[i].is);
        json_close(b, ']');
    }
    json_close(b, '}');
}

void live_json_gpu(struct buf *b, const struct live_node *n, const struct live_device *d, int64_t now_ns,
                   bool with_inventory) {
    char why[160];
    struct gpu_json g = facts_of(n, d, now_ns, why, sizeof why);
    json_open(b, '{');
    gpu_json_gpu(b, &g);
    if (with_inventory) put_inventory(b, n, d);
    json_key(b, "instances");
    json_open(b, '[');
    for (uint16_t i = 0; i < n->devices; i++) {
        if (!is_instance_of(&n->device[i], n, d)) continue;
        g = facts_of(n, &n->device[i], now_ns, why, sizeof why);
        gpu_json_instance(b, &g);
    }
    json_close(b, ']');
    json_pair_str(b, "node", n->name);
    if (d->sample_boot_ns) {
        int64_t age_ns = live_node_now(n, now_ns) - d->sample_boot_ns;
        gpu_json_number(b, "age_s", age_ns < 0 ? 0 : (double)age_ns / NS_PER_S, 0.001);
    }
    json_close(b, '}');
}

/* The node's GPU with the least index from `least` on; NULL: none. */
static const struct live_device *next_gpu(const struct live_node *n, const struct live_device *last) {
    const struct live_device *found = NULL;
    for (uint16_t i = 0; i < n->devices; i++) {
        const struct live_device *d = &n->device[i];
        if (!d->is_known || live_is_instance(d)) continue;
        bool is_after = !last || d->is.index > last->is.index || (d->is.index == last->is.index && d > last);
        bool is_before = !found || d->is.index < found->is.index;
        if (is_after && is_before) found = d;
    }
    return found;
}

void live_json_gpus(struct buf *b, const struct live *l, int64_t now_ns) {
    json_key(b, "gpus");
    json_open(b, '[');
    for (size_t i = 0; i < l->count; i++)
        for (const struct live_device *d = NULL; (d = next_gpu(l->node[i], d));)
            live_json_gpu(b, l->node[i], d, now_ns, false);
    json_close(b, ']');
}

/* ---- nodes ---- */

static void put_driver(struct buf *b, const struct live_node *n) {
    static const char *const states[] = {"starting", "ok", "absent"};
    const struct ring_driver *driver = &n->source[0].driver;
    for (uint16_t i = 0; i < n->sources && i < WIRE_SOURCES_MAX; i++)
        if (n->source[i].driver.state != DRIVER_OK && n->source[i].driver.since_real_ns) driver = &n->source[i].driver;
    json_key(b, "driver");
    json_open(b, '{');
    json_pair_str(b, "state", driver->state < ARRAY_LEN(states) ? states[driver->state] : "unknown");
    for (uint16_t i = 0; i < n->devices; i++) {
        if (!*n->device[i].is.driver) continue;
        json_pair_str(b, "version", n->device[i].is.driver);
        if (*n->device[i].is.library) json_pair_str(b, "library", n->device[i].is.library);
        break;
    }
    if (driver->state != DRIVER_OK && *driver->text) json_pair_str(b, "text", driver->text);
    json_close(b, '}');
}

/* Sums over a node's GPUs; one that is not known on any of them is left out. */
static void put_totals(struct buf *b, const struct live_node *n, int64_t now_ns) {
    static const struct {
        const char *key;
        int metric, otherwise;
    } sums[] = {
        {"power_watts",        METRIC_POWER,                METRIC_POWER       },
        {"power_limit_watts",  METRIC_POWER_LIMIT_ENFORCED, METRIC_POWER_LIMIT },
        {"memory_used_bytes",  METRIC_MEMORY_USED,          METRIC_MEMORY_USED },
        {"memory_total_bytes", METRIC_MEMORY_TOTAL,         METRIC_MEMORY_TOTAL},
    };
    double sum[ARRAY_LEN(sums)] = {0};
    bool has[ARRAY_LEN(sums)] = {0};
    int gpus = 0, busy = 0, lost = 0;
    int64_t node_now_ns = live_node_now(n, now_ns);
    char why[160];
    for (uint16_t i = 0; i < n->devices; i++) {
        const struct live_device *d = &n->device[i];
        if (!d->is_known || live_is_instance(d)) continue;
        gpus++;
        lost += strcmp(live_device_state(n, d, now_ns, why, sizeof why), "ok") != 0;
        busy += latest_has(&d->latest, METRIC_UTIL_GPU, node_now_ns) && d->latest.of[METRIC_UTIL_GPU].value > 0.05;
        for (size_t s = 0; s < ARRAY_LEN(sums); s++) {
            int metric = latest_has(&d->latest, sums[s].metric, node_now_ns) ? sums[s].metric : sums[s].otherwise;
            if (!latest_has(&d->latest, metric, node_now_ns)) continue;
            sum[s] += d->latest.of[metric].value;
            has[s] = true;
        }
    }
    json_key(b, "totals");
    json_open(b, '{');
    for (size_t s = 0; s < ARRAY_LEN(sums); s++)
        if (has[s]) gpu_json_number(b, sums[s].key, sum[s], 0.001);
    json_pair_int(b, "gpus", gpus);
    json_pair_int(b, "busy", busy);
    json_pair_int(b, "lost", lost);
    json_close(b, '}');
}

static void put_host(struct buf *b, const struct live_node *n) {
    json_key(b, "host");
    json_open(b, '{');
    for (int i = 0; i < HOST_METRIC_COUNT; i++)
        if (host_has(&n->host, i)) gpu_json_number(b, host_metrics[i].name, n->host.value[i], host_metrics[i].scale);
    json_close(b, '}');
}

static void put_state(struct buf *b, const struct live_node *n, const char *state) {
    json_pair_str(b, "state", state);
    gpu_json_number(b, "last_seen", (double)n->seen_real_ns / NS_PER_S, 0.001);
}

void live_json_node(struct buf *b, const struct live_node *n, int64_t now_ns) {
    json_open(b, '{');
    json_pair_str(b, "name", n->name);
    put_state(b, n, live_node_state(n, now_ns));
    if (*n->boot_id) put_driver(b, n);
    json_pair_str(b, "version", n->version);
    json_pair_str(b, "boot_id", n->boot_id);
    json_key(b, "gpus");
    json_open(b, '[');
    for (const struct live_device *d = NULL; (d = next_gpu(n, d));) json_str(b, d->is.uuid);
    json_close(b, ']');
    put_host(b, n);
    put_totals(b, n, now_ns);
    live_json_placement(b, n);
    json_close(b, '}');
}

void live_json_nodes(struct buf *b, const struct live *l, int64_t now_ns) {
    json_key(b, "nodes");
    json_open(b, '[');
    for (size_t i = 0; i < l->count; i++) live_json_node(b, l->node[i], now_ns);
    json_close(b, ']');
}

/* ---- what changed ---- */

/* A text that belongs to an object which is only opened when there is something to put into it. */
static void open_once(struct buf *b, bool *is_open, const char *key) {
    if (*is_open) return;
    json_key(b, key);
    json_open(b, '{');
    *is_open = true;
}

static bool delta_metrics(struct buf *b, const struct live_node *n, struct live_device *d, int64_t now_ns,
                          bool *is_open) {
    bool has_any = false;
    int64_t node_now_ns = live_node_now(n, now_ns);
    for (int i = 0; i < METRIC_COUNT; i++) {
        bool has = latest_has(&d->latest, i, node_now_ns), had = bits_test(d->told_has, i);
        double value = has ? d->latest.of[i].value : 0;
        if (has == had && (!has || value == d->told[i])) continue;
        if (b) {
            open_once(b, is_open, d->is.uuid);
            open_once(b, &has_any, "metrics");
            if (has)
                gpu_json_number(b, metrics[i].name, value, metrics[i].scale);
            else
                json_key(b, metrics[i].name), json_nil(b);
        }
        d->told[i] = value;
        if (has)
            bits_set(d->told_has, i);
        else
            bits_clear(d->told_has, i);
    }
    if (has_any) json_close(b, '}');
    return has_any;
}

/* b NULL: only notes what is told now. */
static bool delta_device(struct buf *b, const struct live_node *n, struct live_device *d, int64_t now_ns) {
    char why[160];
    bool is_open = false;
    struct gpu_json g = facts_of(n, d, now_ns, why, sizeof why);
    delta_metrics(b, n, d, now_ns, &is_open);
    if (g.state != d->told_state) d->changed |= LIVE_STATE;
    d->told_state = g.state;
    if (b && d->changed) {
        open_once(b, &is_open, d->is.uuid);
        if (d->changed & LIVE_STATE) gpu_json_state(b, &g);
        if (d->changed & LIVE_PROCESSES) gpu_json_processes(b, &g);
        if (d->changed & LIVE_XIDS) gpu_json_xids(b, &g);
        if (d->changed & LIVE_GUARD) gpu_json_guard(b, &g);
    }
    d->changed = 0;
    if (is_open) json_close(b, '}');
    return is_open;
}

static bool delta_node(struct buf *b, struct live_node *n, int64_t now_ns) {
    bool is_open = false, has_host = false;
    const char *state = live_node_state(n, now_ns);
    if (b && state != n->told_state) {
        open_once(b, &is_open, n->name);
        put_state(b, n, state);
    }
    n->told_state = state;
    for (int i = 0; i < HOST_METRIC_COUNT; i++) {
        bool has = host_has(&n->host, i), had = bits_test(n->told_host_has, i);
        if (has == had && (!has || n->host.value[i] == n->told_host[i])) continue;
        if (b) {
            open_once(b, &is_open, n->name);
            open_once(b, &has_host, "host");
            if (has)
                gpu_json_number(b, host_metrics[i].name, n->host.value[i], host_metrics[i].scale);
            else
                json_key(b, host_metrics[i].name), json_nil(b);
        }
        n->told_host[i] = n->host.value[i];
    }
    memcpy(n->told_host_has, n->host.has, sizeof n->told_host_has);
    if (has_host) json_close(b, '}');
    if (is_open) {
        put_totals(b, n, now_ns);
        json_close(b, '}');
    }
    return is_open;
}

bool live_json_delta(struct buf *b, struct live *l, int64_t now_ns) {
    bool has_any = false;
    json_key(b, "gpus");
    json_open(b, '{');
    for (size_t i = 0; i < l->count; i++)
        for (uint16_t d = 0; d < l->node[i]->devices; d++)
            if (l->node[i]->device[d].is_known) has_any |= delta_device(b, l->node[i], &l->node[i]->device[d], now_ns);
    json_close(b, '}');
    json_key(b, "nodes");
    json_open(b, '{');
    for (size_t i = 0; i < l->count; i++) has_any |= delta_node(b, l->node[i], now_ns);
    json_close(b, '}');
    has_any |= live_json_tasks_delta(b, l, now_ns);
    return has_any;
}

void live_told(struct live *l, int64_t now_ns) {
    for (size_t i = 0; i < l->count; i++) {
        for (uint16_t d = 0; d < l->node[i]->devices; d++)
            delta_device(NULL, l->node[i], &l->node[i]->device[d], now_ns);
        delta_node(NULL, l->node[i], now_ns);
    }
    live_json_tasks_delta(NULL, l, now_ns);
}

/* ---- events ---- */

void live_json_event(struct buf *b, const struct event *ev, int64_t id, const char *node, const struct inventory *gpu) {
    json_open(b, '{');
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)id); /* a text: it has more digits than numbers in browsers do */
    if (id) json_pair_str(b, "id", text);
    gpu_json_number(b, "time", (double)ev->real_ns / NS_PER_S, 0.001);
    json_pair_str(b, "severity", event_severity_name((enum event_severity)ev->severity));
    json_pair_str(b, "kind", ev->kind);
    json_pair_str(b, "text", ev->text);
    if (ev->code) json_pair_int(b, "code", ev->code);
    if (ev->pid) json_pair_int(b, "pid", ev->pid);
    json_pair_str(b, "node", node);
    json_key(b, "gpu");
    if (gpu) {
        json_str(b, gpu->uuid);
        json_pair_int(b, "gpu_index", gpu->index);
    } else {
        json_nil(b);
    }
    json_close(b, '}');
}
