/* What can be broken on command: a table, so that help, parser and documentation say the same. */
#pragma once

#include <stddef.h>

#include "sim/machine.h"

struct fault {
    const char *name, *args, *help;
    /* args[0..count-1] are the words after the name. Returns 0, or -1 with a sentence in `why`. */
    int (*apply)(struct machine *m, uint32_t gpu, int count, char *const *args_given, char *why, size_t size);
};

extern const struct fault faults[];
extern const size_t fault_count;

const struct fault *fault_by_name(const char *name);
