#include "client/status_json.h"

#include "base/json.h"
#include "client/inventory.h"
#include "model/gpu_json.h"

static struct gpu_json_process process_at(const void *ctx, uint32_t n) {
    const struct view_device *d = ctx;
    return (struct gpu_json_process){.of = &d->processes.of[n]};
}

static struct gpu_json facts_of(const struct view *v, const struct view_device *d, char *why, size_t room) {
    return (struct gpu_json){.is = &d->inventory,
                             .state = view_state(d, why, room),
                             .state_reason = why,
                             .state_since_real_ns = d->state.since_real_ns,
                             .latest = &d->latest,
                             .now_boot_ns = v->boot_ns,
                             .lists_processes = d->processes.boot_ns != 0,
                             .process_count = d->processes.count,
                             .process = process_at,
                             .ctx = d,
                             .xids = &d->xids,
                             .guard = d->has_guard ? &d->guard : NULL};
}

static void put_gpu(struct buf *b, const struct view *v, size_t at, bool with_inventory) {
    char why[160];
    struct gpu_json g = facts_of(v, &v->of[at], why, sizeof why);
    json_open(b, '{');
    gpu_json_gpu(b, &g);
    if (with_inventory) {
        json_key(b, "inventory");
        json_open(b, '{');
        inventory_pairs(v, at, b);
        json_close(b, '}');
    }
    json_key(b, "instances");
    json_open(b, '[');
    for (size_t i = 0; i < v->count; i++) {
        if (v->of[i].inventory.parent != (int32_t)at) continue;
        g = facts_of(v, &v->of[i], why, sizeof why);
        gpu_json_instance(b, &g);
    }
    json_close(b, ']');
    json_close(b, '}');
}

static void put_driver(struct buf *b, const struct view *v) {
    static const char *const states[] = {"starting", "ok", "absent"};
    json_key(b, "driver");
    json_open(b, '{');
    json_pair_str(b, "state", v->driver.state < ARRAY_LEN(states) ? states[v->driver.state] : "unknown");
    for (size_t i = 0; i < v->count; i++) {
        if (!*v->of[i].inventory.driver) continue;
        json_pair_str(b, "version", v->of[i].inventory.driver);
        if (*v->of[i].inventory.library) json_pair_str(b, "library", v->of[i].inventory.library);
        break;
    }
    if (v->driver.state != DRIVER_OK && *v->driver.text) json_pair_str(b, "text", v->driver.text);
    json_close(b, '}');
}

static void put_event(struct buf *b, const struct view *v, const struct event *ev) {
    json_open(b, '{');
    gpu_json_time(b, "time", ev->real_ns);
    json_pair_str(b, "severity", event_severity_name((enum event_severity)ev->severity));
    json_pair_str(b, "kind", ev->kind);
    if (ev->device >= 0) json_pair_int(b, "gpu", v->of[ev->device].inventory.index);
    if (ev->code) json_pair_int(b, "code", ev->code);
    if (ev->pid) json_pair_int(b, "pid", ev->pid);
    json_pair_str(b, "text", ev->text);
    json_close(b, '}');
}

void status_json(const struct view *v, bool with_inventory, struct buf *b) {
    json_open(b, '{');
    json_key(b, "gpus");
    json_open(b, '[');
    for (size_t i = 0; i < v->count; i++)
        if (!view_is_instance(&v->of[i])) put_gpu(b, v, i, with_inventory);
    json_close(b, ']');
    json_key(b, "events");
    json_open(b, '[');
    for (size_t i = 0; i < v->event_count; i++) put_event(b, v, &v->events[i]);
    json_close(b, ']');
    json_pair_str(b, "source", v->source == VIEW_DAEMON ? "daemon" : "driver");
    gpu_json_time(b, "time", v->real_ns);
    put_driver(b, v);
    json_close(b, '}');
    buf_putc(b, '\n');
}
