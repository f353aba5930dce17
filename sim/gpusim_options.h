/* gpusim's command line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/models.h"

struct gpusim_options {
    char dir[4096];
    const struct model *model[SHM_GPUS_MAX];
    uint32_t gpu_count;
    bool mig, costs, day, tied;
    uint64_t seed;
    double speed, air_c, shared_air_k;
    const char *tell; /* a command for the simulator that runs already */
};

/* 0 to go on, 1 when all was said (--help, --models), negative with a sentence. */
int gpusim_options_parse(struct gpusim_options *o, int argc, char **argv, struct error *e) MUST_CHECK;
