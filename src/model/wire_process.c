/* The two frames of model/wire_device.h that are lists: processes, and the end of a round. */
#include <string.h>

#include "model/wire_device.h"
#include "model/wire_frame.h"

size_t wire_begin_processes(struct buf *b, const struct wire_processes *p) {
    size_t from = wire_begin(b, WIRE_PROCESSES);
    out_u16(b, p->device);
    out_i64(b, p->boot_ns);
    out_u32(b, p->total);
    out_u16(b, p->count);
    return from;
}

void wire_add_process(struct buf *b, const struct wire_process *p) {
    size_t record = out_record_begin(b);
    out_u32(b, p->of.pid);
    out_u32(b, p->of.kinds);
    out_u64(b, p->of.memory_bytes);
    out_u32(b, p->of.gi);
    out_u32(b, p->of.ci);
    out_u16(b, p->of.sm);
    out_u16(b, p->of.memory);
    out_u16(b, p->of.encoder);
    out_u16(b, p->of.decoder);
    out_u32(b, p->uid);
    out_i64(b, p->start_boot_ns);
    out_text(b, p->user);
    out_text(b, p->comm);
    out_text(b, p->command);
    out_record_end(b, record);
}

static bool get_process(struct wire_in *in, struct wire_process *p) {
    struct wire_in record = in_record(in);
    p->of.pid = in_u32(&record);
    p->of.kinds = in_u32(&record);
    p->of.memory_bytes = in_u64(&record);
    p->of.gi = in_u32(&record);
    p->of.ci = in_u32(&record);
    p->of.sm = in_u16(&record);
    p->of.memory = in_u16(&record);
    p->of.encoder = in_u16(&record);
    p->of.decoder = in_u16(&record);
    p->uid = in_u32(&record);
    p->start_boot_ns = in_i64(&record);
    in_text(&record, p->user, sizeof p->user);
    in_text(&record, p->comm, sizeof p->comm);
    in_text(&record, p->command, sizeof p->command);
    return !record.is_bad;
}

int wire_get_processes(const struct wire_frame *f, struct wire_processes *ret, struct error *e) {
    struct wire_processes list = {0};
    struct wire_process one;
    struct wire_in in;
    int r = wire_open(f, WIRE_PROCESSES, &in, e);
    if (r < 0) return r;
    list.device = in_u16(&in);
    list.boot_ns = in_i64(&in);
    list.total = in_u32(&in);
    list.count = in_u16(&in);
    list.at = in.at;
    if (list.count > RING_PROCESSES_MAX || list.count > list.total) in.is_bad = true;
    for (uint16_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_process(&in, &one)) in.is_bad = true;
    if (in.is_bad || list.device >= WIRE_DEVICES_MAX) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    *ret = list;
    return 0;
}

bool wire_next_process(struct wire_processes *list, struct wire_process *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0 || !get_process(&in, ret)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    return true;
}

void wire_put_round(struct buf *b, const struct wire_round *r) {
    size_t from = wire_begin(b, WIRE_ROUND);
    out_i64(b, r->boot_ns);
    out_i64(b, r->real_ns);
    out_u16(b, r->sources);
    for (uint16_t i = 0; i < r->sources; i++) {
        size_t record = out_record_begin(b);
        out_i64(b, r->source[i].beat_ns);
        out_u32(b, r->source[i].writer);
        out_record_end(b, record);
    }
    wire_end(b, from);
}

int wire_get_round(const struct wire_frame *f, struct wire_round *ret, struct error *e) {
    struct wire_round round = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_ROUND, &in, e);
    if (r < 0) return r;
    round.boot_ns = in_i64(&in);
    round.real_ns = in_i64(&in);
    round.sources = in_u16(&in);
    if (round.sources > WIRE_SOURCES_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < round.sources && !in.is_bad; i++) {
        struct wire_in record = in_record(&in);
        round.source[i].beat_ns = in_i64(&record);
        round.source[i].writer = in_u32(&record);
        if (record.is_bad) in.is_bad = true;
    }
    if (in.is_bad) return wire_bad(f, e);
    *ret = round;
    return 0;
}
