/* A lively day, for whoever wants to see something: tasks come and go, one card runs hot, one throws XIDs now and then.
 * The same seed plays the same day. */
#pragma once

#include "sim/children.h"
#include "sim/machine.h"

enum { DAY_LANES = 2 }; /* side by side on one card: a large task, and a small one */

struct day {
    uint64_t rng;
    uint32_t hot_gpu, sick_gpu;
    double next_xid_s, next_ecc_s;
    unsigned xids;
    struct lane {
        pid_t pid;
        double start_s; /* of the next, once none runs */
    } lane[SHM_GPUS_MAX][DAY_LANES];
};

void day_begin(struct day *d, struct machine *m);
void day_step(struct day *d, struct machine *m, struct children *c);
