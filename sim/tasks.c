/* Proportional sharing with exact ends. See tasks.h. */
#include "sim/tasks.h"

#include <math.h>
#include <string.h>

enum { WHOLE = SHM_MIG_MAX, PARTS }; /* contention is within an instance, or among those on the whole card */

struct crowd {
    double wanted[SHM_GPUS_MAX][PARTS]; /* summed busy time that tasks ask for */
};

struct task *tasks_add(struct tasks *t, const struct wire_task *ask, uint32_t pid, uint32_t uid, double now_s) {
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        struct task *s = &t->slot[i];
        if (s->used) continue;
        *s = (struct task){.used = true, .pid = pid, .uid = uid, .ask = *ask, .left_s = ask->work_s, .began_s = now_s};
        if (i >= t->high) t->high = i + 1;
        return s;
    }
    return NULL;
}

void tasks_remove(struct tasks *t, struct task *task) {
    (void)t;
    task->used = false;
}

static unsigned part_of(const struct task *s) { return s->ask.mig < SHM_MIG_MAX ? s->ask.mig : WHOLE; }

uint64_t tasks_memory(const struct tasks *t, uint32_t gpu, uint32_t mig) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < t->high; i++) {
        const struct task *s = &t->slot[i];
        if (s->used && s->ask.gpus >> gpu & 1 && (mig >= SHM_MIG_MAX || s->ask.mig == mig)) sum += s->ask.memory_bytes;
    }
    return sum;
}

static bool works(const struct task *s) { return s->used && !s->done; }

/* A task is on the card for `demand` of its time at full speed and elsewhere for the rest; a slower clock stretches
 * only the first. Busy share asked, and pace were it alone. */
static void alone(const struct task *s, const struct pace *p, double *ret_busy, double *ret_rate) {
    double speed = 1;
    for (uint32_t g = 0; g < p->gpu_count; g++)
        if (s->ask.gpus >> g & 1) speed = fmin(speed, p->speed[g][s->ask.kind]);
    double stretched = s->ask.demand / speed;
    double rate = 1 / (1 - s->ask.demand + stretched);
    *ret_rate = rate;
    *ret_busy = s->ask.kind == KIND_IDLE ? 0 : stretched * rate;
}

static void gather(const struct tasks *t, const struct pace *p, struct crowd *c) {
    *c = (struct crowd){0};
    for (unsigned i = 0; i < t->high; i++) {
        const struct task *s = &t->slot[i];
        if (!works(s)) continue;
        double busy, rate;
        alone(s, p, &busy, &rate);
        for (uint32_t g = 0; g < p->gpu_count; g++)
            if (s->ask.gpus >> g & 1) c->wanted[g][part_of(s)] += busy;
    }
}

/* How fast this task goes among the others; its share of each of its cards goes to ret_share. */
static double rate_among(const struct task *s, const struct pace *p, const struct crowd *c, double *ret_share) {
    double busy, rate, room = 1;
    alone(s, p, &busy, &rate);
    for (uint32_t g = 0; g < p->gpu_count; g++)
        if (s->ask.gpus >> g & 1) room = fmin(room, 1 / fmax(c->wanted[g][part_of(s)], 1));
    if (ret_share) *ret_share = busy * room;
    return rate * room;
}

double tasks_next_end_s(struct tasks *t, const struct pace *p) {
    struct crowd c;
    gather(t, p, &c);
    double next = INFINITY;
    for (unsigned i = 0; i < t->high; i++) {
        const struct task *s = &t->slot[i];
        if (works(s)) next = fmin(next, s->left_s / rate_among(s, p, &c, NULL));
    }
    return next;
}

static void add_load(const struct task *s, const struct pace *p, double share, struct load *loads) {
    for (uint32_t g = 0; g < p->gpu_count; g++) {
        if (!(s->ask.gpus >> g & 1)) continue;
        double part = s->ask.mig < SHM_MIG_MAX ? p->mig_part[g][s->ask.mig] : 1;
        load_add(&loads[g], s->ask.kind, share * part);
    }
}

/* Everyone works for h seconds, in which no one finishes except at their end. */
static int work(struct tasks *t, const struct pace *p, double end_s, double h, double dt_s, struct load *loads) {
    struct crowd c;
    gather(t, p, &c);
    int finished = 0;
    for (unsigned i = 0; i < t->high; i++) {
        struct task *s = &t->slot[i];
        if (!works(s)) continue;
        double share;
        double rate = rate_among(s, p, &c, &share);
        s->left_s -= rate * h;
        s->share += share * h / dt_s;
        add_load(s, p, share * h / dt_s, loads);
        if (s->left_s > rate * 1e-9) continue;
        s->done = true;
        s->ended_s = end_s;
        finished++;
    }
    return finished;
}

int tasks_advance(struct tasks *t, const struct pace *p, double now_s, double dt_s, struct load loads[SHM_GPUS_MAX]) {
    memset(loads, 0, p->gpu_count * sizeof *loads);
    for (unsigned i = 0; i < t->high; i++) {
        struct task *s = &t->slot[i];
        s->share = 0;
        if (!works(s)) continue;
        for (uint32_t g = 0; g < p->gpu_count; g++) {
            if (!(s->ask.gpus >> g & 1)) continue;
            loads[g].contexts++;
            loads[g].graphics += kinds[s->ask.kind].graphics;
        }
    }
    int finished = 0;
    for (double at = 0; at < dt_s;) {
        double h = fmin(tasks_next_end_s(t, p), dt_s - at);
        at += h;
        finished += work(t, p, now_s + at, h, dt_s, loads);
        if (h <= 0 && finished == 0) break;
    }
    return finished;
}
