/* Looking for new processes between the rounds: a GPU's fast thread reads nothing but the process list, as often as
 * model/hunt says, and publishes it when it differs from the one before. Others announce (hunting_arm); everything else belongs
 * to the fast thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/board.h"
#include "gpu/device.h"
#include "model/hunt.h"

#define HUNTING_TOLD 32

struct hunting {
    _Atomic int64_t armed_until_ns, opened_until_ns, base_ns; /* from other threads */
    pthread_mutex_t lock;                                     /* held for moments: what was told of openings */
    struct {
        uint32_t pid;
        int64_t at_ns, until_ns;
    } told[HUNTING_TOLD];
    unsigned told_count;
    struct hunt hunt;
    int call; /* the one that lists processes; -1: this card has none */
    struct {
        uint32_t count;
        uint32_t pid[RING_PROCESSES_MAX];
    } known[1 + MIG_MAX];
};

void hunting_init(struct hunting *h); /* before anybody announces */
void hunting_begin(struct hunting *h, const struct gpu_driver *d, int64_t now_ns);

/* From any thread: something comes until then. is_opening: see hunt_arm. The caller wakes the fast thread. */
void hunting_arm(struct hunting *h, bool is_opening, int64_t until_ns);
/* Likewise, and this process opened the device file at at_ns. */
void hunting_expect(struct hunting *h, uint32_t pid, int64_t at_ns, int64_t until_ns);
void hunting_set_base(struct hunting *h, int64_t base_ns);

int64_t hunting_next_ns(struct hunting *h, int64_t now_ns);

/* A list that a round read anyway. */
void hunting_note(struct hunting *h, unsigned part, const struct ring_processes *p);

/* Reads the list of one part of the card. Returns whether it could be read. */
struct hunting_part {
    struct gpu *gpu;
    unsigned part, device;
};
bool hunting_look(struct hunting *h, const struct hunting_part *of, struct board *b);
