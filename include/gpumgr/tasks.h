/* The GPU tasks of this machine, live, in shared memory: DIR/run/tasks (root's instance: /var/lib/gpumgr/run/tasks). Anyone
 * may map it read-only; gpumgr's node is the only writer. Plain C, no other header of gpumgr; examples/tasks.c reads it.
 *
 *   struct gpumgr_tasks    the head: magic, version, sizes, who writes, a counter that changes with every change
 *   struct gpumgr_gpu      gpu_count of them at gpus_at: what bit i of a task's gpus means. Never taken away.
 *   struct gpumgr_task     slot_count of them at slots_at, slot_bytes apart: running tasks, and ended ones until their
 *                          slot is needed again, the oldest first
 *
 * A slot is whole when its `turn` is even, not zero, and the same before and after the copy: gpumgr_task_read does that.
 * A task is one process on one or several GPUs, told apart for good by (pid, ticks, again). All times are nanoseconds; boot:
 * CLOCK_BOOTTIME, which deadlines run on; real: since 1970. 0 is "not known", and of an end "it runs". Fields may be added at
 * the end of each struct: go by slot_bytes. What changes its meaning has another version, in a new file that is
 * renamed over the old one: writer_pid of a file that was replaced stays dead. */
#ifndef GPUMGR_TASKS_H
#define GPUMGR_TASKS_H

#include <stdint.h>
#include <string.h>

#define GPUMGR_TASKS_MAGIC 0x736b7361746d7067ull /* "gpmtasks" */
#define GPUMGR_TASKS_VERSION 1u
#define GPUMGR_TASKS_GPUS_MAX 256

enum gpumgr_task_state { GPUMGR_TASK_RUNNING, GPUMGR_TASK_OVERDUE, GPUMGR_TASK_ENDED };
enum gpumgr_task_verdict {
    GPUMGR_TASK_NO_DEADLINE,
    GPUMGR_TASK_HIT,
    GPUMGR_TASK_MISS,
    GPUMGR_TASK_PENDING /* it runs; of an ended one: it ended unseen, and nobody knows */
};
enum gpumgr_task_source { GPUMGR_TASK_BY_LIST, GPUMGR_TASK_BY_OPEN, GPUMGR_TASK_BY_CONTAINER };
enum gpumgr_task_flags {
    GPUMGR_TASK_END_UNKNOWN = 1, /* it ended while nobody watched: end_* is when that was found */
    GPUMGR_TASK_FOUND_LATE = 2,  /* it was there before we were: start_* is when we first saw it */
    GPUMGR_TASK_WARNED = 4       /* its like took longer than its deadline: that was said */
};

struct gpumgr_tasks {
    uint64_t magic;
    uint32_t version, slot_bytes, slot_count, slots_at, gpus_at, gpu_count;
    uint32_t changes; /* a futex word: changes with every change of any slot */
    int32_t writer_pid;
    char boot_id[40];
    uint8_t node_state[16]; /* model/slack.h: fitness for more work, GPUs, tasks, free memory, float time */
    uint64_t unused[8];
};

struct gpumgr_gpu {
    char uuid[96];   /* of a GPU or of a MIG instance */
    uint32_t gi, ci; /* UINT32_MAX: not a MIG instance */
};

struct gpumgr_task {
    uint64_t turn;  /* odd while it is written; 0: never used */
    int64_t mark;   /* grows with every change of any task */
    uint64_t ticks; /* start of the process: field 22 of /proc/PID/stat; 0: it was gone before it could be read */
    int32_t pid;
    int32_t ns_pid; /* as its own container counts; 0: not known */
    uint32_t uid;   /* UINT32_MAX: not known */
    uint32_t again; /* how often this process had left the GPUs and come back */
    uint32_t flags;
    uint8_t state, source, verdict;
    uint8_t kind; /* 0 none 1 session 2 unit 3 LXC 4 Slurm 5 containerd 6 CRI-O 7 Podman 8 Docker 9 job of the queue */
    int64_t opened_ns, start_ns, end_ns;
    int64_t opened_real_ns, start_real_ns, end_real_ns;
    int64_t deadline_ns; /* how long it may take from its start; 0: no deadline */
    int64_t period_ns;
    int64_t
        float_ns; /* what was left at its end, negative after a miss; while it runs: what was left at the last change */
    int64_t expected_ns; /* how long its like take; 0: nothing to go by */
    int64_t slurm_job;   /* -1: none */
    uint64_t gpus[GPUMGR_TASKS_GPUS_MAX / 64];
    double gpu_seconds, energy_joules; /* so far */
    uint64_t memory_bytes, memory_peak_bytes;
    char comm[32];
    char container_id[72]; /* 64 hex digits; of other kinds: unit, session, Slurm step, job.element.attempt */
    char container[72];    /* its name, of a job the job's; "" not known */
    char image[128];
    char pod[40];
    uint32_t periods, periods_kept; /* of its container, with a period: judged by then, and in which a task began */
};

/* Copies one slot. 1: *ret is whole; 0: the slot is empty, or was written all the while. */
static inline int gpumgr_task_read(const struct gpumgr_tasks *t, uint32_t slot, struct gpumgr_task *ret) {
    const char *at = (const char *)t + t->slots_at + (uint64_t)slot * t->slot_bytes;
    const uint64_t *turn = (const uint64_t *)(const void *)at;
    for (int tries = 0; tries < 1000; tries++) {
        uint64_t before = __atomic_load_n(turn, __ATOMIC_ACQUIRE);
        if (before == 0) return 0;
        if (before & 1) continue;
        for (uint64_t i = 0; i < sizeof *ret / 8; i++)
            ((uint64_t *)(void *)ret)[i] = __atomic_load_n(turn + i, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(turn, __ATOMIC_RELAXED) == before) return 1;
    }
    return 0;
}

static inline const struct gpumgr_gpu *gpumgr_task_gpu(const struct gpumgr_tasks *t, uint32_t bit) {
    return (const struct gpumgr_gpu *)(const void *)((const char *)t + t->gpus_at) + bit;
}

static inline int gpumgr_task_is_on(const struct gpumgr_task *task, uint32_t bit) {
    return (int)(task->gpus[bit / 64] >> (bit % 64) & 1);
}

#endif
