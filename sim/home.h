/* The simulator's directory: one owner at a time, device files for the GPUs, nothing left behind. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct home {
    char dir[3900];
    int lock_fd;
    int made; /* the directory was not there before */
    uint32_t gpu_count;
};

/* Makes the directory if need be and takes it; fails with a sentence when another simulator has it. */
int home_open(struct home *h, const char *dir, struct error *e) MUST_CHECK;

/* Device files of that many GPUs. Real ones (of the null device) where that is allowed, so that schedulers and containers take
 * them for devices; plain files otherwise. */
int home_make_devices(struct home *h, uint32_t gpu_count, struct error *e) MUST_CHECK;

/* Removes all of it. */
void home_close(struct home *h);
