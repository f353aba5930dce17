/* A run's log: one file, in which a byte's place is its place in what the job said, for good. Beyond its bound the middle
 * goes: the first quarter stays, and so does the end; the blocks between are given back to the file system (a hole).
 * Where a file system cannot do that, what comes beyond the bound is not kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct run_log {
    int fd;
    uint64_t max, head, step; /* bytes on the disk at most; that stay at the start; given back at a time */
    uint64_t end, cut;        /* bytes said; where the kept end begins */
    bool cannot_cut;          /* the file system keeps what it has */
};

/* Makes the file (0600, his) or goes on behind what is there. */
int run_log_open(struct run_log *l, const char *path, uint64_t max, uid_t uid, gid_t gid, struct error *e) MUST_CHECK;
/* All of it counts as said; what the disk refuses is missing there, and later bytes are in their places all the same. */
void run_log_add(struct run_log *l, const char *bytes, size_t n);

/* Up to room bytes from *offset on, which moves on where that part is not kept. 0: nothing there yet, or the end. */
ssize_t run_log_read(int fd, uint64_t *offset, char *to, size_t room);
