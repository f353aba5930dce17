/* Leases: GPUs set aside for a client of the watchmen port; nothing is started. One waits and is granted as any job. Belongs to
 * the loop's thread. */
#pragma once

#include "server/queue.h"

struct queue_lease {
    enum job_state state;
    bool is_ready;               /* it has its GPUs, and that is stored */
    bool is_used;                /* somebody works on all of them */
    bool is_lost;                /* somebody works on one of them */
    int gpus, gpu[JOB_GPUS_MAX]; /* indices, in the order he listed them */
};
/* False: it is over for long, or never was. */
bool queue_lease(struct queue *q, int64_t job, struct queue_lease *ret);
/* Why those wait, a sentence each; "": one does not. In the order of their numbers. */
#define QUEUE_WHY 200
void queue_lease_why(struct queue *q, const int64_t *jobs, size_t count, char (*ret)[QUEUE_WHY]);
/* It has no GPUs any more, and waits in its old place. */
void queue_lease_withdraw(struct queue *q, int64_t job);
/* `done` when whoever can have GPUs now has them, and that is stored. */
void queue_lease_settle(struct queue *q, queue_done_fn done, void *ctx);
/* as: JOB_DONE, JOB_TIMEOUT or JOB_CANCELLED. `done` after the commit; it may be NULL. */
void queue_lease_end(struct queue *q, int64_t job, enum job_state as, queue_done_fn done, void *ctx);
/* The GPU of an index on a node, as anybody may have it now. */
enum queue_gpu_state { QUEUE_GPU_NONE, QUEUE_GPU_TAKEN, QUEUE_GPU_FREE };
enum queue_gpu_state queue_gpu_now(struct queue *q, const char *node, int index);
int queue_gpu_index(struct queue *q, const char *uuid); /* negative: no machine has said that it has it */
