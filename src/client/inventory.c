#include "client/inventory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/number.h"
#include "client/text.h"

enum { LABEL_WIDTH = 14 };

/* One table for both views: a text of the inventory, its name for programs and for people. */
#define TEXT(member, key, label)                                                                                       \
    { key, label, offsetof(struct inventory, member) }
static const struct {
    const char *key, *label;
    size_t offset;
} texts[] = {
    TEXT(serial, "serial", "serial"),
    TEXT(board_part, "board_part", "board part"),
    TEXT(vbios, "vbios", "VBIOS"),
    TEXT(inforom, "inforom", "InfoROM"),
    TEXT(architecture, "architecture", "architecture"),
    TEXT(driver, "driver", "driver"),
    TEXT(library, "library", "library"),
};

#define NUMBER(member, key)                                                                                            \
    { key, offsetof(struct inventory, member) }
struct number_row {
    const char *key;
    size_t offset;
};
static const struct number_row numbers[] = {
    NUMBER(minor, "minor"),
    NUMBER(cores, "cores"),
    NUMBER(bus_width, "memory_bus_bits"),
    NUMBER(nvlinks, "nvlinks"),
    NUMBER(clock_sm_max_mhz, "sm_max_mhz"),
    NUMBER(clock_memory_max_mhz, "memory_max_mhz"),
};
static const struct number_row switches[] = {NUMBER(ecc, "ecc"), NUMBER(persistence, "persistence"),
                                             NUMBER(mig_mode, "mig")};

/* Limits by where they lie: absolute in degrees, and as the distance to the limit. */
static const struct {
    const char *key, *margin_key, *word;
    size_t offset, margin_offset;
} thermal[] = {
    {"shutdown_celsius",   "shutdown_margin_celsius",   "shutdown",   offsetof(struct inventory, temp_shutdown_c),
     offsetof(struct inventory, margin_shutdown_c)},
    {"slowdown_celsius",   "slowdown_margin_celsius",   "slowdown",   offsetof(struct inventory, temp_slowdown_c),
     offsetof(struct inventory, margin_slowdown_c)},
    {"gpu_max_celsius",    "gpu_max_margin_celsius",    "GPU max",    offsetof(struct inventory, temp_gpu_max_c),
     offsetof(struct inventory, margin_gpu_c)     },
    {"memory_max_celsius", "memory_max_margin_celsius", "memory max", offsetof(struct inventory, temp_memory_max_c),
     offsetof(struct inventory, margin_memory_c)  },
};

static const struct {
    uint32_t bit;
    const char *word;
} ways[] = {
    {CONTROL_POWER,         "power limit"       },
    {CONTROL_LOCKED_CLOCKS, "locked clocks"     },
    {CONTROL_APP_CLOCKS,    "application clocks"},
};

static const char *text_at(const struct inventory *i, size_t offset) { return (const char *)i + offset; }

static int32_t int_at(const struct inventory *i, size_t offset) {
    int32_t v;
    memcpy(&v, (const char *)i + offset, sizeof v);
    return v;
}

/* ---- for programs ---- */

static void put_numbers(const struct inventory *i, const struct number_row *rows, size_t n, bool is_switch,
                        struct buf *b) {
    for (size_t r = 0; r < n; r++) {
        int32_t v = int_at(i, rows[r].offset);
        if (v < 0) continue;
        if (is_switch)
            json_pair_bool(b, rows[r].key, v == 1);
        else
            json_pair_int(b, rows[r].key, v);
    }
}

static void put_pci(const struct inventory *i, struct buf *b) {
    json_key(b, "pci");
    json_open(b, '{');
    if (*i->pci) json_pair_str(b, "address", i->pci);
    if (i->pcie_gen_max >= 0) json_pair_int(b, "generation_max", i->pcie_gen_max);
    if (i->pcie_width_max >= 0) json_pair_int(b, "width_max", i->pcie_width_max);
    json_close(b, '}');
}

static void put_limits(const struct inventory *i, struct buf *b) {
    json_key(b, "power_limits");
    json_open(b, '{');
    if (i->limit_min_mw >= 0) json_pair_num(b, "min_watts", i->limit_min_mw / 1000.0);
    if (i->limit_max_mw >= 0) json_pair_num(b, "max_watts", i->limit_max_mw / 1000.0);
    if (i->limit_default_mw >= 0) json_pair_num(b, "default_watts", i->limit_default_mw / 1000.0);
    json_close(b, '}');
    json_key(b, "temperature_limits");
    json_open(b, '{');
    for (size_t t = 0; t < ARRAY_LEN(thermal); t++) {
        int32_t c = int_at(i, thermal[t].offset), margin = int_at(i, thermal[t].margin_offset);
        if (c >= 0) json_pair_int(b, thermal[t].key, c);
        if (margin != INT32_MIN) json_pair_int(b, thermal[t].margin_key, margin);
    }
    json_close(b, '}');
}

static void put_clocks(const struct inventory *i, struct buf *b) {
    json_key(b, "clocks_mhz");
    json_open(b, '[');
    for (int32_t m = 0; m < i->memory_clocks && m < MEMORY_CLOCKS_MAX; m++) {
        json_open(b, '{');
        json_pair_int(b, "memory", i->clocks[m].mhz);
        json_key(b, "graphics");
        json_open(b, '[');
        for (int32_t g = 0; g < i->clocks[m].graphics_count && g < GRAPHICS_CLOCKS_MAX; g++)
            json_int(b, i->clocks[m].graphics_mhz[g]);
        json_close(b, ']');
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void put_instances(const struct view *v, size_t at, struct buf *b) {
    json_key(b, "mig_instances");
    json_open(b, '[');
    for (size_t n = 0; n < v->count; n++) {
        const struct inventory *i = &v->of[n].inventory;
        if (i->parent != (int32_t)at) continue;
        json_open(b, '{');
        json_pair_str(b, "uuid", i->uuid);
        json_pair_str(b, "model", i->name);
        json_pair_int(b, "gpu_instance", i->gi);
        json_pair_int(b, "compute_instance", i->ci);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void inventory_pairs(const struct view *v, size_t at, struct buf *b) {
    const struct inventory *i = &v->of[at].inventory;
    for (size_t t = 0; t < ARRAY_LEN(texts); t++)
        if (*text_at(i, texts[t].offset)) json_pair_str(b, texts[t].key, text_at(i, texts[t].offset));
    put_numbers(i, numbers, ARRAY_LEN(numbers), false, b);
    put_numbers(i, switches, ARRAY_LEN(switches), true, b);
    put_pci(i, b);
    put_limits(i, b);
    json_key(b, "control");
    json_open(b, '[');
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        if (i->control & ways[w].bit) json_str(b, ways[w].word);
    json_close(b, ']');
    put_clocks(i, b);
    if (i->mig_mode == 1) put_instances(v, at, b);
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
    for (size_t t = 0; t < ARRAY_LEN(thermal); t++) {
        int32_t c = int_at(i, thermal[t].offset), margin = int_at(i, thermal[t].margin_offset);
        if (c >= 0) join(&degrees, "%s %d", thermal[t].word, (int)c);
        if (margin != INT32_MIN) join(&margins, "%s %d", thermal[t].word, (int)margin);
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
    for (size_t t = 0; t < ARRAY_LEN(texts); t++)
        if (*text_at(i, texts[t].offset)) line(s, b, texts[t].label, "%s", text_at(i, texts[t].offset));
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
    for (size_t w = 0; w < ARRAY_LEN(ways); w++)
        if (i->control & ways[w].bit) join(&control, "%s", ways[w].word);
    if (*i->uuid) line(s, b, "can be set", "%s", control.len ? control.s : "nothing");
    print_mig(v, at, s, b);
}

void inventory_text(const struct view *v, const struct screen *s, struct buf *b) {
    for (size_t i = 0; i < v->count; i++)
        if (!view_is_instance(&v->of[i])) print_gpu(v, i, s, b);
    if (v->driver.state == DRIVER_ABSENT && *v->driver.text) buf_printf(b, "The driver: %s\n", v->driver.text);
}
