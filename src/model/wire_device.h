/* What a node tells of its GPUs and of the machine (model/wire.h says how all of it lies on the wire). Device numbers are
 * those of the session's INVENTORY frames; decoders refuse numbers beyond WIRE_DEVICES_MAX, and the reader those beyond the
 * session's. */
#pragma once

#include "model/event.h"
#include "model/host_metrics.h"
#include "model/ring.h"
#include "model/wire.h"

/* ---- readings ---- */

void wire_put_sample(struct buf *b, uint16_t device, int64_t mark, const struct sample *s);
int wire_get_sample(const struct wire_frame *f, const struct wire_map *map, uint16_t *device, int64_t *mark,
                    struct sample *ret, struct error *e) MUST_CHECK;

/* All that is known now, with how long each counts: at the start of a session and from time to time. for_ns (by our ids,
 * may be NULL) gets how long a reading of each metric stays current, for latest_take. */
void wire_put_latest(struct buf *b, uint16_t device, const struct latest *l);
int wire_get_latest(const struct wire_frame *f, const struct wire_map *map, uint16_t *device, struct latest *ret,
                    int64_t *for_ns, struct error *e) MUST_CHECK;

void wire_put_host(struct buf *b, int64_t mark, const struct host_sample *s);
int wire_get_host(const struct wire_frame *f, const struct wire_map *map, int64_t *mark, struct host_sample *ret,
                  struct error *e) MUST_CHECK;

/* ---- what changes now and then: sent when it does, and at the start of a session ---- */

void wire_put_state(struct buf *b, uint16_t device, const struct ring_state *s);
int wire_get_state(const struct wire_frame *f, uint16_t *device, struct ring_state *ret, struct error *e) MUST_CHECK;

void wire_put_xids(struct buf *b, uint16_t device, const struct ring_xids *x);
int wire_get_xids(const struct wire_frame *f, uint16_t *device, struct ring_xids *ret, struct error *e) MUST_CHECK;

void wire_put_guard(struct buf *b, uint16_t device, const struct ring_guard *g);
int wire_get_guard(const struct wire_frame *f, uint16_t *device, struct ring_guard *ret, struct error *e) MUST_CHECK;

void wire_put_driver(struct buf *b, uint16_t source, const struct ring_driver *d);
int wire_get_driver(const struct wire_frame *f, uint16_t *source, struct ring_driver *ret, struct error *e) MUST_CHECK;

/* device in ev is the session's number, or -1. */
void wire_put_event(struct buf *b, uint16_t source, int64_t mark, const struct event *ev);
int wire_get_event(const struct wire_frame *f, uint16_t *source, int64_t *mark, struct event *ret, struct error *e)
    MUST_CHECK;

/* ---- processes: a list, whole each time ---- */

struct wire_process {
    struct ring_process of;
    uint32_t uid;          /* UINT32_MAX: not known, the process is gone or hidden */
    int64_t start_boot_ns; /* with the pid it names a process for good; 0: not known */
    char user[64];         /* empty: the uid has no name */
    char comm[32];
    char command[512]; /* arguments joined by spaces, cut; empty: a kernel thread, or not ours to see */
};

/* The head of the list; total: how many there were, count how many are told. */
struct wire_processes {
    uint16_t device, count;
    uint32_t total;
    int64_t boot_ns; /* when it was read; 0: this card cannot list processes */
    const uint8_t *at;
    size_t len;
};

/* wire_begin_processes, one wire_add_process for each, wire_end. */
size_t wire_begin_processes(struct buf *b, const struct wire_processes *p);
void wire_add_process(struct buf *b, const struct wire_process *p);

/* Checks all of the list; wire_next_process then gives one after the other, false at the end. */
int wire_get_processes(const struct wire_frame *f, struct wire_processes *ret, struct error *e) MUST_CHECK;
bool wire_next_process(struct wire_processes *list, struct wire_process *ret);

/* ---- the end of a round ---- */

struct wire_round {
    int64_t boot_ns, real_ns; /* now, by the node's clocks */
    uint16_t sources;
    struct {
        int64_t beat_ns; /* when its sampler last breathed, by the boot clock; 0: there is no ring */
        uint32_t writer; /* its pid */
    } source[WIRE_SOURCES_MAX];
};

void wire_put_round(struct buf *b, const struct wire_round *r);
int wire_get_round(const struct wire_frame *f, struct wire_round *ret, struct error *e) MUST_CHECK;
