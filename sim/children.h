/* The gpusim-task processes that gpusim itself starts, for `load` and for the day it plays. They end with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "sim/wire.h"

enum { CHILDREN_MAX = 256 };

struct children {
    char program[4096]; /* gpusim-task */
    char dir[4096];
    struct child {
        pid_t pid; /* 0: free */
        uint64_t gpus;
        int by_hand; /* from `load`, not from the day */
    } child[CHILDREN_MAX];
};

/* Finds gpusim-task beside this program. */
int children_init(struct children *c, const char *dir, struct error *e) MUST_CHECK;

/* Starts one that asks for `ask`, called as `title` in process lists. Returns its pid. */
int children_start(struct children *c, const struct wire_task *ask, const char *title, int by_hand, struct error *e)
    MUST_CHECK;

/* Ends those that `load` started on a GPU (or on any, UINT32_MAX). Returns how many. */
int children_stop(struct children *c, uint32_t gpu);

/* Forgets those that ended. Call on SIGCHLD. */
void children_reap(struct children *c);

/* Ends all and waits for them. */
void children_done(struct children *c);

/* Whether one with this pid is still there. */
bool children_has(const struct children *c, pid_t pid);
