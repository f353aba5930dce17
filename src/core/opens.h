/* Announces new processes: who opens a GPU's device file will show up in its process list soon. A thread of its own waits
 * for the kernel to tell (base/openings.h). Where that is not to be had, the rounds find new processes a little later. */
#pragma once

#include "core/watch.h"

struct opens {
    struct watch *watches;
    unsigned count;
    char dir[256]; /* where the device files lie */
};

/* Starts the thread; o lives as long as the process. */
void opens_start(struct opens *o);

/* The number in the name of a watch's device file; -1: it does not run. */
int opens_minor(struct opens *o, unsigned watch);
