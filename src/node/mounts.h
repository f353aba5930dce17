/* What a container may see of the machine's files: directories and files below configured roots, with the rights of the one whose
 * container it is. He opens them himself, in a child that has become him; what he opened is bound into a directory of ours, where
 * no path can be changed under the engine. For jobs in images and for containers that people add. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/job.h"
#include "node/seal.h"

#define MOUNTS_MAX JOB_MOUNTS_MAX

struct mount_of {
    char source[PATH_MAX], target[PATH_MAX]; /* source: as the engine is told */
    bool is_readonly;
};

struct mounts {         /* large */
    char dir[PATH_MAX]; /* where they are bound; nobody else may enter it */
    const char *roots;  /* with commas */
    const struct seal_context *who;
    unsigned count;
    struct mount_of of[MOUNTS_MAX];
};

/* Each a "SOURCE:TARGET[:ro]". What was taken before a failure stays bound until mounts_let_go. */
int mounts_take_all(struct mounts *m, const struct job_words *words, struct error *e) MUST_CHECK;

/* "Mounts" of a description for the engine, and "GroupAdd": the user's groups. */
void mounts_put(const struct mounts *m, struct buf *b);
void mounts_put_groups(const struct seal_context *who, struct buf *b);

/* Whether something is mounted just there. */
bool mounts_is_root(const char *path);
/* Whether all of them are there still: after a start of the machine none is. */
bool mounts_are_bound(const char *dir, unsigned count);

/* Unbinds whatever is bound in dir. */
void mounts_let_go(const char *dir);
