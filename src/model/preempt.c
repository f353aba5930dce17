#include "model/preempt.h"

#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 64
#define PAIRS_MAX 24 /* candidates among which every two are tried */

/* A world in which some runs are gone and only those wait who are as important as the job in question. */
struct without {
    struct plan *plan;
    const struct plan_world *w;
    const struct preempt_run *runs;
    bool *gone; /* by the world's numbers: ending, chosen before, or tried */
    struct plan_run *run;
    struct plan_job *job;
    uint32_t *job_at; /* the place of job[i] in the world */
    uint32_t jobs;
};

static void jobs_take(struct without *x, int priority) {
    x->jobs = 0;
    for (uint32_t i = 0; i < x->w->jobs; i++) {
        if (x->w->job[i].priority < priority) continue;
        x->job_at[x->jobs] = i;
        x->job[x->jobs++] = x->w->job[i];
    }
}

/* Whether a pass would start job `at`. */
static bool would_start(struct without *x, uint32_t at) {
    struct plan_world w = *x->w;
    const struct plan_grant *grant;
    w.run = x->run;
    w.runs = 0;
    for (uint32_t i = 0; i < x->w->runs; i++)
        if (!x->gone[i]) x->run[w.runs++] = x->w->run[i];
    w.job = x->job;
    w.jobs = x->jobs;
    size_t count = plan_pass(x->plan, &w, &grant);
    for (size_t i = 0; i < count; i++)
        if (x->job_at[grant[i].job] == at) return true;
    return false;
}

/* Candidates from the least important, and of these from the one that began last. */
static bool is_before(const struct without *x, uint32_t a, uint32_t b) {
    if (x->runs[a].priority != x->runs[b].priority) return x->runs[a].priority < x->runs[b].priority;
    if (x->w->run[a].start_ns != x->w->run[b].start_ns) return x->w->run[a].start_ns > x->w->run[b].start_ns;
    return a < b;
}

static bool may_have(const struct without *x, const struct plan_job *j, const struct plan_run *r) {
    for (uint16_t i = 0; i < r->gpus; i++) {
        const struct plan_gpu *g = &x->w->gpu[r->gpu[i]];
        if (j->node != PLAN_NONE && g->node != j->node) continue;
        if (!j->is_scoped) return true;
        for (uint32_t k = 0; k < j->scope_len; k++)
            if (j->scope[k] == r->gpu[i]) return true;
    }
    return false;
}

static uint32_t candidates(const struct without *x, const struct plan_job *j, uint32_t ret[CANDIDATES_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->w->runs; i++) {
        if (x->gone[i] || !x->runs[i].yields || x->runs[i].priority >= j->priority) continue;
        if (!may_have(x, j, &x->w->run[i])) continue;
        uint32_t at = count < CANDIDATES_MAX ? count++ : CANDIDATES_MAX;
        while (at > 0 && is_before(x, i, ret[at - 1])) {
            if (at < CANDIDATES_MAX) ret[at] = ret[at - 1];
            at--;
        }
        if (at < CANDIDATES_MAX) ret[at] = i;
    }
    return count;
}

/* One, or two, that do: tried from the least important on. How many; 0: more are needed. */
static uint32_t try_few(struct without *x, uint32_t job, const uint32_t *of, uint32_t count, uint32_t ret[2]) {
    for (uint32_t i = 0; i < count; i++) {
        x->gone[of[i]] = true;
        bool does = would_start(x, job);
        x->gone[of[i]] = false;
        ret[0] = of[i];
        if (does) return 1;
    }
    if (count > PAIRS_MAX) return 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++) {
            x->gone[of[i]] = x->gone[of[k]] = true;
            bool does = would_start(x, job);
            x->gone[of[i]] = x->gone[of[k]] = false;
            ret[0] = of[i];
            ret[1] = of[k];
            if (does) return 2;
        }
    return 0;
}

/* All of them would do: whoever is not needed stays, the most important first. What is left is marked as gone. */
static void thin_out(struct without *x, uint32_t job, const uint32_t *of, uint32_t count) {
    for (uint32_t i = count; i > 0; i--) {
        x->gone[of[i - 1]] = false;
        if (!would_start(x, job)) x->gone[of[i - 1]] = true;
    }
}

static void set_all(struct without *x, const uint32_t *of, uint32_t count, bool is_gone) {
    for (uint32_t i = 0; i < count; i++) x->gone[of[i]] = is_gone;
}

/* Marks as gone whoever must end for a job. */
static void choose_for(struct without *x, uint32_t job) {
    uint32_t of[CANDIDATES_MAX], few[2];
    const struct plan_job *j = &x->w->job[job];
    uint32_t count = candidates(x, j, of);
    if (!count) return;
    jobs_take(x, j->priority);
    if (would_start(x, job)) return; /* what was told to end before is enough */
    set_all(x, of, count, true);
    bool does = would_start(x, job);
    if (!does) {
        set_all(x, of, count, false);
        return;
    }
    set_all(x, of, count, false);
    uint32_t n = try_few(x, job, of, count, few);
    if (n) {
        set_all(x, few, n, true);
        return;
    }
    set_all(x, of, count, true);
    thin_out(x, job, of, count);
}

/* The next job to look at: by priority, then as they came. */
static uint32_t next_job(const struct plan_world *w, uint32_t last) {
    uint32_t best = PLAN_NONE;
    for (uint32_t i = 0; i < w->jobs; i++) {
        int p = w->job[i].priority;
        if (last != PLAN_NONE && (p > w->job[last].priority || (p == w->job[last].priority && i <= last))) continue;
        if (best == PLAN_NONE || p > w->job[best].priority) best = i;
    }
    return best;
}

static void *room_for(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) abort();
    return p;
}

size_t preempt_choose(struct plan *p, const struct plan_world *w, const struct preempt_run *runs,
                      uint32_t ret[PREEMPT_RUNS_MAX], uint32_t ret_for[PREEMPT_RUNS_MAX]) {
    struct without x = {.plan = p, .w = w, .runs = runs};
    size_t count = 0;
    bool has_yielding = false;
    int least = INT32_MAX;
    for (uint32_t i = 0; i < w->runs; i++) {
        if (!runs[i].yields || runs[i].is_ending) continue;
        has_yielding = true;
        if (runs[i].priority < least) least = runs[i].priority;
    }
    if (!has_yielding || !w->jobs) return 0;
    x.gone = room_for(w->runs, sizeof *x.gone);
    x.run = room_for(w->runs, sizeof *x.run);
    x.job = room_for(w->jobs, sizeof *x.job);
    x.job_at = room_for(w->jobs, sizeof *x.job_at);
    bool *told = room_for(w->runs, sizeof *told);
    for (uint32_t i = 0; i < w->runs; i++) x.gone[i] = told[i] = runs[i].is_ending;
    uint32_t job = PLAN_NONE;
    for (int looked = 0; looked < PREEMPT_JOBS_MAX; looked++) {
        job = next_job(w, job);
        if (job == PLAN_NONE || w->job[job].priority <= least) break;
        choose_for(&x, job);
        for (uint32_t i = 0; i < w->runs && count < PREEMPT_RUNS_MAX; i++) {
            if (!x.gone[i] || told[i]) continue;
            told[i] = true;
            ret[count] = i;
            ret_for[count++] = job;
        }
    }
    free(x.gone);
    free(x.run);
    free(x.job);
    free(x.job_at);
    free(told);
    return count;
}
