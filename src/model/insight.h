/* One sentence about how a run used what it held: what its owner would want to know before the next one. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NaN and 0: not known. */
struct insight_facts {
    double gpu_ratio;     /* mean utilisation of its GPUs, 0 to 1 */
    double cpu_ratio;     /* CPUs' worth that it used: 1 is one core all the time */
    double ran_s;         /* how long it ran */
    int gpus;             /* that it held */
    uint64_t peak_bytes;  /* of one GPU's memory */
    uint64_t total_bytes; /* that this GPU has */
    uint64_t share_bytes; /* that it asked for, of one GPU */
    bool is_running;      /* it goes on: said of now */
};

/* "" where there is nothing to say. */
void insight_sentence(const struct insight_facts *f, char *ret, size_t room);
