/* What a back end gives to device.c, and nobody else: a const struct of functions, and the first members of its own
 * structs. */
#pragma once

#include "gpu/device.h"

struct gpu_driver {
    const struct gpu_backend *backend;
    char version[80], library[256];
};

struct gpu {
    struct gpu_driver *driver;
    struct inventory inventory;
    struct gpu_cost cost[GPU_CALLS_MAX];
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
    int (*events_open)(struct gpu_driver *d, struct gpu *const *gpus, unsigned n, struct gpu_events **ret,
                       struct error *e);
    void (*events_close)(struct gpu_events *ev);
    int (*events_wait)(struct gpu_events *ev, int timeout_ms, struct gpu_xid *ret);
};

struct gpu_events {
    const struct gpu_backend *backend;
};

extern const struct gpu_backend nvml_backend;
