/* The life of a queue without machines: jobs come, plan_pass gives them GPUs, they end when they end. For the tests and
 * benchmarks of model/plan. Times are nanoseconds from 0 on; random, and the same for the same seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/plan.h"

#define LIFE_SECOND 1000000000LL

struct life_job {
    int64_t id, submit_ns;
    uint32_t user, node;
    int priority, gpus;
    uint32_t *scope, scope_len;
    bool is_scoped;
    uint64_t memory_bytes, share_bytes;
    int64_t finish_by_ns, expect_ns, most_ns, real_ns; /* real: how long each element takes; at most `most` */
    uint32_t elements, at_once;
    uint32_t started, over;
    int64_t first_start_ns, guess_ns; /* guess: the first estimate that it was told; 0: none */
    int64_t naive_ns;                 /* and what dividing the work ahead by the GPUs says */
};

struct life_run {
    uint32_t job; /* in life.job */
    uint32_t gpu[JOB_GPUS_MAX];
    uint16_t gpus;
    int64_t start_ns, end_ns;
};

struct life {
    uint64_t seed;
    int64_t now_ns;
    struct plan *plan;
    const struct plan_policy *policy; /* NULL: the usual one */
    int64_t fair_wait_ns;             /* as in struct plan_world */
    /* When a run is expected to end; NULL: as its job was expected to take. */
    int64_t (*end_of)(const struct life *l, const struct life_job *j, int64_t start_ns);
    void *ctx;
    struct plan_gpu *gpu;
    struct plan_user *user;
    uint32_t gpus, users;
    struct life_job *job; /* all there ever were */
    uint32_t jobs;
    struct life_run *run; /* that go on */
    uint32_t runs;
    uint32_t *waiting; /* jobs with elements that wait, in order */
    uint32_t waits;
    size_t job_cap, run_cap, wait_cap;
    /* the world as plan sees it */
    struct plan_world world;
    struct plan_job *plan_job;
    struct plan_run *plan_run;
    struct plan_user *plan_user;
    size_t plan_job_cap, plan_run_cap;
};

void life_init(struct life *l, uint64_t seed, uint32_t nodes, uint32_t each, uint32_t users);
void life_done(struct life *l);
uint64_t life_random(struct life *l, uint64_t below);
/* Adds a job; its scope, if any, is copied. Returns it, until the next is added. */
struct life_job *life_submit(struct life *l, const struct life_job *j);
/* Makes l->world of what there is. */
const struct plan_world *life_world(struct life *l);
/* A pass, and what it gives begins to run. How many. */
size_t life_pass(struct life *l);
/* When the next run ends; PLAN_NEVER: none will. */
int64_t life_next_end(const struct life *l);
/* Time goes on to t: what ends until then has ended. */
void life_until(struct life *l, int64_t t);
