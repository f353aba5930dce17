/* A directory of a test's own, removed with all that is in it. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static inline int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    return remove(path);
}

/* In `base`: "/dev/shm" for a tmpfs, "/tmp" for what it is. Returns path. */
static inline char *scratch_make(char path[64], const char *base) {
    snprintf(path, 64, "%s/gpumgr-test-XXXXXX", base);
    if (!mkdtemp(path)) abort();
    return path;
}

static inline void scratch_remove(const char *path) { nftw(path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS); }
