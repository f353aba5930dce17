/* Device files inside of containers. A container that has device nodes of its own opens other files than those that the
 * sampler watches, so they are watched here, through the root directory of the container's first process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "node/container.h"

#define INSIDE_MAX 1024 /* files at once */

struct inside {
    int fd; /* -1: the kernel does not tell */
    unsigned count;
    int wd[INSIDE_MAX];
};

void inside_open(struct inside *i);
void inside_close(struct inside *i);

/* A container with process pid as its first. What is not there is passed over. */
void inside_add(struct inside *i, const struct container_said *said);

/* i->fd is readable. True: somebody opened a GPU's file. */
bool inside_read(struct inside *i);

/* /dev/nvidia0, but not /dev/nvidiactl, which opens whoever looks. */
bool inside_is_gpu(const char *path);
