/* The ring: what the sampler says, in memory that anyone may map read-only. One writing process, any number of
 * readers, no lock between them; either side may die at any instruction.
 *
 *   header   who writes, when it last breathed, the bell (a futex word), what the driver says
 *   device   one block a GPU or MIG instance: inventory (fixed), state, latest values, processes, XIDs,
 *            and a FIFO of samples, the newest overwriting the oldest
 *   events   a FIFO of events
 *
 * FIFO slots are seqlocks: odd while written, 2n when entry n is whole; a reader checks before and after it copies,
 * and skips what is not whole. Things that are overwritten in place are kept twice ("twins") and written one after
 * the other, so that one is whole even if the writer died in the other. All words are relaxed atomics.
 * A file's layout never changes: another set of GPUs is another file, renamed over the old one.
 *
 * This file does no I/O: memory comes from the caller (base/shm). Writers must hold their own lock per call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/event.h"
#include "model/inventory.h"
#include "model/ring_guard.h"
#include "model/sample.h"

#define RING_VERSION 2
#define RING_PROCESSES_MAX 128
#define RING_XIDS_MAX 16
#define RING_EVENTS 128

enum device_state {
    DEVICE_STARTING,      /* found, nothing read yet */
    DEVICE_OK,            /* */
    DEVICE_NOT_ANSWERING, /* a call has not come back in time */
    DEVICE_LOST,          /* the driver says so, or silence for long */
    DEVICE_FENCED,        /* another process of ours is stuck with it: left alone */
    DEVICE_FORBIDDEN      /* the driver has it and does not let us see it */
};

struct ring_state {
    int64_t since_boot_ns, since_real_ns;
    uint64_t state; /* enum device_state */
    char text[104]; /* why, for people; may be empty */
};

enum ring_driver_state { DRIVER_STARTING, DRIVER_OK, DRIVER_ABSENT };

struct ring_driver {
    int64_t since_real_ns;
    uint64_t state; /* enum ring_driver_state */
    char text[240]; /* one sentence when it does not answer */
};

enum process_kind { PROCESS_COMPUTE = 1, PROCESS_GRAPHICS = 2, PROCESS_MPS = 4 };
#define PROCESS_NO_MEMORY UINT64_MAX
#define PROCESS_NO_SHARE UINT16_MAX

struct ring_process {
    uint32_t pid, kinds;                   /* enum process_kind bits */
    uint64_t memory_bytes;                 /* or PROCESS_NO_MEMORY */
    uint32_t gi, ci;                       /* UINT32_MAX without MIG */
    uint16_t sm, memory, encoder, decoder; /* percent, or PROCESS_NO_SHARE */
};

struct ring_processes {
    int64_t boot_ns;       /* when the list was read; 0: this card cannot list processes */
    uint32_t count, total; /* entries here; processes there were */
    struct ring_process of[RING_PROCESSES_MAX];
};

struct ring_xids {
    uint64_t count;
    struct {
        uint64_t code, count;
        int64_t last_real_ns;
    } of[RING_XIDS_MAX];
};

/* What a layout is made of. */
struct ring_spec {
    uint32_t devices, slots; /* slots: samples kept per device */
    const struct inventory *inventory;
};

/* Sizes are the ones that were checked: what a writer does to the header later moves no reader out of the memory. */
struct ring {
    struct ring_header *h;
    size_t size;
    uint32_t devices, slots;
};

size_t ring_size(uint32_t devices, uint32_t slots);

/* Writer: lays a new ring out in zeroed memory. */
void ring_format(struct ring *r, void *mem, const struct ring_spec *spec, uint32_t pid, int64_t now_boot_ns);

/* Reader: checks foreign memory before anything in it is believed. mem is aligned to 8 bytes. What it cannot see is a
 * file that its owner makes shorter later, which is SIGBUS: read only the rings of those who are trusted that far. */
int ring_attach(struct ring *r, void *mem, size_t size, struct error *e) MUST_CHECK;

/* Writer after a restart: mends what a dead writer left of an attached ring and takes it over. False when there is
 * nothing to mend it from. ring_adopt does so only if the ring has just this spec. */
bool ring_inherit(struct ring *r, uint32_t pid, int64_t now_boot_ns) MUST_CHECK;
bool ring_adopt(struct ring *r, const struct ring_spec *spec, uint32_t pid, int64_t now_boot_ns) MUST_CHECK;

uint32_t ring_devices(const struct ring *r);
uint32_t ring_slots(const struct ring *r);
uint32_t ring_writer(const struct ring *r);
int64_t ring_beat_ns(const struct ring *r);
_Atomic uint32_t *ring_bell(const struct ring *r);
const struct inventory *ring_inventory(const struct ring *r, uint32_t device);

/* A place in a ring's FIFOs as one number that grows from entry to entry and from one file to the next of the same boot:
 * when the file was made, and the entry's number. ring_after is the entry to go on with after a mark: the first one of
 * a file that the mark knows nothing of. */
int64_t ring_mark(const struct ring *r, uint64_t number);
uint64_t ring_after(const struct ring *r, int64_t mark);

/* Readers. A false result means that nothing whole is there (yet, or any more), and leaves the zero value. */
uint64_t ring_head(const struct ring *r, uint32_t device); /* number of the newest sample, 0: none */
bool ring_sample(const struct ring *r, uint32_t device, uint64_t number, struct sample *ret);
bool ring_latest(const struct ring *r, uint32_t device, struct latest *ret);
bool ring_state(const struct ring *r, uint32_t device, struct ring_state *ret);
bool ring_processes(const struct ring *r, uint32_t device, struct ring_processes *ret);
/* Changes whenever a list is written: cheap to ask. */
uint64_t ring_processes_turn(const struct ring *r, uint32_t device);
bool ring_xids(const struct ring *r, uint32_t device, struct ring_xids *ret);
bool ring_guard(const struct ring *r, uint32_t device, struct ring_guard *ret);
bool ring_driver(const struct ring *r, struct ring_driver *ret);
uint64_t ring_event_head(const struct ring *r);
bool ring_event(const struct ring *r, uint64_t number, struct event *ret);

/* Writer. None of these rings the bell: ring_toll changes its word, once what belongs together is in, and
 * shm_wake(ring_bell()) wakes those who wait on it. */
void ring_put_sample(struct ring *r, uint32_t device, const struct sample *s);
void ring_put_latest(struct ring *r, uint32_t device, const struct latest *l);
void ring_put_state(struct ring *r, uint32_t device, const struct ring_state *s);
void ring_put_processes(struct ring *r, uint32_t device, const struct ring_processes *p);
void ring_put_xids(struct ring *r, uint32_t device, const struct ring_xids *x);
void ring_put_guard(struct ring *r, uint32_t device, const struct ring_guard *g);
void ring_put_driver(struct ring *r, const struct ring_driver *d);
void ring_put_event(struct ring *r, const struct event *ev);
void ring_beat(struct ring *r, int64_t now_boot_ns);
void ring_toll(struct ring *r);

const char *device_state_name(enum device_state s);
