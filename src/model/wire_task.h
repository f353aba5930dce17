/* What a node tells of GPU tasks, of the containers they run in and of its own fitness (model/wire.h says how all of it
 * lies on the wire). Times are boot clock and wall clock side by side, in nanoseconds; 0 is "not known".
 *
 *   TASK       at its beginning, at news (deadline, overdue, a name that came late) and at its end, whole each time. It
 *              carries a mark that grows with every change of any task: the node's task table is the spool, and WELCOME's
 *              task_mark says what the server has. A task is named for good by boot id, pid, ticks and again: taken
 *              twice it is the same row.
 *   CONTAINER  when its facts or its figures change, and at the start of a session. No mark: the newest counts.
 *   NODE       once a second. USE: with it, what running tasks have used so far. Neither is ever sent again. */
#pragma once

#include "model/belonging.h"
#include "model/slack.h"
#include "model/task.h"
#include "model/wire.h"

#define WIRE_TASK_GPUS_MAX 64
#define WIRE_LABELS_MAX 4096
#define WIRE_USES_MAX 4096

enum wire_task_flags {
    WIRE_TASK_END_UNKNOWN = 1, /* it ended while nobody watched: end_*_ns is when that was found, float is not known */
    WIRE_TASK_FOUND_LATE = 2,  /* it ran before we did: start_*_ns is when we first saw it */
};

struct wire_task {
    int64_t mark;
    struct task task; /* its times by the boot clock */
    uint32_t flags;   /* enum wire_task_flags bits */
    int64_t opened_real_ns, start_real_ns, end_real_ns;
    int64_t period_ns;            /* 0: none */
    uint32_t periods, period_hit; /* of its container: judged so far, and those in which a task began */
    uint32_t again; /* how often this process had left the GPUs and come back: with pid and ticks it names the task */
    int32_t ns_pid; /* as its own container counts; 0: not known */
    uint32_t uid;   /* UINT32_MAX: not known */
    char user[64], comm[32], command[512];
    struct belonging whose;
    char name[128], image[256]; /* of its container, as known then; "" unknown or none */
    double gpu_seconds, energy_joules;
    uint64_t memory_bytes, memory_peak_bytes;
    uint16_t gpus;
    struct {
        char uuid[96];
        uint32_t gi, ci; /* UINT32_MAX: no MIG */
    } gpu[WIRE_TASK_GPUS_MAX];
};

void wire_put_task(struct buf *b, const struct wire_task *t);
int wire_get_task(const struct wire_frame *f, struct wire_task *ret, struct error *e) MUST_CHECK;

enum wire_container_state {
    CONTAINER_UNKNOWN, /* seen by its cgroup only: nobody told of it */
    CONTAINER_CREATED,
    CONTAINER_RUNNING,
    CONTAINER_PAUSED,
    CONTAINER_RESTARTING,
    CONTAINER_EXITED,
    CONTAINER_DEAD,
    CONTAINER_REMOVED,
    CONTAINER_STATES
};

struct wire_container {
    char id[72];
    uint8_t kind;  /* enum belonging_kind: whose engine */
    uint8_t state; /* enum wire_container_state */
    char name[128], image[256], tenant[64];
    int64_t deadline_ns, period_ns; /* 0: none */
    int32_t priority;
    int64_t created_real_ns;
    char labels[WIRE_LABELS_MAX]; /* lines of key=value; control characters are not in it but for the line ends */
    uint32_t running;             /* its tasks now */
    struct slack slack;           /* last_miss_ns by the boot clock */
    double gpu_seconds, energy_joules;
    uint64_t memory_bytes;
    uint32_t periods, period_hit; /* judged so far, and those in which a task began */
};

void wire_put_container(struct buf *b, const struct wire_container *c);
int wire_get_container(const struct wire_frame *f, struct wire_container *ret, struct error *e) MUST_CHECK;
const char *wire_container_state_name(enum wire_container_state s);

struct wire_node {
    struct node_state state; /* sixteen bytes of the body */
    char reasons[200];       /* in words; "" when provisionable */
    struct slack slack;      /* of all its tasks */
};

void wire_put_node(struct buf *b, const struct wire_node *n);
int wire_get_node(const struct wire_frame *f, struct wire_node *ret, struct error *e) MUST_CHECK;

struct wire_use {
    struct task_key key;
    double gpu_seconds, energy_joules; /* so far */
    uint64_t memory_bytes, memory_peak_bytes;
    double sm_share; /* 0 to 1, of the GPUs it is on together; NaN: not measured */
};

struct wire_uses {
    int64_t boot_ns;
    uint16_t count;
    const uint8_t *at;
    size_t len;
};

/* wire_begin_uses, one wire_add_use for each, wire_end. Decoding as with wire_get_processes. */
size_t wire_begin_uses(struct buf *b, const struct wire_uses *u);
void wire_add_use(struct buf *b, const struct wire_use *u);
int wire_get_uses(const struct wire_frame *f, struct wire_uses *ret, struct error *e) MUST_CHECK;
bool wire_next_use(struct wire_uses *list, struct wire_use *ret);
