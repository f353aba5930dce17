/* A GPU as the queue knows it: what its node measured, and what operators said of it. For queue*.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/wire_run.h"

struct queue;
struct job_spec;
struct live_node;

struct queue_gpu {
    char uuid[96], node[64];
    int index;
    int instance; /* of a card that is cut (MIG): which of it, counted from 0; -1: it is a card */
    uint64_t memory_bytes;
    double temp_c;       /* NaN: not known */
    struct wire_free is; /* as measured; verdict OCCUPANCY_UNKNOWN before its node told */
    char *cordon, *cordon_who;
    int64_t cordon_ns;
    bool is_here;     /* its node is connected and has it */
    bool is_wanted;   /* somebody waits for it, and its node was told */
    int64_t sound_ns; /* when an operator said that it is sound; 0: nobody did */
    bool is_lent;     /* a lease let somebody in, whose processes are outside the queue, and it was never free since */
};

void queue_gpus_read(struct queue *q); /* from live, where that changed */
struct queue_gpu *queue_gpu_find(const struct queue *q, const char *uuid);
struct queue_gpu *queue_gpu_make(struct queue *q, const char *uuid); /* the same, and never NULL */
/* As people call it: "3", or "3:1" of an instance. */
#define QUEUE_GPU_NAME 28
void queue_gpu_name(const struct queue_gpu *g, char ret[QUEUE_GPU_NAME]);
/* Whether a word of a scope (UUID or name) means this GPU. */
bool queue_gpu_is(const struct queue_gpu *g, const char *word);
/* Whether a job of this spec can have it at all, but for its memory. */
bool queue_gpu_does(const struct queue *q, const struct queue_gpu *g, const struct job_spec *s);
bool queue_gpu_in_scope(const struct queue_gpu *g, const struct job_spec *s);
int queue_take_free(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
void queue_gpus_done(struct queue *q);
