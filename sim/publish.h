/* Puts the machine into the shared memory of shm.h. */
#pragma once

#include "base/error.h"
#include "base/shm.h"
#include "sim/machine.h"
#include "sim/shm.h"

struct publisher {
    struct shm file;
    struct shm_root *root;
    double next_sample_s;
};

/* Makes $dir/gpus, complete and renamed into place, with the first readings in it. */
int publish_open(struct publisher *p, const char *dir, const struct machine *m, struct error *e) MUST_CHECK;

/* Tells those who still map it that the driver is gone, and lets go. The file is the caller's to remove. */
void publish_close(struct publisher *p);

/* Everything that can have changed. */
void publish(struct publisher *p, const struct machine *m);
