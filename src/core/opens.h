/* Announces new processes: who opens a GPU's device file, or the memory device that all of them need, will show up in a
 * process list soon. A thread of its own waits for the kernel to tell (inotify). Where that is not to be had, the rounds find new
 * processes a little later. */
#pragma once

#include "core/watch.h"

struct opens {
    struct watch *watches;
    unsigned count;
    char dir[256]; /* where the device files lie */
};

/* Starts the thread; o lives as long as the process. */
void opens_start(struct opens *o);
