#include "model/inventory_json.h"

#include <string.h>

#include "base/json.h"

#define TEXT(member, key, label)                                                                                       \
    { key, label, offsetof(struct inventory, member) }
const struct inventory_text inventory_texts[INVENTORY_TEXTS] = {
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

const struct inventory_limit inventory_limits[INVENTORY_LIMITS] = {
    {"shutdown_celsius",   "shutdown_margin_celsius",   "shutdown",   offsetof(struct inventory, temp_shutdown_c),
     offsetof(struct inventory, margin_shutdown_c)},
    {"slowdown_celsius",   "slowdown_margin_celsius",   "slowdown",   offsetof(struct inventory, temp_slowdown_c),
     offsetof(struct inventory, margin_slowdown_c)},
    {"gpu_max_celsius",    "gpu_max_margin_celsius",    "GPU max",    offsetof(struct inventory, temp_gpu_max_c),
     offsetof(struct inventory, margin_gpu_c)     },
    {"memory_max_celsius", "memory_max_margin_celsius", "memory max", offsetof(struct inventory, temp_memory_max_c),
     offsetof(struct inventory, margin_memory_c)  },
};

const struct inventory_way inventory_ways[INVENTORY_WAYS] = {
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
    for (size_t t = 0; t < INVENTORY_LIMITS; t++) {
        int32_t c = int_at(i, inventory_limits[t].offset), margin = int_at(i, inventory_limits[t].margin_offset);
        if (c >= 0) json_pair_int(b, inventory_limits[t].key, c);
        if (margin != INT32_MIN) json_pair_int(b, inventory_limits[t].margin_key, margin);
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

void inventory_json_instance(struct buf *b, const struct inventory *i) {
    json_open(b, '{');
    json_pair_str(b, "uuid", i->uuid);
    json_pair_str(b, "model", i->name);
    json_pair_int(b, "gpu_instance", i->gi);
    json_pair_int(b, "compute_instance", i->ci);
    json_close(b, '}');
}

void inventory_json(struct buf *b, const struct inventory *i) {
    for (size_t t = 0; t < INVENTORY_TEXTS; t++)
        if (*text_at(i, inventory_texts[t].offset))
            json_pair_str(b, inventory_texts[t].key, text_at(i, inventory_texts[t].offset));
    put_numbers(i, numbers, ARRAY_LEN(numbers), false, b);
    put_numbers(i, switches, ARRAY_LEN(switches), true, b);
    put_pci(i, b);
    put_limits(i, b);
    json_key(b, "control");
    json_open(b, '[');
    for (size_t w = 0; w < INVENTORY_WAYS; w++)
        if (i->control & inventory_ways[w].bit) json_str(b, inventory_ways[w].word);
    json_close(b, ']');
    put_clocks(i, b);
}
