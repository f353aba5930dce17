/* Watching one GPU: two threads. The fast one makes the cheap calls every round; the slow one makes the others, each
 * at the rate its measured cost allows, and plans anew now and then. A call that never returns holds up its own thread
 * and nothing else. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/board.h"
#include "gpu/device.h"

enum watch_stage { WATCH_OPENING, WATCH_OPENED, WATCH_FAILED, WATCH_FENCED, WATCH_RUNNING };

/* What all watches of a sampler share. */
struct watch_common {
    struct gpu_driver *driver;
    struct board *board;
    _Atomic int64_t base_ns;   /* between two rounds */
    _Atomic double slow_share; /* of a core, for the slow calls of one GPU */
    pthread_mutex_t lock;      /* guards stages */
    pthread_cond_t moved;      /* a stage changed */
    _Atomic int again;         /* not 0: something happened that needs a fresh start; why is in again_why */
    char again_why[160];
    char run_dir[200];
};

struct watch {
    struct watch_common *common;
    unsigned index;
    struct gpu *gpu;
    enum watch_stage stage; /* under common->lock */
    struct error error;
    int lock_fd; /* the fence: held as long as this process has the GPU open */
    int device;  /* number on the board; instances follow. -1: not wanted */
    pthread_t fast, slow;
    _Atomic uint32_t bell;  /* cuts the sleep of both threads short */
    _Atomic uint32_t looks; /* how often "look now" was said */
    _Atomic uint64_t fast_calls, busy_calls;
    _Atomic int fast_call, slow_call; /* under way, for the words of a stuck one; -1: none */
    _Atomic int64_t slow_began_ns;
    _Atomic int64_t fast_cpu_ns, slow_cpu_ns;
    _Atomic bool is_shared; /* two processes or more */
    bool slow_is_reported;
};

/* Starts the threads: the GPU is opened in one of them, because that can hang as well. */
int watch_start(struct watch *w, struct watch_common *common, unsigned index, struct error *e) MUST_CHECK;

/* The board is laid out and this is the GPU's place on it: begin to read. */
void watch_go(struct watch *w, int device);

/* Read everything now. */
void watch_look(struct watch *w);

/* Asks for a fresh process: the driver went away, or is not what was laid out. */
void watch_again(struct watch_common *c, const char *why);
