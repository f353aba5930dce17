/* When those who wait will start: the queue as it will go on if nobody else comes and all take as long as expected, pass by
 * pass. Only those who have their turn before the last that is asked about are in it. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_own.h"

/* GPUs, runs and jobs looked at, over all passes. Beyond the first of these, ends that are close together are one: to a part of
 * the time until then, for a start in ten hours is not known to the minute. */
#define WORK_EXACT 200000
#define WORK_MAX 600000
#define CLOSE 32
#define HELD_MAX 20000

struct foresight {
    struct plan *inner;
    struct plan_world w;
    struct plan_gpu *gpu;
    struct plan_user *user;
    struct plan_job *job;
    uint32_t *from; /* by job: its place in the world that is asked about */
    struct plan_run *run;
    size_t *at; /* by run: where its GPUs lie in `held`; SIZE_MAX: in the world itself */
    uint32_t *held;
    size_t held_len, gpu_cap, user_cap, job_cap, from_cap, run_cap, at_cap, held_cap;
};

void foresight_free(struct foresight *f) {
    if (!f) return;
    plan_free(f->inner);
    void *const all[] = {f->gpu, f->user, f->job, f->from, f->run, f->at, f->held};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free(all[i]);
    free(f);
}

static struct foresight *begin(struct plan *p, const uint32_t *jobs, uint32_t count) {
    const struct plan_world *w = p->w;
    if (!p->foresight) {
        p->foresight = calloc(1, sizeof *p->foresight);
        if (!p->foresight) abort();
        p->foresight->inner = plan_new();
    }
    struct foresight *f = p->foresight;
    f->gpu = plan_grow(f->gpu, &f->gpu_cap, w->gpus, sizeof *f->gpu);
    f->user = plan_grow(f->user, &f->user_cap, w->users, sizeof *f->user);
    f->job = plan_grow(f->job, &f->job_cap, count, sizeof *f->job);
    f->from = plan_grow(f->from, &f->from_cap, count, sizeof *f->from);
    f->run = plan_grow(f->run, &f->run_cap, w->runs, sizeof *f->run);
    f->at = plan_grow(f->at, &f->at_cap, w->runs, sizeof *f->at);
    f->w = *w;
    f->held_len = 0;
    for (uint32_t g = 0; g < w->gpus; g++) {
        f->gpu[g] = w->gpu[g];
        if (!p->is_out[g]) f->gpu[g].verdict = OCCUPANCY_FREE; /* what passes by itself has passed */
    }
    if (w->users) memcpy(f->user, w->user, w->users * sizeof *f->user);
    for (uint32_t i = 0; i < count; i++) {
        f->job[i] = w->job[jobs[i]];
        f->from[i] = jobs[i];
    }
    for (uint32_t i = 0; i < w->runs; i++) {
        f->run[i] = w->run[i];
        f->run[i].end_ns = plan_end(&w->run[i], w->now_ns);
        f->at[i] = SIZE_MAX;
    }
    f->w.gpu = f->gpu;
    f->w.user = f->user;
    f->w.line = NULL;
    f->w.jobs = count;
    return f;
}

static void start(struct foresight *f, const struct plan_grant *g) {
    struct plan_job *j = &f->job[g->job];
    int64_t ns = j->expect_ns ? j->expect_ns : j->most_ns ? j->most_ns : PLAN_NEVER;
    uint32_t i = f->w.runs++;
    if (g->is_turn) f->user[j->user].turn_ns = f->w.now_ns;
    f->run = plan_grow(f->run, &f->run_cap, f->w.runs, sizeof *f->run);
    f->at = plan_grow(f->at, &f->at_cap, f->w.runs, sizeof *f->at);
    f->held = plan_grow(f->held, &f->held_cap, f->held_len + g->gpus, sizeof *f->held);
    memcpy(f->held + f->held_len, g->gpu, g->gpus * sizeof *f->held);
    f->at[i] = f->held_len;
    f->held_len += g->gpus;
    f->run[i] = (struct plan_run){.job = j->id,
                                  .user = j->user,
                                  .gpus = g->gpus,
                                  .share_bytes = j->share_bytes,
                                  .start_ns = f->w.now_ns,
                                  .end_ns = plan_sum(f->w.now_ns, ns)};
    j->elements--;
    if (j->room != UINT32_MAX) j->room--;
}

/* One pass at the time of f. What starts is noted once for each job, for its next element. How many of them are asked for. */
static size_t step(struct plan *p, struct foresight *f, int64_t *starts) {
    const struct plan_grant *g;
    uint32_t left = 0;
    f->w.job = f->job;
    f->w.run = f->run;
    for (uint32_t i = 0; i < f->w.runs; i++)
        if (f->at[i] != SIZE_MAX) f->run[i].gpu = f->held + f->at[i];
    size_t n = plan_pass(f->inner, &f->w, &g), noted = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t job = f->from[g[i].job];
        noted += starts[job] == PLAN_NEVER && p->ask[job] != PLAN_NONE;
        if (starts[job] == PLAN_NEVER) starts[job] = f->w.now_ns;
        plan_bar_add(p, &g[i], job, f->w.now_ns, f->job[g[i].job].expect_ns);
        start(f, &g[i]);
    }
    for (uint32_t i = 0; i < f->w.jobs; i++) {
        if (!f->job[i].elements) continue;
        f->job[left] = f->job[i];
        f->from[left++] = f->from[i];
    }
    f->w.jobs = left;
    return noted;
}

static void end_run(struct foresight *f, const struct plan_run *r) {
    for (uint32_t i = 0; i < f->w.jobs; i++)
        if (f->job[i].id == r->job && f->job[i].room != UINT32_MAX) f->job[i].room++;
}

/* On to the next end, or to the last of several that are close. False: no end is known. */
static bool go_on(struct foresight *f, int64_t now_ns, bool is_exact) {
    int64_t next = PLAN_NEVER, was = f->w.now_ns;
    uint32_t left = 0;
    for (uint32_t i = 0; i < f->w.runs; i++)
        if (f->run[i].end_ns < next) next = f->run[i].end_ns;
    for (uint32_t i = 0; i < f->w.windows; i++)
        if (f->w.window[i].to_ns > was && f->w.window[i].to_ns < next) next = f->w.window[i].to_ns;
    if (next == PLAN_NEVER) return false;
    if (!is_exact && next < was + (was - now_ns) / CLOSE) next = was + (was - now_ns) / CLOSE;
    f->w.now_ns = next;
    for (uint32_t i = 0; i < f->w.runs; i++) {
        struct plan_run *r = &f->run[i];
        f->user[r->user].usage_s += (double)(next - was) / 1e9 * r->gpus;
        if (r->end_ns <= next) {
            end_run(f, r);
            continue;
        }
        f->run[left] = *r;
        f->at[left++] = f->at[i];
    }
    f->w.runs = left;
    return true;
}

void plan_foresee(struct plan *p, const uint32_t *jobs, uint32_t count, int64_t *starts) {
    struct foresight *f = begin(p, jobs, count);
    size_t left = 0;
    for (uint32_t i = 0; i < count; i++) left += p->ask[jobs[i]] != PLAN_NONE;
    for (uint64_t work = 0; left && work < WORK_MAX && f->held_len < HELD_MAX;) {
        left -= step(p, f, starts);
        work += f->w.gpus + f->w.runs + f->w.jobs;
        if (!go_on(f, p->w->now_ns, work < WORK_EXACT)) return;
    }
}
