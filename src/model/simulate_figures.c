/* What is said of a play, or of what was: figures and curves from when each job began. */
#include <math.h>
#include <stdlib.h>

#include "model/simulate_own.h"

#define NS SIMULATE_NS

#define X(id, name, text) [SIMULATE_##id] = name,
const char *const simulate_out_names[SIMULATE_OUT_COUNT] = {SIMULATE_OUTS(X)};
#undef X
#define X(id, name, text) [SIMULATE_##id] = text,
const char *const simulate_out_texts[SIMULATE_OUT_COUNT] = {SIMULATE_OUTS(X)};
#undef X

void simulate_done(struct simulate_result *r) {
    free(r->start_ns);
    free(r->gpu_at);
    free(r->gpu_list);
    free(r->step);
    *r = (struct simulate_result){0};
}

static uint32_t gpus_of(const struct simulate_setup *s) { return s->gpu ? s->gpus : s->nodes * s->gpus_per_node; }

/* How much of the GPUs it has. */
double simulate_worth(const struct simulate_setup *s, const struct trace_job *j, uint32_t gpu) {
    uint64_t all = s->gpu && gpu < s->gpus ? s->gpu[gpu].memory_bytes : s->gpu ? 0 : s->gpu_bytes;
    return j->share_bytes && all ? fmin((double)j->share_bytes / (double)all, 1) : j->gpus;
}

void simulate_note(struct simulate_result *r, int64_t at_ns, uint32_t waiting, double busy) {
    if (r->steps == r->step_cap) {
        r->step_cap = r->step_cap ? r->step_cap * 2 : 1024;
        r->step = realloc(r->step, r->step_cap * sizeof *r->step);
        if (!r->step) abort();
    }
    r->step[r->steps++] = (struct simulate_step){.at_ns = at_ns, .waiting = waiting, .busy = busy};
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The least that so many are not above. */
static double rank(const double *sorted, uint32_t n, double part) {
    uint32_t at = (uint32_t)ceil(part * n);
    return n ? sorted[at ? at - 1 : 0] : 0;
}

/* When it might have started: handed in, and those that it follows over. */
static int64_t ready_ns(const struct trace *t, const struct simulate_result *r, uint32_t job) {
    const struct trace_job *j = &t->job[job];
    int64_t ready = j->submit_ns;
    for (uint32_t k = 0; k < j->after_len; k++) {
        uint32_t before = t->list[j->after_at + k];
        int64_t over = r->start_ns[before] + simulate_time_of(&t->job[before]) + j->pause_ns;
        if (r->start_ns[before] >= 0 && over > ready) ready = over;
    }
    return ready < r->start_ns[job] ? ready : r->start_ns[job];
}

static uint32_t gpu_of(const struct trace *t, const struct simulate_result *r, uint32_t job) {
    return r->gpu_at ? r->gpu_list[r->gpu_at[job]] : t->job[job].gpu;
}

void simulate_add_up(const struct trace *t, const struct simulate_setup *s, struct simulate_result *r) {
    double *wait = simulate_room(t->jobs, sizeof *wait), waits = 0, turns = 0, used = 0, used_coming = 0;
    int64_t last = 0, coming = 0;
    for (uint32_t i = 0; i < t->jobs; i++)
        if (r->start_ns[i] >= 0 && t->job[i].submit_ns > coming) coming = t->job[i].submit_ns;
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        if (r->start_ns[i] < 0) continue;
        int64_t over = r->start_ns[i] + simulate_time_of(j), ready = ready_ns(t, r, i);
        double worth = simulate_worth(s, j, gpu_of(t, r, i));
        wait[r->jobs] = (double)(r->start_ns[i] - ready) / NS;
        waits += wait[r->jobs++];
        turns += (double)(over - ready) / NS;
        used += (double)(over - r->start_ns[i]) / NS * worth;
        if (r->start_ns[i] < coming)
            used_coming += (double)((over < coming ? over : coming) - r->start_ns[i]) / NS * worth;
        if (over > last) last = over;
        r->shares += j->share_bytes > 0;
        r->deadlines += j->finish_by_ns != 0;
        r->deadlines_hit += j->finish_by_ns && over <= j->finish_by_ns && j->run_ns == simulate_time_of(j);
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
    if (last > 0) r->utilisation = used / ((double)last / NS * gpus_of(s));
    if (coming > 0) r->utilisation_coming = used_coming / ((double)coming / NS * gpus_of(s));
    free(wait);
}

/* ---- what was ---- */

struct change {
    int64_t at_ns;
    int waiting;
    double busy;
};

static int by_time(const void *a, const void *b) {
    const struct change *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static void steps_make(const struct trace *t, const struct simulate_setup *s, struct simulate_result *r) {
    struct change *all = simulate_room(3 * (size_t)t->jobs, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        double worth = simulate_worth(s, j, j->gpu);
        if (r->start_ns[i] < 0) continue;
        all[count++] = (struct change){ready_ns(t, r, i), 1, 0};
        all[count++] = (struct change){r->start_ns[i], -1, worth};
        all[count++] = (struct change){r->start_ns[i] + simulate_time_of(j), 0, -worth};
    }
    qsort(all, count, sizeof *all, by_time);
    int waiting = 0;
    double busy = 0;
    for (size_t i = 0; i < count; i++) {
        waiting += all[i].waiting;
        busy += all[i].busy;
        if (i + 1 == count || all[i + 1].at_ns != all[i].at_ns)
            simulate_note(r, all[i].at_ns, (uint32_t)waiting, fmax(busy, 0));
    }
    free(all);
}

void simulate_truth(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret) {
    *ret = (struct simulate_result){.start_ns = simulate_room(t->jobs, sizeof *ret->start_ns)};
    for (uint32_t i = 0; i < t->jobs; i++) {
        ret->start_ns[i] = t->job[i].start_ns;
        ret->left_out += t->job[i].start_ns < 0;
    }
    simulate_add_up(t, s, ret);
    steps_make(t, s, ret);
}

double simulate_apart_s(const struct trace *t, const struct simulate_result *a, const struct simulate_result *b,
                        double part) {
    double *apart = simulate_room(t->jobs, sizeof *apart);
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->jobs; i++)
        if (a->start_ns[i] >= 0 && b->start_ns[i] >= 0)
            apart[count++] = fabs((double)(a->start_ns[i] - b->start_ns[i]) / NS);
    qsort(apart, count, sizeof *apart, by_value);
    double s = rank(apart, count, part);
    free(apart);
    return s;
}

/* ---- curves ---- */

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
