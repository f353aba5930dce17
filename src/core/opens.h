/* Announces new processes: who opens a GPU's device file will show up in its process list soon. A thread of its own waits
 * for the kernel to tell (inotify). Where that is not to be had, the rounds find new processes a little later. */
#pragma once

#include "core/watch.h"

struct opens {
    struct watch *watches;
    unsigned count;
    char dir[256]; /* where the device files lie */
};

/* Starts the thread; o lives as long as the process. */
void opens_start(struct opens *o);
