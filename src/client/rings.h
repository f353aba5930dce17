/* The rings of a running instance, for everything that reads what the sampler says: one file per sampler worker,
 * mapped read-only. Files come, go and are replaced while we read; rings_refresh notices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/instance.h"
#include "base/shm.h"
#include "client/view.h"
#include "model/ring.h"

enum { RINGS_MAX = 16 };

/* A writer that has not breathed for this long is dead or stuck. */
#define RINGS_SILENT_NS (5ll * 1000000000)

struct rings {
    struct instance where;
    struct rings_one {
        char path[256];
        struct shm shm;
        struct ring ring;
        bool is_open;
    } of[RINGS_MAX];
    char problem[160]; /* why a file that is there could not be read, or empty */
};

/* Opens what there is; that may be nothing. */
void rings_open(struct rings *r, const struct instance *where);
void rings_close(struct rings *r);

/* Opens new files and those that were replaced, lets go of those that went. */
void rings_refresh(struct rings *r);

unsigned rings_count(const struct rings *r);

/* Some writer breathes and its process is there: one that has just ended still looks fresh. */
bool rings_are_live(const struct rings *r, int64_t now_boot_ns);

/* When the newest sample of any GPU was read, by the boot clock; 0: never. */
int64_t rings_newest_ns(const struct rings *r);

void rings_fill(const struct rings *r, struct view *v);

/* Returns when a bell rang, on a signal, or after the timeout. */
struct rings_bells {
    uint32_t seen[RINGS_MAX];
};
struct rings_bells rings_listen(const struct rings *r);
void rings_wait(const struct rings *r, const struct rings_bells *before, int64_t timeout_ns);
