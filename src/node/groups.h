/* What tasks have in common: the container (or Slurm step, unit, session) they run in, with its name and deadline as the engine
 * told, how it keeps its deadlines and what it has used; and how long tasks of one kind took so far. Fixed room: those that
 * have no task and were used longest ago make place. One thread's; node/tasks locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/belonging.h"
#include "model/slack.h"
#include "model/task.h"
#include "model/wire_task.h"
#include "node/engine.h"

#define GROUPS_MAX 512
#define GROUPS_PASTS 512

struct group {
    char id[72]; /* "": free */
    uint8_t kind;
    bool has_facts, is_bad_said;
    struct engine_facts facts;
    struct slack slack;
    struct task_period period;
    uint32_t running;
    double gpu_seconds, energy_joules;
    uint64_t memory_bytes; /* of its tasks now */
    int64_t used_ns;
    uint64_t version; /* changes when there is something to say */
};

struct past_of {
    uint64_t key;
    int64_t used_ns;
    struct task_past past;
};

struct groups {
    struct group of[GROUPS_MAX];
    struct past_of past[GROUPS_PASTS];
};

/* The group of a process, made when there is none; NULL: it belongs to nothing that has an id, or there is no room. */
struct group *groups_of(struct groups *g, const struct belonging *whose, int64_t now_ns);
struct group *groups_find(struct groups *g, const char *id);

/* How long tasks of this kind took: of this program in a container of the same image and deadline, or in this group, or of
 * this user. Never NULL. */
struct task_past *groups_past(struct groups *g, const struct group *of, const char *comm, uint32_t uid, int64_t now_ns);

void group_frame(const struct group *g, struct wire_container *ret);
