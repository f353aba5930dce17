#include "client/inventory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "client/text.h"
#include "model/inventory_json.h"

enum { LABEL_WIDTH = 14 };

static const char *text_at(const struct inventory *i, size_t offset) { return (const char *)i + offset; }

static int32_t int_at(const struct inventory *i, size_t offset) {
    int32_t v;
    memcpy(&v, (const char *)i + offset, sizeof v);
    return v;
}

/* ---- for programs ---- */

void inventory_pairs(const struct view *v, size_t at, struct buf *b) {
    inventory_json(b, &v->of[at].inventory);
    if (v->of[at].inventory.mig_mode != 1) return;
    json_key(b, "mig_instances");
    json_open(b, '[');
    for (size_t n = 0; n < v->count; n++)
        if (v->of[n].inventory.parent == (int32_t)at) inventory_json_instance(b, &v->of[n].inventory);
    json_close(b, ']');
}

/* ---- for people ---- */

static void line(const struct screen *s, struct buf *b, const char *label, const char *fmt, ...) PRINTF(4, 5);
static void line(const struct screen *s, struct buf *b, const char *label, const char *fmt, ...) {
    AUTO(buf_done) struct buf whole = {0};
    char value[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    buf_puts(&whole, "  ");
    text_pad(&whole, label, LABEL_WIDTH);
    buf_puts(&whole, value);
    if (s->is_terminal)
        text_cut(b, whole.s, s->width);
    else
        buf_puts(b, whole.s);
    buf_putc(b, '\n');
}

/* "a, b, c": adds one more. */
static void join(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
static void join(struct buf *b, const char *fmt, ...) {
    char one[120];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(one, sizeof one, fmt, ap);
    va_end(ap);
    buf_printf(b, "%s%s", b->len ? ", " : "", one);
}

static bool value_now(const struct view *v, const struct view_device *d, int metric, double *ret) {
    if (!latest_has(&d->latest, metric, v->boot_ns)) return false;
    *ret = d->latest.of[metric].value;
    return true;
}

static void print_link(const struct view *v, const struct view_device *d, const struct screen *s, struct buf *b) {
    const struct inventory *i = &d->inventory;
    AUTO(buf_done) struct buf t = {0};
    double gen, width;
    if (*i->pci) join(&t, "%s", i->pci);
    if (value_now(v, d, METRIC_PCIE_GEN, &gen) && value_now(v, d, METRIC_PCIE_WIDTH, &width))
        join(&t, "now gen %.0f x%.0f", gen, width);
    if (i->pcie_gen_max > 0 && i->pcie_width_max > 0)
        join(&t, "at most gen %d x%d", (int)i->pcie_gen_max, (int)i->pcie_width_max);
    if (t.len) line(s, b, "PCIe", "%s", t.s);
    if (i->nvlinks > 0) line(s, b, "NVLink", "%d links", (int)i->nvlinks);
}

static void print_memory(const struct view *v, const struct view_device *d, const struct screen *s, struct buf *b) {
    const struct inventory *i = &d->inventory;
    AUTO(buf_done) struct buf t = {0};
    double bytes;
    char size[32];
    if (value_now(v, d, METRIC_MEMORY_TOTAL, &bytes)) {
        number_bytes(bytes, size, sizeof size);
        join(&t, "%s", size);
    }
    if (i->bus_width > 0) join(&t, "%d bits wide", (int)i->bus_width);
    if (i->ecc >= 0) join(&t, "ECC %s", i->ecc ? "on" : "off");
    if (t.len) line(s, b, "memory", "%s", t.s);
}

static void print_limits(const struct inventory *i, const struct screen *s, struct buf *b) {
    AUTO(buf_done) struct buf degrees = {0}, margins = {0};
    if (i->limit_min_mw >= 0 && i->limit_default_mw >= 0)
        line(s, b, "power limit", "%g to %g W, %g W by default", i->limit_min_mw / 1e3, i->limit_max_mw / 1e3,
             i->limit_default_mw / 1e3);
    for (size_t t = 0; t < INVENTORY_LIMITS; t++) {
        int32_t c = int_at(i, inventory_limits[t].offset), margin = int_at(i, inventory_limits[t].margin_offset);
        if (c >= 0) join(&degrees, "%s %d", inventory_limits[t].word, (int)c);
        if (margin != INT32_MIN) join(&margins, "%s %d", inventory_limits[t].word, (int)margin);
    }
    if (degrees.len) line(s, b, "limits", "%s %s", degrees.s, s->has_utf8 ? "°C" : "C");
    if (margins.len) line(s, b, "T.Limit", "%s (degrees left when it acts)", margins.s);
}

static void print_clocks(const struct inventory *i, const struct screen *s, struct buf *b) {
    if (i->clock_sm_max_mhz > 0 && i->clock_memory_max_mhz > 0)
        line(s, b, "clocks", "SM up to %d MHz, memory up to %d MHz", (int)i->clock_sm_max_mhz,
             (int)i->clock_memory_max_mhz);
    for (int32_t m = 0; m < i->memory_clocks && m < MEMORY_CLOCKS_MAX; m++) {
        int32_t n = i->clocks[m].graphics_count;
        const uint16_t *mhz = i->clocks[m].graphics_mhz;
        if (n > 0)
            line(s, b, m ? "" : "clock table", "memory %d MHz: graphics %d to %d MHz in %d steps",
                 (int)i->clocks[m].mhz, mhz[0], mhz[n - 1], (int)n);
        else
            line(s, b, m ? "" : "clock table", "memory %d MHz", (int)i->clocks[m].mhz);
    }
}

static void print_mig(const struct view *v, size_t at, const struct screen *s, struct buf *b) {
    const struct inventory *i = &v->of[at].inventory;
    if (i->mig_mode < 0) return;
    line(s, b, "MIG", "%s", i->mig_mode == 1 ? "on" : "off");
    for (size_t n = 0; n < v->count; n++) {
        const struct view_device *d = &v->of[n];
        if (d->inventory.parent == (int32_t)at)
            line(s, b, "", "%s: GPU instance %d, compute instance %d, %s", view_short_name(d), (int)d->inventory.gi,
                 (int)d->inventory.ci, d->inventory.uuid);
    }
}

static void print_gpu(const struct view *v, size_t at, const struct screen *s, struct buf *b) {
    const struct view_device *d = &v->of[at];
    const struct inventory *i = &d->inventory;
    AUTO(buf_done) struct buf control = {0};
    char why[160];
    buf_printf(b, "%sGPU %d: %s\n", at ? "\n" : "", (int)i->index, *i->name ? i->name : "not known");
    if (!view_is_well(d)) line(s, b, "state", "%s: %s", view_state(d, why, sizeof why), why);
    if (*i->uuid) line(s, b, "UUID", "%s", i->uuid);
    for (size_t t = 0; t < INVENTORY_TEXTS; t++)
        if (*text_at(i, inventory_texts[t].offset))
            line(s, b, inventory_texts[t].label, "%s", text_at(i, inventory_texts[t].offset));
    if (i->minor >= 0)
        line(s, b, "device", "/dev/nvidia%d%s", (int)i->minor,
             i->persistence == 1   ? ", persistence on"
             : i->persistence == 0 ? ", persistence off"
                                   : "");
    if (i->cores > 0) line(s, b, "cores", "%d", (int)i->cores);
    print_memory(v, d, s, b);
    print_link(v, d, s, b);
    print_limits(i, s, b);
    print_clocks(i, s, b);
    for (size_t w = 0; w < INVENTORY_WAYS; w++)
        if (i->control & inventory_ways[w].bit) join(&control, "%s", inventory_ways[w].word);
    if (*i->uuid) line(s, b, "can be set", "%s", control.len ? control.s : "nothing");
    print_mig(v, at, s, b);
}

void inventory_text(const struct view *v, const struct screen *s, struct buf *b) {
    for (size_t i = 0; i < v->count; i++)
        if (!view_is_instance(&v->of[i])) print_gpu(v, i, s, b);
    if (v->driver.state == DRIVER_ABSENT && *v->driver.text) buf_printf(b, "The driver: %s\n", v->driver.text);
}
