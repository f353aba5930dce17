/* Looks for parts that fail (model/failing), every five seconds, over all GPUs of this sampler together: neighbours tell a
 * clogged cooler from warm air. A thread of its own: it writes histories to a disk, and a disk may hang. */
#pragma once

#include "core/watch.h"

struct inspect {
    struct watch_common *common;
    struct watch *watches;
    unsigned count, worker;
    char dir[200]; /* of the instance: histories lie in dir/cooling/UUID */
};

/* x must stay as long as the process. */
void inspect_start(struct inspect *x);
