#include "client/status_json.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "client/guard_words.h"
#include "client/inventory.h"
#include "client/number.h"

static void put_time(struct buf *b, const char *key, int64_t real_ns) {
    char text[40];
    number_time_utc(real_ns, text, sizeof text);
    json_pair_str(b, key, text);
}

static void put_number(struct buf *b, const char *key, double value, double scale) {
    char text[64];
    number_text(value, scale, text, sizeof text);
    json_key(b, key);
    buf_puts(b, text);
}

static void put_metrics(struct buf *b, const struct view *v, const struct view_device *d) {
    json_key(b, "metrics");
    json_open(b, '{');
    for (int i = 0; i < METRIC_COUNT; i++)
        if (latest_has(&d->latest, i, v->boot_ns))
            put_number(b, metrics[i].name, d->latest.of[i].value, metrics[i].scale);
    json_close(b, '}');
}

static void put_share(struct buf *b, const char *key, uint16_t percent) {
    if (percent != PROCESS_NO_SHARE) put_number(b, key, percent / 100.0, 0.01);
}

static void put_process(struct buf *b, const struct ring_process *p) {
    static const struct {
        uint32_t bit;
        const char *word;
    } kinds[] = {
        {PROCESS_COMPUTE,  "compute" },
        {PROCESS_GRAPHICS, "graphics"},
        {PROCESS_MPS,      "mps"     },
    };
    json_open(b, '{');
    json_pair_int(b, "pid", p->pid);
    json_key(b, "kinds");
    json_open(b, '[');
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (p->kinds & kinds[i].bit) json_str(b, kinds[i].word);
    json_close(b, ']');
    if (p->memory_bytes != PROCESS_NO_MEMORY) {
        json_key(b, "memory_bytes");
        json_uint(b, p->memory_bytes);
    }
    put_share(b, "sm_ratio", p->sm);
    put_share(b, "memory_ratio", p->memory);
    put_share(b, "encoder_ratio", p->encoder);
    put_share(b, "decoder_ratio", p->decoder);
    if (p->gi != UINT32_MAX) json_pair_int(b, "gpu_instance", p->gi);
    if (p->ci != UINT32_MAX) json_pair_int(b, "compute_instance", p->ci);
    json_close(b, '}');
}

/* A card that cannot list its processes has no list, which is not an empty one. */
static void put_processes(struct buf *b, const struct view_device *d) {
    if (!d->processes.boot_ns) return;
    json_key(b, "processes");
    json_open(b, '[');
    for (uint32_t i = 0; i < d->processes.count; i++) put_process(b, &d->processes.of[i]);
    json_close(b, ']');
}

static void put_xids(struct buf *b, const struct view_device *d) {
    json_key(b, "xids");
    json_open(b, '[');
    for (uint64_t i = 0; i < d->xids.count; i++) {
        json_open(b, '{');
        json_pair_int(b, "code", (int64_t)d->xids.of[i].code);
        json_pair_int(b, "count", (int64_t)d->xids.of[i].count);
        put_time(b, "last", d->xids.of[i].last_real_ns);
        json_close(b, '}');
    }
    json_close(b, ']');
}

/* What is not known is left out. `gpumgr guard --json` has the rest. */
static void put_guard(struct buf *b, const struct view_device *d) {
    const struct ring_guard *g = &d->guard;
    if (!d->has_guard) return;
    json_key(b, "guard");
    json_open(b, '{');
    json_pair_str(b, "mode", guard_mode_word(g));
    json_pair_str(b, "lever", guard_lever_words(g));
    if (*g->why) json_pair_str(b, "why", g->why);
    if (g->mode != RING_GUARD_OFF) {
        if (g->lever != GUARD_BY_NONE && isfinite(g->limit)) put_number(b, "limit", g->limit, 0.001);
        if (g->lever != GUARD_BY_NONE && isfinite(g->baseline)) put_number(b, "baseline", g->baseline, 0.001);
        if (g->lever != GUARD_BY_NONE) json_pair_str(b, "unit", guard_unit(g));
        if (isfinite(g->target[GUARD_CORE])) put_number(b, "target", g->target[GUARD_CORE], 0.001);
        json_pair_str(b, "reason", guard_reason_words((enum guard_reason)g->reason));
    }
    json_close(b, '}');
}

static void put_head(struct buf *b, const struct view_device *d) {
    char why[160];
    json_pair_int(b, "index", d->inventory.index);
    json_pair_str(b, "uuid", d->inventory.uuid);
    json_pair_str(b, "model", d->inventory.name);
    json_pair_str(b, "state", view_state(d, why, sizeof why));
    if (*why) json_pair_str(b, "state_reason", why);
    if (d->state.since_real_ns) put_time(b, "state_since", d->state.since_real_ns);
}

static void put_instance(struct buf *b, const struct view *v, const struct view_device *d) {
    json_open(b, '{');
    put_head(b, d);
    json_pair_int(b, "gpu_instance", d->inventory.gi);
    json_pair_int(b, "compute_instance", d->inventory.ci);
    put_metrics(b, v, d);
    put_processes(b, d);
    json_close(b, '}');
}

static void put_gpu(struct buf *b, const struct view *v, size_t at, bool with_inventory) {
    const struct view_device *d = &v->of[at];
    json_open(b, '{');
    put_head(b, d);
    if (*d->inventory.pci) json_pair_str(b, "pci", d->inventory.pci);
    put_metrics(b, v, d);
    put_processes(b, d);
    put_xids(b, d);
    put_guard(b, d);
    if (with_inventory) {
        json_key(b, "inventory");
        json_open(b, '{');
        inventory_pairs(v, at, b);
        json_close(b, '}');
    }
    json_key(b, "instances");
    json_open(b, '[');
    for (size_t i = 0; i < v->count; i++)
        if (v->of[i].inventory.parent == (int32_t)at) put_instance(b, v, &v->of[i]);
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
    put_time(b, "time", ev->real_ns);
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
    put_time(b, "time", v->real_ns);
    put_driver(b, v);
    json_close(b, '}');
    buf_putc(b, '\n');
}
