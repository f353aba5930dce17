/* "0", "GPU-1f3a", "all": which GPUs of a view a word means. */
#pragma once

#include "base/error.h"
#include "client/view.h"

struct gpu_picked {
    size_t of[GPU_MAX]; /* places in view.of */
    size_t count;
};

/* An index, a UUID or the beginning of one that only one GPU has (with or without "GPU-"), or all. MIG instances are
 * not GPUs here. The error names what there is. */
int gpu_pick(const struct view *v, const char *word, struct gpu_picked *ret, struct error *e) MUST_CHECK;
