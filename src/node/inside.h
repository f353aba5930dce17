/* Device files inside of containers. A container that has device nodes of its own opens other files than those that the
 * sampler watches, so they are watched here, through the root directory of the container's first process. */
#pragma once

#include "base/openings.h"
#include "node/container.h"

#define INSIDE_MAX 1024 /* files at once */

struct inside {
    struct openings files; /* files.fd -1: the kernel does not tell */
    struct openings_file file[INSIDE_MAX];
};

void inside_open(struct inside *i);
void inside_close(struct inside *i);

/* A container with process pid as its first. What is not there is passed over. */
void inside_add(struct inside *i, const struct container_said *said);

/* files.fd is readable. Whose file was opened is in the tag: of which container, and which minor number (-1: not known). */
void inside_read(struct inside *i, openings_fn each, void *ctx);
int64_t inside_tag(const char *container_id, int minor);
int inside_minor(int64_t tag);

/* /dev/nvidia0, but not /dev/nvidiactl, which opens whoever looks. */
bool inside_is_gpu(const char *path);
