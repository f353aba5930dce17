/* Who works on which card, and how far they got. Pure: time comes as an argument.
 *
 * A card can do one second of work a second. Tasks whose demands fit run at full speed; demands that do not fit slow all
 * of that card's (or MIG instance's) tasks in proportion. Clocks below the reference slow what is bound by them. The end
 * of a task is found inside a step, never rounded to one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/load.h"
#include "sim/plant.h"
#include "sim/wire.h"

enum { TASKS_MAX = 1024 };

struct task {
    bool used, done;
    uint32_t pid, uid;
    uint64_t owner; /* whoever added it knows what this means */
    struct wire_task ask;
    double left_s;
    double began_s, ended_s;
    double share; /* of its card, in the last step */
};

struct tasks {
    struct task slot[TASKS_MAX];
    unsigned high; /* slots from here on were never used */
};

/* Adds a task that begins at now_s. NULL when there is no room. */
struct task *tasks_add(struct tasks *t, const struct wire_task *ask, uint32_t pid, uint32_t uid, double now_s);
void tasks_remove(struct tasks *t, struct task *task);

uint64_t tasks_memory(const struct tasks *t, uint32_t gpu, uint32_t mig);

/* What the tasks see of the cards. */
struct pace {
    uint32_t gpu_count;
    double speed[SHM_GPUS_MAX][KIND_COUNT];     /* plant_speed() of each kind */
    double mig_part[SHM_GPUS_MAX][SHM_MIG_MAX]; /* of the card that an instance is; 0: none */
};

/* Works for dt_s from now_s on. Fills each card's mean load over the step. Finished tasks have `done` and an exact
 * ended_s and work no more, but stay until removed. Returns how many finished. */
int tasks_advance(struct tasks *t, const struct pace *p, double now_s, double dt_s, struct load loads[SHM_GPUS_MAX]);

/* Seconds until the next task is done if nothing changes; infinity when none will be. */
double tasks_next_end_s(struct tasks *t, const struct pace *p);
