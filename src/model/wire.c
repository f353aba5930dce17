#include "model/wire.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "model/host_metrics.h"
#include "model/wire_code.h"
#include "model/wire_frame.h"

/* ---- frames ---- */

int wire_frame(const void *bytes, size_t n, struct wire_frame *ret, struct error *e) {
    if (n < WIRE_HEAD_BYTES) return 0;
    struct wire_in in = {.at = bytes, .end = (const uint8_t *)bytes + WIRE_HEAD_BYTES};
    uint32_t length = in_u32(&in);
    uint8_t type = in_u8(&in), version = in_u8(&in);
    uint16_t zero = in_u16(&in);
    if (length < WIRE_HEAD_BYTES - 4 || length > WIRE_FRAME_MAX || type == 0 || version == 0 || zero != 0)
        return fail(e, -EPROTO, "bytes that are no frame of gpumgr");
    size_t size = (size_t)length + 4;
    if (n < size) return 0;
    *ret = (struct wire_frame){.type = type, .version = version, .body = in.at, .len = size - WIRE_HEAD_BYTES};
    return (int)size;
}

void wire_stream_done(struct wire_stream *s) {
    buf_done(&s->bytes);
    s->taken = 0;
}

void wire_stream_add(struct wire_stream *s, const void *bytes, size_t n) {
    if (s->taken) {
        size_t left = s->bytes.len - s->taken;
        memmove(s->bytes.s, s->bytes.s + s->taken, left);
        s->bytes.len = left;
        s->taken = 0;
    }
    buf_add(&s->bytes, bytes, n);
}

int wire_stream_next(struct wire_stream *s, struct wire_frame *ret, struct error *e) {
    if (s->taken >= s->bytes.len) return 0;
    int size = wire_frame(s->bytes.s + s->taken, s->bytes.len - s->taken, ret, e);
    if (size <= 0) return size;
    s->taken += (size_t)size;
    return 1;
}

size_t wire_begin(struct buf *b, enum wire_type type) {
    size_t from = b->len;
    out_u32(b, 0);
    out_u8(b, (uint8_t)type);
    out_u8(b, WIRE_VERSION);
    out_u16(b, 0);
    return from;
}

void wire_end(struct buf *b, size_t from) {
    size_t length = b->len - from - 4;
    for (size_t i = 0; i < 4; i++) b->s[from + i] = (char)(uint8_t)(length >> (8 * i));
}

/* ---- HELLO ---- */

static void put_names(struct buf *b, const struct metric *of, uint16_t count) {
    out_u16(b, count);
    for (uint16_t i = 0; i < count; i++) out_text(b, of[i].name);
}

void wire_put_hello(struct buf *b, const struct wire_hello *h) {
    size_t from = wire_begin(b, WIRE_HELLO);
    out_text(b, h->node);
    out_text(b, h->boot_id);
    out_text(b, h->version);
    out_i64(b, h->boot_ns);
    out_i64(b, h->real_ns);
    out_u64(b, h->catalogue);
    out_u16(b, h->devices);
    out_u16(b, h->sources);
    put_names(b, metrics, METRIC_COUNT);
    put_names(b, host_metrics, HOST_METRIC_COUNT);
    wire_end(b, from);
}

#define NAME_ROOM 96

static void get_names(struct wire_in *in, struct wire_names *ret) {
    char name[NAME_ROOM];
    ret->count = in_u16(in);
    if (ret->count > WIRE_METRICS_MAX) in->is_bad = true;
    ret->at = in->at;
    for (uint16_t i = 0; i < ret->count && !in->is_bad; i++) in_text(in, name, sizeof name);
    ret->len = in->is_bad ? 0 : (size_t)(in->at - ret->at);
}

int wire_get_hello(const struct wire_frame *f, struct wire_hello *ret, struct error *e) {
    struct wire_hello h = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_HELLO, &in, e);
    if (r < 0) return r;
    in_text(&in, h.node, sizeof h.node);
    in_text(&in, h.boot_id, sizeof h.boot_id);
    in_text(&in, h.version, sizeof h.version);
    h.boot_ns = in_i64(&in);
    h.real_ns = in_i64(&in);
    h.catalogue = in_u64(&in);
    h.devices = in_u16(&in);
    h.sources = in_u16(&in);
    get_names(&in, &h.gpu);
    get_names(&in, &h.host);
    if (in.is_bad || !h.node[0] || !h.boot_id[0] || h.devices > WIRE_DEVICES_MAX || h.sources > WIRE_SOURCES_MAX)
        return wire_bad(f, e);
    *ret = h;
    return 0;
}

void wire_map_make(struct wire_map *m, const struct wire_names *names, int (*find)(const char *name)) {
    char name[NAME_ROOM];
    struct wire_in in = {.at = names->at, .end = names->at + names->len};
    m->count = names->count < WIRE_METRICS_MAX ? names->count : WIRE_METRICS_MAX;
    for (uint16_t i = 0; i < m->count; i++) {
        in_text(&in, name, sizeof name);
        m->of[i] = in.is_bad ? -1 : (int16_t)find(name);
    }
}

/* ---- INVENTORY: two lists, so that either may grow at its end ---- */

#define TEXT(field)                                                                                                    \
    { offsetof(struct inventory, field), sizeof(((struct inventory *)0)->field) }
static const struct {
    size_t at, room;
} texts[] = {TEXT(uuid),    TEXT(name),   TEXT(serial),  TEXT(vbios), TEXT(board_part),
             TEXT(inforom), TEXT(driver), TEXT(library), TEXT(pci),   TEXT(architecture)};

#define NUMBER(field) offsetof(struct inventory, field)
static const size_t numbers[] = {
    NUMBER(index),
    NUMBER(minor),
    NUMBER(parent),
    NUMBER(gi),
    NUMBER(ci),
    NUMBER(mig_mode),
    NUMBER(mig_count),
    NUMBER(cores),
    NUMBER(bus_width),
    NUMBER(pcie_gen_max),
    NUMBER(pcie_width_max),
    NUMBER(limit_min_mw),
    NUMBER(limit_max_mw),
    NUMBER(limit_default_mw),
    NUMBER(temp_shutdown_c),
    NUMBER(temp_slowdown_c),
    NUMBER(temp_memory_max_c),
    NUMBER(temp_gpu_max_c),
    NUMBER(margin_shutdown_c),
    NUMBER(margin_slowdown_c),
    NUMBER(margin_memory_c),
    NUMBER(margin_gpu_c),
    NUMBER(clock_sm_max_mhz),
    NUMBER(clock_memory_max_mhz),
    NUMBER(nvlinks),
    NUMBER(ecc),
    NUMBER(persistence),
    NUMBER(control),
};

static void put_clocks(struct buf *b, const struct inventory *i) {
    out_u16(b, (uint16_t)i->memory_clocks);
    for (int32_t c = 0; c < i->memory_clocks; c++) {
        out_i32(b, i->clocks[c].mhz);
        out_u16(b, (uint16_t)i->clocks[c].graphics_count);
        for (int32_t g = 0; g < i->clocks[c].graphics_count; g++) out_u16(b, i->clocks[c].graphics_mhz[g]);
    }
}

void wire_put_inventory(struct buf *b, uint16_t device, uint16_t source, const struct inventory *i) {
    size_t from = wire_begin(b, WIRE_INVENTORY);
    out_u16(b, device);
    out_u16(b, source);
    out_u16(b, ARRAY_LEN(texts));
    for (size_t t = 0; t < ARRAY_LEN(texts); t++) out_text(b, (const char *)i + texts[t].at);
    out_u16(b, ARRAY_LEN(numbers));
    for (size_t n = 0; n < ARRAY_LEN(numbers); n++) {
        int32_t v;
        memcpy(&v, (const char *)i + numbers[n], sizeof v);
        out_i32(b, v);
    }
    put_clocks(b, i);
    wire_end(b, from);
}

static void get_texts(struct wire_in *in, struct inventory *i) {
    uint16_t count = in_u16(in);
    for (uint16_t t = 0; t < count && !in->is_bad; t++) {
        if (t < ARRAY_LEN(texts))
            in_text(in, (char *)i + texts[t].at, texts[t].room);
        else
            in_record(in); /* a text that came after our time: the same lengths */
    }
}

static void get_numbers(struct wire_in *in, struct inventory *i) {
    uint16_t count = in_u16(in);
    for (uint16_t n = 0; n < count && !in->is_bad; n++) {
        int32_t v = in_i32(in);
        if (n < ARRAY_LEN(numbers)) memcpy((char *)i + numbers[n], &v, sizeof v);
    }
}

static void get_clocks(struct wire_in *in, struct inventory *i) {
    i->memory_clocks = in_u16(in);
    if (i->memory_clocks > MEMORY_CLOCKS_MAX) in->is_bad = true;
    for (int32_t c = 0; c < i->memory_clocks && !in->is_bad; c++) {
        i->clocks[c].mhz = in_i32(in);
        i->clocks[c].graphics_count = in_u16(in);
        if (i->clocks[c].graphics_count > GRAPHICS_CLOCKS_MAX) in->is_bad = true;
        for (int32_t g = 0; g < i->clocks[c].graphics_count && !in->is_bad; g++)
            i->clocks[c].graphics_mhz[g] = in_u16(in);
    }
}

int wire_get_inventory(const struct wire_frame *f, uint16_t *device, uint16_t *source, struct inventory *ret,
                       struct error *e) {
    struct inventory i;
    struct wire_in in;
    int r = wire_open(f, WIRE_INVENTORY, &in, e);
    if (r < 0) return r;
    inventory_init(&i, -1);
    uint16_t number = in_u16(&in), from = in_u16(&in);
    get_texts(&in, &i);
    get_numbers(&in, &i);
    get_clocks(&in, &i);
    if (in.is_bad || number >= WIRE_DEVICES_MAX || from >= WIRE_SOURCES_MAX || !i.uuid[0]) return wire_bad(f, e);
    if (i.parent < -1 || i.parent >= WIRE_DEVICES_MAX || i.mig_count < 0 || i.mig_count > MIG_MAX)
        return wire_bad(f, e);
    *device = number;
    *source = from;
    *ret = i;
    return 0;
}
