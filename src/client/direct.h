/* The driver itself, read-only, for views without a daemon and for checks before a start. A call into a driver may
 * never come back, or take the process down with it, so a child makes the calls and we watch it: a GPU that does not
 * answer is named and left out, and the child is ended and begun anew without it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "client/view.h"
#include "gpu/device.h"

enum { DIRECT_METRICS_MAX = 32 };

struct direct_call {
    char name[72];
    int32_t metrics[DIRECT_METRICS_MAX + 1]; /* ended by -1 */
    bool lists_processes, for_instances;
};

/* Memory that the child fills; in it nothing is a pointer. */
struct direct_shared {
    struct error error;
    char version[80], library[256];
    int32_t gpu_count, instance_count;
    _Atomic int32_t at; /* the GPU under way, -1: the driver itself */
    uint64_t hung;      /* GPUs not to touch again */
    uint32_t call_count;
    struct direct_call call[GPU_CALLS_MAX];
    struct direct_gpu {
        struct view_device device;
        struct gpu_cost cost[GPU_CALLS_MAX];
        bool is_known;      /* the inventory is filled */
        char lever[24];     /* what a guard would move, or "none" */
        char lever_why[96]; /* and why */
    } gpu[DEVICE_MAX];      /* GPUs by index, then from GPU_MAX on their MIG instances */
};

enum direct_what { DIRECT_INVENTORY = 'i', DIRECT_READ = 'r' };

struct direct {
    struct direct_shared *shared;
    char library[256];
    int to_child, from_child;
    int32_t child; /* pid, 0: none */
    int patience_ms;
};

/* Opens nothing yet; `library` may be empty. patience_ms: how long one call may take. */
int direct_open(struct direct *d, const char *library, int patience_ms, struct error *e) MUST_CHECK;
void direct_close(struct direct *d);

/* Looks once. Fails only when the driver as a whole gives nothing; a silent GPU is a fact in the result. */
int direct_look(struct direct *d, enum direct_what what, struct error *e) MUST_CHECK;

void direct_fill(const struct direct *d, struct view *v);
