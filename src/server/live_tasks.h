/* GPU tasks and containers of a node as they are now: those that run, and those that ended lately. Memory only; frames go
 * in, views read it. Belongs to the loop's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/wire_task.h"

#define LIVE_TASKS_MAX 8192 /* of a node; more are only stored */
#define LIVE_ENDED_MAX 1000 /* of these that have ended */
#define LIVE_CONTAINERS_MAX 4096
#define LIVE_USERS_MAX 256
#define LIVE_ENDED_NS (600ll * 1000000000) /* ended tasks and containers stay in sight for so long */
#define LIVE_SERIES_NS (60ll * 1000000000) /* a container's series outlive it by so much: its last values are scraped */

/* How long tasks took, for the exporter: upper bounds in seconds. */
#define TASK_BUCKETS 14
extern const double task_buckets[TASK_BUCKETS];
struct task_times {
    uint64_t bucket[TASK_BUCKETS], count; /* each task in one bucket only; those above the last bound in none */
    double sum_s;
};

struct live_task {
    bool is_changed;     /* since the streams were last told */
    int64_t ended_ns;    /* by our boot clock; 0: runs */
    double sm_share;     /* NaN: not known */
    char container[72];  /* what to call its container; "": none */
    struct wire_task of; /* last: as long as its GPUs need */
};

struct live_container {
    int64_t ended_ns; /* by our boot clock, when it and its tasks were over; 0: not yet */
    struct task_times times;
    struct wire_container of;
};

/* What a user's tasks have used since this server knows the machine, whatever became of them. */
struct live_user {
    uint32_t uid;
    char name[64]; /* "": not known */
    double gpu_seconds, energy_joules;
};

struct live_tasks {
    struct live_task **task; /* in the order they came */
    size_t count, ended;
    struct live_container **container; /* by id */
    size_t containers;
    struct live_user *user;
    size_t users;
    bool is_filled; /* this server has been told of all its tasks: only news are wanted */
    bool has_node;
    struct wire_node node;
    struct task_times host_times; /* of tasks in no container */
    uint64_t host_hits, host_misses;
};

void live_tasks_done(struct live_tasks *l);

/* A task's record. is_new: its mark was not taken before. True: shown (a task that ended long ago is not). */
bool live_tasks_take(struct live_tasks *l, const struct wire_task *t, bool is_new, int64_t now_ns, int64_t node_now_ns);
void live_tasks_use(struct live_tasks *l, const struct wire_use *u);
void live_tasks_container(struct live_tasks *l, const struct wire_container *c, int64_t now_ns);
/* Time passed: what ended long ago goes. */
void live_tasks_prune(struct live_tasks *l, int64_t now_ns);

const struct live_task *live_tasks_of_pid(const struct live_tasks *l, int32_t pid); /* the one that runs; NULL: none */
/* By id, by its beginning (12 digits or more) or by name; NULL: none, or several. */
const struct live_container *live_tasks_find(const struct live_tasks *l, const char *id);
bool live_container_is_over(const struct live_container *c);
