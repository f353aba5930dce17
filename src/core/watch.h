/* Watching one GPU: two threads. The fast one makes the cheap calls every round; the slow one makes the others, each
 * at the rate its measured cost allows, and plans anew now and then. A call that never returns holds up its own thread
 * and nothing else. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/board.h"
#include "core/fence.h"
#include "core/guarding.h"
#include "core/hunting.h"
#include "gpu/device.h"

enum watch_stage { WATCH_OPENING, WATCH_OPENED, WATCH_FAILED, WATCH_FENCED, WATCH_FORBIDDEN, WATCH_RUNNING };

/* What all watches of a sampler share. */
struct watch_common {
    struct gpu_driver *driver;
    struct board *board;
    _Atomic int64_t base_ns;   /* between two rounds */
    _Atomic double slow_share; /* of a core, for the slow calls of one GPU */
    pthread_mutex_t lock;      /* guards stages */
    pthread_cond_t moved;      /* a stage changed */
    struct fence *fence;
    _Atomic int64_t open_ns; /* how long a GPU took to open that came too late; 0: none did */
    _Atomic int end;         /* not 0: this process has to end, with this exit code; why is in end_why */
    char end_why[248];
    int end_fd;                        /* becomes readable then */
    const struct settings *settings;   /* under the lock: they change when they are read anew */
    _Atomic unsigned settings_version; /* which ones they are */
    _Atomic int leaving;               /* the process is to end: put the cards back first */
    _Atomic int guarded;               /* watches that have a card to put back */
};

struct watch {
    struct watch_common *common;
    unsigned index;
    struct gpu *gpu;
    enum watch_stage stage; /* under common->lock */
    char trouble[104];      /* why it is not open; under common->lock */
    int device;            /* number on the board; instances follow. -1: not wanted. Under common->lock until it runs */
    _Atomic uint32_t bell; /* cuts the sleep of the fast thread short ... */
    _Atomic uint32_t slow_bell; /* ... and of the slow one */
    _Atomic uint32_t looks;     /* how often "look now" was said */
    _Atomic uint64_t fast_calls, busy_calls;
    _Atomic int fast_call, slow_call; /* under way, for the words of a stuck one; -1: none */
    _Atomic int64_t slow_began_ns;
    _Atomic int64_t fast_cpu_ns, slow_cpu_ns;
    _Atomic bool is_shared; /* two processes or more */
    bool slow_is_reported;
    _Atomic uint64_t guard_calls; /* those that the guard goes by */
    struct hunting hunting;
    struct guarding guard;
    _Atomic bool is_guarded; /* guard may be used by other threads: orders, the budget */
};

/* Starts the threads: the GPU is opened in one of them, because that can hang as well. */
int watch_start(struct watch *w, struct watch_common *common, unsigned index, struct error *e) MUST_CHECK;

/* The board is laid out and this is the GPU's place on it: begin to read. */
void watch_go(struct watch *w, int device);

/* Read everything now. */
void watch_look(struct watch *w);

/* A new process is about to show up: look at the process list often until then. pid: who opened the device file. */
#define WATCH_ANYBODY 0u        /* nobody has opened it yet */
#define WATCH_OPENER UINT32_MAX /* somebody did */
void watch_hunt(struct watch *w, uint32_t pid, int64_t now_ns, int64_t until_ns);
/* However quiet it is, look at least so often; 0: the rounds are enough. */
void watch_hunt_base(struct watch *w, int64_t base_ns);

/* Opened, and told to read: its gpu may be used by other threads. */
bool watch_is_running(struct watch *w);

/* Asks for the end of the process; the first one to ask says why. */
void watch_end(struct watch_common *c, int code, const char *why);

/* The same for a fresh one: the driver went away, or is not what was laid out. */
void watch_again(struct watch_common *c, const char *why);
