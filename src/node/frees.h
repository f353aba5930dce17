/* Which GPUs are measured free (model/occupancy.h judges), told to the server at once when that changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/instance.h"
#include "node/uplink.h"

/* Before all others. */
void frees_begin(const struct instance *where);

/* For the tracker's thread, under its lock: judges every GPU by what is known now. */
void frees_judge(int64_t now_ns);
/* When that must be done again though nothing was heard. */
int64_t frees_next_ns(void);

/* For the main thread: what is to be told, as a frame; all: everything, to a server that knows nothing yet. */
void frees_put(struct uplink *u, bool all);

/* For any thread: every GPU as it was last judged, and who has it. How many were written. */
#define FREES_MOST 64
struct frees_gpu {
    char uuid[96];
    int32_t index, minor; /* minor: of /dev/nvidiaN, -1: not known */
    int32_t instance;     /* of a card that is cut: which; -1: a card. One that is cut is not told, its instances are */
    char name[28];        /* "3", "3:1" */
    uint8_t verdict;      /* enum occupancy */
    bool is_granted;      /* to a run of the queue, which `holder` names */
    char holder[160];     /* in words: "job 17 (train.py)", "alice", "container web of alice"; "": nobody */
};
unsigned frees_all(struct frees_gpu *ret, unsigned room);
