/* GPU tasks, live. A thread of its own: a process list that changed (node/bells) begins tasks, a pidfd ends them to the
 * moment, one timer on the boot clock drives deadlines and the round of every second. It never waits for a container engine, a
 * server or a process's memory map: names come when they come. All that is said of a task lies in the table
 * (node/table.h), which outlives us, and goes to the server from there.
 *
 * The functions here are for the main thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/instance.h"
#include "model/settings.h"
#include "node/engine.h"
#include "node/uplink.h"

struct engine;

/* containers: who names them; NULL: nobody does. */
int tasks_start(const struct instance *where, const struct settings *s, struct engine *containers, struct error *e)
    MUST_CHECK;

/* From now on the tracker stands still, for good: what it needs may be taken down. */
void tasks_stop(void);

/* Somebody else names containers from now on: the one before may be freed. Failing changes nothing. */
int tasks_engine(struct engine *containers, struct error *e) MUST_CHECK;

/* Settings that may change while it runs. */
void tasks_reload(const struct settings *s);

/* What the server's WELCOME said: tasks and events up to these marks are stored; 0: nothing is. */
void tasks_welcome(int64_t task_mark, int64_t event_mark);

/* What is new since then, as frames, until so many bytes wait: tasks and events at once, containers, uses and the node's state
 * with the round. source: the number of the node's own event stream. */
/* What the tasks of a run did on its GPUs ("17.0.1": node/owners.h). From any thread. */
struct task_figures {
    bool is_measured; /* there were any, or would have been seen */
    double gpu_seconds, energy_joules;
    uint64_t memory_bytes, memory_peak_bytes; /* now; the most of one moment that was seen of one task */
    uint64_t memory_total_bytes;              /* of its GPUs */
    int64_t used_ns;                          /* when one of them last worked, boot clock; 0: none did */
    unsigned running;                         /* of a container: now */
};
void tasks_figures(const char *run, const char (*uuids)[96], unsigned gpus, struct task_figures *ret);
/* All tasks there are, of runs and of others, running and ended, each at its own moment. Takes no lock. */
struct gpumgr_task;
void tasks_each(void (*each)(void *ctx, const struct gpumgr_task *k), void *ctx);
/* Whether whoever used them was seen: then one that was not seen there did nothing. */
bool tasks_sees(const char (*uuids)[96], unsigned gpus);
/* Whether it is known how much they work: an instance of an older card does not tell. */
bool tasks_knows_use(const char (*uuids)[96], unsigned gpus);
/* That GPUs have, all together; 0: not known yet. */
uint64_t tasks_memory_total(const char (*uuids)[96], unsigned gpus);
/* The same of a container by its id, of those that run now: memory_bytes, running, used_ns; is_measured: it had any lately. */
void tasks_of_container(const char *id, struct task_figures *ret);
/* The first process of a container of a run of ours (owners_container), and its id; 0: it does not run, as far as its engine has said. */
pid_t tasks_container(const char *container, char ret_id[ENGINE_ID_HEX + 1]);
/* One sentence for people, in the node's own stream of events (model/event.h). */
void tasks_event(int severity, const char *kind, int32_t pid, const char *text);
void tasks_gpu_event(int severity, const char *kind, int device, int32_t pid,
                     const char *text); /* device: of the rings */
/* Of those that run now only: memory_bytes and used_ns. Costs next to nothing. */
void tasks_now(const char *run, struct task_figures *ret);
/* The index of a GPU that the run uses and was not given; -1: there is none. */
int tasks_stray(const char *run);

void tasks_put_prompt(struct uplink *u, uint16_t source, size_t most_bytes);
void tasks_put_round(struct uplink *u, size_t most_bytes);
