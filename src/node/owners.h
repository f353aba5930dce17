/* The runs that go on now, for whoever sees a process on a GPU and wants to know whose it is. Written by the jobs' thread, read
 * by the tracker's; a small lock of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/job.h"

#define OWNERS_NAME 48

struct owner {
    char name[OWNERS_NAME];   /* "17.0.1": job, element, attempt */
    char title[JOB_NAME_MAX]; /* the job's name */
    pid_t shim;               /* 0: not yet */
    uint64_t shim_ticks;
    bool is_image; /* its processes are a container's */
};

/* Begins or changes one; uuids: its GPUs. */
void owners_put(const struct owner *e, const char (*uuids)[96], unsigned gpus);
void owners_drop(const char *name);

/* Around the start of a shim, whose number is known only when it runs: a process of its run may be on a GPU by then, and whoever asks
 * whose that is waits for the answer. It is asked once in a task's life. shim: what was started; 0: nothing was. */
void owners_hold(void);
void owners_release(const char *name, pid_t shim, uint64_t shim_ticks);

bool owners_find(const char *name, struct owner *ret);

/* The run that a process belongs to: one of its ancestors is the run's shim. */
bool owners_of_process(pid_t pid, struct owner *ret);
/* What the container of a run is called: by its instance, for several may share an engine. */
#define OWNERS_CONTAINER 96
void owners_container(const char *run, char ret[OWNERS_CONTAINER]);
/* The run of a container of ours. */
bool owners_of_container(const char *container, struct owner *ret);
bool owners_has_gpu(const char *uuid);
/* Whether a run was given this GPU; a run that is not known has all. */
bool owners_gives(const char *name, const char *uuid);
/* And whose run that is. */
bool owners_on_gpu(const char *uuid, struct owner *ret);
