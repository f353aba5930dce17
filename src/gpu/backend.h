/* What a back end gives to device.c, and nobody else: a const struct of functions, and the first members of its own
 * structs. */
#pragma once

#include <stdatomic.h>

#include "gpu/device.h"

struct gpu_driver {
    const struct gpu_backend *backend;
    char version[80], library[256];
};

/* What is known of one call on one GPU: written by the thread that makes the call, read by any. */
struct gpu_note {
    _Atomic int support; /* enum gpu_support */
    _Atomic uint32_t made;
    _Atomic int64_t wall_ns, cpu_ns;
    _Atomic uint64_t yields; /* which of its metrics have come so far, by their place in the row */
    _Atomic(const char *) why;
};

struct gpu {
    struct gpu_driver *driver;
    struct inventory inventory;
    struct gpu_note note[GPU_CALLS_MAX];
    unsigned instance_count;
    struct gpu *instance[MIG_MAX];
};

struct gpu_backend {
    const char *name;
    int (*open)(const char *library, struct gpu_driver **ret, struct error *e);
    void (*close)(struct gpu_driver *d);
    int (*count)(struct gpu_driver *d, struct error *e);
    int (*gpu_open)(struct gpu_driver *d, unsigned index, struct gpu **ret, struct error *e);
    void (*gpu_close)(struct gpu *g);
    int (*is_recut)(struct gpu *g);
    unsigned (*calls)(void);
    const struct gpu_call *(*call)(unsigned call);
    int (*read)(struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p);
    const char *(*why_not)(const struct gpu *g, unsigned call); /* a GPU does not have the call: lasting words */
    int (*events_open)(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret,
                       struct error *e);
    void (*events_close)(struct gpu_events *ev);
    int (*events_wait)(struct gpu_events *ev, int timeout_ms, struct gpu_xid *ret);
};

struct gpu_events {
    const struct gpu_backend *backend;
};

extern const struct gpu_backend nvml_backend;
