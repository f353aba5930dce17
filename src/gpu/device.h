/* GPUs as the rest of the program sees them. A back end is one file and one row in device.c's table; today there is
 * one, NVML. Nothing above this header knows a vendor's types, codes or units.
 *
 * What can be read is a table of calls: one call to the driver that yields some metrics. Each GPU remembers which
 * calls it supports and what each costs, so the caller can decide how often to make it.
 *
 * Threads: different GPUs may be read from different threads at once, and one GPU from two threads as long as they
 * make different calls. Any call may block for ever: keep it off threads that must not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/inventory.h"
#include "model/ring.h"
#include "model/sample.h"

#define GPU_CALLS_MAX 64

struct gpu_driver;
struct gpu;

struct gpu_call {
    const char *name;     /* what the vendor calls it, for doctor and the cost table */
    const int *metrics;   /* metric ids it yields, ended by -1 */
    double weight;        /* how much a person misses it when it is old; 1 is ordinary */
    int least_ms;         /* more often than this it tells nothing new; 0: as often as is asked for */
    bool lists_processes; /* fills the process list, too */
    bool only_shared;     /* tells something only when two or more processes share the GPU */
    bool for_instances;   /* works on a MIG instance, too */
};

enum gpu_support { SUPPORT_UNKNOWN, SUPPORT_YES, SUPPORT_NO, SUPPORT_FORBIDDEN };

struct gpu_cost {
    enum gpu_support support;
    uint32_t made;           /* how often it was made */
    int64_t wall_ns, cpu_ns; /* typical */
    char why[80];            /* it is not supported, in words */
};

/* Opens the driver: `library` or, when empty, wherever the driver's is. The error says in one sentence what a person
 * should know: absent, too old, mismatched, no permission. */
int gpu_driver_open(const char *library, struct gpu_driver **ret, struct error *e) MUST_CHECK;
void gpu_driver_close(struct gpu_driver *d);

const char *gpu_driver_version(const struct gpu_driver *d); /* "580.159.04" */
const char *gpu_library_path(const struct gpu_driver *d);
int gpu_count(struct gpu_driver *d, struct error *e) MUST_CHECK;

/* The GPU at an index, with its inventory. -EACCES where this process may not see it. */
int gpu_open(struct gpu_driver *d, unsigned index, struct gpu **ret, struct error *e) MUST_CHECK;
void gpu_close(struct gpu *g);
const struct inventory *gpu_inventory(const struct gpu *g);

/* MIG instances of a GPU, as GPUs of their own that are closed with it. */
unsigned gpu_instances(const struct gpu *g);
struct gpu *gpu_instance(const struct gpu *g, unsigned i);

/* 1 when its MIG instances are no longer those that it was opened with, 0 when they are; or as gpu_read. Cheap where
 * there is no MIG. */
int gpu_is_recut(struct gpu *g);

/* The table of calls, the same for every GPU of a back end. */
unsigned gpu_calls(const struct gpu_driver *d);
const struct gpu_call *gpu_call(const struct gpu_driver *d, unsigned call);
struct gpu_cost gpu_cost(const struct gpu *g, unsigned call);

/* Makes one call and puts what came into the sample (and the process list, for calls that list). Results:
 *   0 or more  so many metrics came
 *   -ENOTSUP   this GPU cannot, or does not let us; do not ask again (gpu_cost says why)
 *   -EAGAIN    not this time
 *   -EINVAL    it has worked and the driver no longer knows what is meant: the GPU's handle may be stale
 *   -ENODEV    the GPU is lost
 *   -ENXIO     the driver went away: close everything and open anew */
int gpu_read(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p);

/* Errors that the driver reports by itself. */
struct gpu_xid {
    unsigned index; /* of the GPU */
    uint64_t code;
};

struct gpu_events;
int gpu_events_open(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret, struct error *e)
    MUST_CHECK;
void gpu_events_close(struct gpu_events *ev);
/* 1: *ret is filled; 0: nothing in that time, or something that is no XID; -ENODEV, -ENXIO as above. */
int gpu_events_wait(struct gpu_events *ev, int timeout_ms, struct gpu_xid *ret);
