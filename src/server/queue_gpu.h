/* A GPU as the queue knows it: what its node measured, and what operators said of it. For queue*.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/wire_run.h"

struct queue_gpu {
    char uuid[96], node[64];
    int index;
    uint64_t memory_bytes;
    double temp_c;       /* NaN: not known */
    struct wire_free is; /* as measured; verdict OCCUPANCY_UNKNOWN before its node told */
    char *cordon, *cordon_who;
    int64_t cordon_ns;
    bool is_here;     /* its node is connected and has it */
    bool is_wanted;   /* somebody waits for it, and its node was told */
    int64_t sound_ns; /* when an operator said that it is sound; 0: nobody did */
    bool is_lent;     /* a lease let somebody in, whose processes are outside the queue, and it was never free since */
};
