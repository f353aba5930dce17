/* When a process opened a GPU's device file: by its pid where the kernel tells it (base/openings.h: opening the file ourselves
 * would wake the GPU up), else the next new task of that GPU is taken for whoever it was. A container's own device nodes are
 * other files: node/inside.h. */
#pragma once

#include "base/openings.h"
#include "node/openers.h"

#define OPENS_FILES_MAX 72

struct opens {
    struct openings files; /* files.fd: to poll; -1: not to be had */
    char dir[256];
    struct openings_file file[OPENS_FILES_MAX];
    struct openers openers; /* tag: the GPU's minor number, -1 for a file that all GPUs share */
};

void opens_begin(struct opens *o, const char *dir);
void opens_end(struct opens *o);

/* Marks the files that are there now: at the beginning, and from time to time, for drivers come and go. */
void opens_mark(struct opens *o);
void opens_read(struct opens *o, int64_t now_ns);
