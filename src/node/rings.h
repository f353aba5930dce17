/* The samplers' rings as the node follows them: one file a worker, mapped read-only, replaced when the machine's GPUs
 * change. Devices of all rings are numbered through: that is their number on the link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/instance.h"
#include "base/shm.h"
#include "model/ring.h"

enum { RINGS_MAX = 16 };

struct rings_one {
    char path[256];
    struct shm shm;
    struct ring ring;
    bool is_open, is_said; /* why it cannot be read was said */
    uint16_t first;        /* number of its first device */
};

struct rings {
    unsigned count; /* sampler.workers: files there may be */
    struct rings_one of[RINGS_MAX];
    uint16_t devices;
};

void rings_init(struct rings *r, const struct instance *where, unsigned workers);
void rings_done(struct rings *r);

/* A file came, went or was replaced. Looks at the names only. */
bool rings_are_stale(const struct rings *r);

/* Maps what is there now. True: something changed, and device numbers of before mean nothing any more. */
bool rings_renew(struct rings *r);

/* Which ring a device number is in; *device becomes its number there. */
const struct rings_one *rings_find(const struct rings *r, uint16_t number, uint32_t *device);
