#include "model/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/likes.h"
#include "model/plan.h"

#define NS 1000000000LL
#define HOUR_NS (3600 * NS)
#define LAST_NS (4000000000LL * NS) /* 126 years: nothing is added up beyond */

struct held {       /* by user */
    double usage_s; /* of what ended, as of usage_ns */
    int64_t usage_ns;
    double gpus, since_s; /* of what runs: how many, and the sum of when each began */
    uint64_t like;
};

struct play {
    const struct trace *t;
    const struct simulate_setup *setup;
    struct plan *plan;
    struct plan_line *line;
    struct plan_world w;
    struct plan_gpu *gpu;
    struct plan_job *job; /* all of the trace, in order */
    struct plan_run *run; /* that go on, in no order */
    struct plan_user *user;
    struct held *held;
    uint32_t *run_of, *job_of;  /* by job: its place in run; by place: its job */
    uint32_t *gpus_of, *gpu_at; /* GPUs of all jobs that run, and by job where they begin */
    uint32_t *end;              /* jobs that run, a heap by when they end */
    int64_t *end_ns;            /* by job */
    uint32_t ends, waiting, busy;
    struct likes likes;
    struct simulate_result *r;
};

static void *room_for(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) abort();
    return p;
}

/* ---- who ends next ---- */

static bool ends_before(const struct play *p, uint32_t a, uint32_t b) {
    return p->end_ns[a] != p->end_ns[b] ? p->end_ns[a] < p->end_ns[b] : a < b;
}

static void end_push(struct play *p, uint32_t job) {
    uint32_t at = p->ends++;
    for (; at && ends_before(p, job, p->end[(at - 1) / 2]); at = (at - 1) / 2) p->end[at] = p->end[(at - 1) / 2];
    p->end[at] = job;
}

static uint32_t end_pop(struct play *p) {
    uint32_t first = p->end[0], last = p->end[--p->ends], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < p->ends; at = child) {
        if (child + 1 < p->ends && ends_before(p, p->end[child + 1], p->end[child])) child++;
        if (!ends_before(p, p->end[child], last)) break;
        p->end[at] = p->end[child];
    }
    p->end[at] = last;
    return first;
}

/* ---- what users had ---- */

static double usage_at(const struct play *p, const struct held *h, int64_t now_ns) {
    return h->usage_s * exp2(-(double)(now_ns - h->usage_ns) / (p->setup->half_life_h * (double)HOUR_NS));
}

static void users_look(struct play *p) {
    for (uint32_t u = 0; u < p->t->users; u++) {
        const struct held *h = &p->held[u];
        p->user[u].usage_s = usage_at(p, h, p->w.now_ns) + (double)p->w.now_ns / NS * h->gpus - h->since_s;
    }
}

/* ---- jobs come, start and end ---- */

static int64_t time_of(const struct trace_job *j) {
    return j->limit_ns && j->limit_ns < j->run_ns ? j->limit_ns : j->run_ns;
}

static void come(struct play *p, uint32_t job) {
    const struct trace_job *j = &p->t->job[job];
    struct plan_job *mine = &p->job[job];
    *mine = (struct plan_job){.id = job + 1,
                              .user = j->user,
                              .node = PLAN_NONE,
                              .priority = j->priority,
                              .gpus = j->gpus,
                              .finish_by_ns = j->finish_by_ns,
                              .expect_ns = likes_expect(&p->likes, j->like, p->held[j->user].like, j->limit_ns, 0),
                              .most_ns = j->limit_ns,
                              .since_ns = j->submit_ns + 1, /* the first comes at 0, which is "nobody knows" */
                              .elements = 1,
                              .room = UINT32_MAX};
    if (p->setup->is_known) mine->expect_ns = mine->most_ns = time_of(j);
    plan_line_add(p->line, p->job, job);
    p->w.jobs = job + 1;
    p->waiting++;
}

static void start(struct play *p, const struct plan_grant *g) {
    const struct trace_job *j = &p->t->job[g->job];
    struct held *h = &p->held[j->user];
    uint32_t at = p->w.runs++, *gpus = p->gpus_of + p->gpu_at[g->job];
    int64_t now_ns = p->w.now_ns, expect_ns = p->job[g->job].expect_ns;
    memcpy(gpus, g->gpu, g->gpus * sizeof *gpus);
    p->run[at] = (struct plan_run){.job = g->job + 1,
                                   .user = j->user,
                                   .gpu = gpus,
                                   .gpus = g->gpus,
                                   .start_ns = now_ns,
                                   .end_ns = expect_ns ? now_ns + expect_ns : 0};
    p->run_of[g->job] = at;
    p->job_of[at] = g->job;
    if (g->is_turn) p->user[j->user].turn_ns = now_ns;
    h->gpus += g->gpus;
    h->since_s += (double)now_ns / NS * g->gpus;
    p->r->start_ns[g->job] = now_ns;
    p->end_ns[g->job] = now_ns > LAST_NS - time_of(j) ? PLAN_NEVER : now_ns + time_of(j);
    end_push(p, g->job);
    plan_line_drop(p->line, p->job, g->job);
    p->waiting--;
    p->busy += g->gpus;
}

static void end(struct play *p, uint32_t job) {
    const struct trace_job *j = &p->t->job[job];
    struct held *h = &p->held[j->user];
    uint32_t at = p->run_of[job], last = --p->w.runs;
    int64_t now_ns = p->w.now_ns, start_ns = p->run[at].start_ns;
    h->usage_s = usage_at(p, h, now_ns) + (double)(now_ns - start_ns) / (double)NS * j->gpus;
    h->usage_ns = now_ns;
    h->gpus -= j->gpus;
    h->since_s -= (double)start_ns / NS * j->gpus;
    p->run[at] = p->run[last];
    p->job_of[at] = p->job_of[last];
    p->run_of[p->job_of[at]] = at;
    p->busy -= (uint32_t)j->gpus;
    likes_add(&p->likes, j->like, now_ns - start_ns);
    likes_add(&p->likes, h->like, now_ns - start_ns);
}

/* A run that has outlasted what was expected of it is expected to take as long as those that took longer still. */
static void expect_again(struct play *p) {
    for (uint32_t i = 0; i < p->w.runs; i++) {
        struct plan_run *r = &p->run[i];
        if (!r->end_ns || r->end_ns > p->w.now_ns) continue;
        const struct trace_job *j = &p->t->job[r->job - 1];
        r->end_ns = likes_end(&p->likes, j->like, p->held[j->user].like, r->start_ns, j->limit_ns, p->w.now_ns);
    }
}

static void pass(struct play *p) {
    const struct plan_grant *g;
    if (!p->waiting || p->busy == p->w.gpus) return; /* nobody waits, or nothing is free */
    users_look(p);
    if (!p->setup->is_known) expect_again(p);
    size_t n = plan_pass(p->plan, &p->w, &g);
    for (size_t i = 0; i < n; i++) start(p, &g[i]);
    p->r->passes++;
}

static void note(struct play *p) {
    struct simulate_result *r = p->r;
    if (r->steps == r->step_cap) {
        r->step_cap = r->step_cap ? r->step_cap * 2 : 1024;
        r->step = realloc(r->step, r->step_cap * sizeof *r->step);
        if (!r->step) abort();
    }
    r->step[r->steps++] = (struct simulate_step){.at_ns = p->w.now_ns, .waiting = p->waiting, .busy = p->busy};
}

/* Until the next moment at which something happens, all of this one has happened and is passed on. */
static void go(struct play *p) {
    uint32_t next = 0;
    for (bool is_settled = true;;) {
        for (; next < p->t->jobs && p->t->job[next].gpus > (int)p->setup->gpus_per_node; next++) {
            p->r->start_ns[next] = -1;
            p->r->left_out++;
        }
        int64_t comes = next < p->t->jobs ? p->t->job[next].submit_ns : PLAN_NEVER;
        int64_t ends = p->ends ? p->end_ns[p->end[0]] : PLAN_NEVER;
        int64_t now = comes < ends ? comes : ends;
        if (now > p->w.now_ns && !is_settled) {
            pass(p);
            note(p);
            is_settled = true;
            continue; /* what has just started may end before */
        }
        if (now == PLAN_NEVER) return;
        p->w.now_ns = now;
        if (ends <= comes)
            end(p, end_pop(p));
        else
            come(p, next++);
        is_settled = false;
    }
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The least that so many are not above. */
static double rank(const double *sorted, uint32_t n, double part) {
    uint32_t at = (uint32_t)ceil(part * n);
    return n ? sorted[at ? at - 1 : 0] : 0;
}

static void add_up(const struct play *p) {
    struct simulate_result *r = p->r;
    double *wait = room_for(p->t->jobs, sizeof *wait), waits = 0, turns = 0, used = 0, used_coming = 0;
    int64_t last = 0, coming = 0;
    for (uint32_t i = 0; i < p->t->jobs; i++) {
        const struct trace_job *j = &p->t->job[i];
        if (r->start_ns[i] >= 0 && j->submit_ns > coming) coming = j->submit_ns;
    }
    for (uint32_t i = 0; i < p->t->jobs; i++) {
        const struct trace_job *j = &p->t->job[i];
        if (r->start_ns[i] < 0) continue;
        int64_t over = r->start_ns[i] + time_of(j);
        wait[r->jobs] = (double)(r->start_ns[i] - j->submit_ns) / NS;
        waits += wait[r->jobs++];
        turns += (double)(over - j->submit_ns) / NS;
        used += (double)(over - r->start_ns[i]) / NS * j->gpus;
        if (r->start_ns[i] < coming)
            used_coming += (double)((over < coming ? over : coming) - r->start_ns[i]) / NS * j->gpus;
        if (over > last) last = over;
        r->deadlines += j->finish_by_ns != 0;
        r->deadlines_hit += j->finish_by_ns && over <= j->finish_by_ns && j->run_ns == time_of(j);
    }
    qsort(wait, r->jobs, sizeof *wait, by_value);
    r->wait_mean_s = r->jobs ? waits / r->jobs : 0;
    r->turnaround_mean_s = r->jobs ? turns / r->jobs : 0;
    r->wait_median_s = rank(wait, r->jobs, 0.5);
    r->wait_p90_s = rank(wait, r->jobs, 0.9);
    r->wait_p99_s = rank(wait, r->jobs, 0.99);
    r->wait_max_s = rank(wait, r->jobs, 1);
    r->makespan_s = (double)last / NS;
    r->gpu_hours = used / 3600;
    if (last > 0) r->utilisation = used / ((double)last / NS * p->w.gpus);
    if (coming > 0) r->utilisation_coming = used_coming / ((double)coming / NS * p->w.gpus);
    free(wait);
}

static void begin(struct play *p) {
    const struct trace *t = p->t;
    const struct simulate_setup *s = p->setup;
    size_t gpus = 0;
    p->w = (struct plan_world){
        .gpus = s->nodes * s->gpus_per_node, .users = t->users, .now_ns = -1, .fair_wait_ns = s->fair_wait_ns};
    p->gpu = room_for(p->w.gpus, sizeof *p->gpu);
    p->job = room_for(t->jobs, sizeof *p->job);
    p->run = room_for(p->w.gpus, sizeof *p->run);
    p->user = room_for(t->users, sizeof *p->user);
    p->held = room_for(t->users, sizeof *p->held);
    p->run_of = room_for(t->jobs, sizeof *p->run_of);
    p->job_of = room_for(p->w.gpus, sizeof *p->job_of);
    p->gpu_at = room_for(t->jobs, sizeof *p->gpu_at);
    p->end = room_for(p->w.gpus, sizeof *p->end);
    p->end_ns = room_for(t->jobs, sizeof *p->end_ns);
    for (uint32_t i = 0; i < t->jobs; i++) {
        p->gpu_at[i] = (uint32_t)gpus;
        if (t->job[i].gpus <= (int)s->gpus_per_node) gpus += (size_t)t->job[i].gpus;
    }
    p->gpus_of = room_for(gpus, sizeof *p->gpus_of);
    for (uint32_t g = 0; g < p->w.gpus; g++)
        p->gpu[g] = (struct plan_gpu){.node = g / s->gpus_per_node,
                                      .index = (int)(g % s->gpus_per_node),
                                      .is_here = true,
                                      .temp_c = NAN,
                                      .node_name = ""};
    for (uint32_t u = 0; u < t->users; u++) {
        p->user[u] = (struct plan_user){.name = t->user[u], .weight = 1, .seconds_left = INFINITY};
        p->held[u].like = likes_key(t->user[u], NULL);
    }
    p->plan = plan_new();
    p->line = plan_line_new(s->policy);
    p->w.policy = s->policy;
    p->w.line = p->line;
    p->w.gpu = p->gpu;
    p->w.job = p->job;
    p->w.run = p->run;
    p->w.user = p->user;
}

int simulate(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret, struct error *e) {
    *ret = (struct simulate_result){.start_ns = room_for(t->jobs, sizeof *ret->start_ns)};
    struct play p = {.t = t, .setup = s, .r = ret};
    begin(&p);
    go(&p);
    bool is_over = !p.ends && !p.waiting;
    if (is_over) add_up(&p);
    plan_free(p.plan);
    plan_line_free(p.line);
    likes_done(&p.likes);
    void *const all[] = {p.gpu, p.job, p.run, p.user, p.held, p.run_of, p.job_of, p.gpu_at, p.gpus_of, p.end_ns, p.end};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free(all[i]);
    return is_over ? 0 : fail(e, -ERANGE, "so many jobs would take so few GPUs more than a century");
}

void simulate_done(struct simulate_result *r) {
    free(r->start_ns);
    free(r->step);
    *r = (struct simulate_result){0};
}

void simulate_curve(const struct simulate_result *r, int64_t until_ns, bool is_busy, double *ret, size_t count) {
    double part = (double)until_ns / (double)count;
    for (size_t i = 0; i < count; i++) ret[i] = 0;
    for (size_t i = 0; i < r->steps; i++) {
        double from = (double)r->step[i].at_ns, to = i + 1 < r->steps ? (double)r->step[i + 1].at_ns : from;
        double v = is_busy ? r->step[i].busy : r->step[i].waiting;
        for (size_t at = (size_t)(from < 0 ? 0 : from / part); v > 0 && at < count && (double)at * part < to; at++) {
            double a = fmax(from, (double)at * part), b = fmin(to, (double)(at + 1) * part);
            if (b > a) ret[at] += v * (b - a) / part;
        }
    }
}
