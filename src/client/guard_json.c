#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "client/guard.h"
#include "model/guard_words.h"

static void put_time(struct buf *b, const char *key, int64_t real_ns) {
    char text[40];
    number_time_utc(real_ns, text, sizeof text);
    json_pair_str(b, key, text);
}

/* What is not known is left out. */
static void put_number(struct buf *b, const char *key, double value, double scale) {
    char text[64];
    if (!isfinite(value)) return;
    number_text(value, scale, text, sizeof text);
    json_key(b, key);
    buf_puts(b, text);
}

static void put_sensors(struct buf *b, const char *key, const double of[GUARD_SENSORS]) {
    json_key(b, key);
    json_open(b, '{');
    for (int s = 0; s < GUARD_SENSORS; s++) put_number(b, guard_sensor_word((enum guard_sensor)s), of[s], 0.001);
    json_close(b, '}');
}

static void put_manual(struct buf *b, const struct view *v, const struct ring_guard *g) {
    if (!g->manual_until_ns) return;
    json_key(b, "manual");
    json_open(b, '{');
    put_time(b, "until", v->real_ns + (g->manual_until_ns - v->boot_ns));
    if (g->confirm_by_ns) put_time(b, "confirm_by", v->real_ns + (g->confirm_by_ns - v->boot_ns));
    json_close(b, '}');
}

static void put_guard(struct buf *b, const struct view *v, const struct ring_guard *g) {
    json_pair_str(b, "mode", guard_mode_word(g));
    json_pair_str(b, "lever", guard_lever_words(g));
    if (*g->why) json_pair_str(b, "why", g->why);
    put_sensors(b, "targets", g->target);
    put_sensors(b, "readings", g->reading);
    if (g->lever != GUARD_BY_NONE) {
        put_number(b, "limit", g->limit, 0.001);
        put_number(b, "baseline", g->baseline, 0.001);
        put_number(b, "floor", g->floor, 0.001);
        json_pair_str(b, "unit", guard_unit(g));
    }
    json_pair_str(b, "reason", guard_reason_words((enum guard_reason)g->reason));
    if (g->since_real_ns) put_time(b, "since", g->since_real_ns);
    put_number(b, "throttled_seconds", g->throttled_s, 0.001);
    if (g->lever == GUARD_BY_POWER) put_number(b, "withheld_watts", g->withheld_w, 0.001);
    put_manual(b, v, g);
}

void guard_json(const struct view *v, struct buf *b) {
    json_open(b, '{');
    json_key(b, "gpus");
    json_open(b, '[');
    for (size_t i = 0; i < v->count; i++) {
        const struct view_device *d = &v->of[i];
        char why[160];
        if (view_is_instance(d)) continue;
        json_open(b, '{');
        json_pair_int(b, "index", d->inventory.index);
        json_pair_str(b, "uuid", d->inventory.uuid);
        json_pair_str(b, "model", d->inventory.name);
        json_pair_str(b, "state", view_state(d, why, sizeof why));
        if (d->has_guard) put_guard(b, v, &d->guard);
        json_close(b, '}');
    }
    json_close(b, ']');
    put_time(b, "time", v->real_ns);
    json_close(b, '}');
    buf_putc(b, '\n');
}
