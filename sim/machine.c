/* Moving time on: tasks first, since they know what ran; then the plants, which heat from it. */
#include "sim/machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"

/* Found by letting a card of that model run each kind of task: once is enough for all of a kind. */
static void find_references(struct machine *m, uint32_t i) {
    for (uint32_t j = 0; j < i; j++) {
        if (m->plant[j].model != m->plant[i].model) continue;
        memcpy(m->reference_mhz[i], m->reference_mhz[j], sizeof m->reference_mhz[i]);
        return;
    }
    for (int k = 0; k < KIND_COUNT; k++) m->reference_mhz[i][k] = plant_reference_mhz(&m->plant[i], (enum wire_kind)k);
}

int machine_add(struct machine *m, const struct model *model, bool mig_on) {
    if (m->gpu_count == SHM_GPUS_MAX) return -1;
    uint32_t i = m->gpu_count++;
    struct shm_card *c = &m->card[i];
    model_card(model, m->seed, i, mig_on, c);
    plant_init(&m->plant[i], model, c, m->seed, m->air_c);
    m->board[i] = (struct board){.cooling = 1, .persistence = 1};
    if (c->abilities & CAN(ECC)) m->board[i].ecc_mode = m->board[i].ecc_pending = 1;
    find_references(m, i);
    return (int)i;
}

static void pace_now(const struct machine *m, struct pace *p) {
    p->gpu_count = m->gpu_count;
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        for (int k = 0; k < KIND_COUNT; k++)
            p->speed[i][k] = plant_speed(&m->plant[i], (enum wire_kind)k, m->reference_mhz[i][k]);
        for (uint32_t g = 0; g < m->card[i].mig_count; g++)
            p->mig_part[i][g] = (double)m->card[i].mig[g].sm_count / m->card[i].sm_count;
    }
}

/* Clocks rise the moment a context is opened, before the first step of its task: speed must not see the idle clock. */
static void wake_clocks(struct machine *m) {
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        struct plant *p = &m->plant[i];
        bool idle = p->reasons & REASON_IDLE;
        if (!idle) continue;
        for (unsigned t = 0; t < m->tasks.high; t++) {
            const struct task *s = &m->tasks.slot[t];
            if (!s->used || s->done || !(s->ask.gpus >> i & 1)) continue;
            struct load l = {.contexts = 1};
            load_add(&l, s->ask.kind, s->ask.demand);
            governor_step(p, &l, 0.001);
            break;
        }
    }
}

static void count_mig(struct machine *m, double dt_s) {
    for (unsigned t = 0; t < m->tasks.high; t++) {
        const struct task *s = &m->tasks.slot[t];
        if (!s->used || s->ask.mig >= SHM_MIG_MAX) continue;
        for (uint32_t i = 0; i < m->gpu_count; i++) {
            if (!(s->ask.gpus >> i & 1)) continue;
            for (int u = 0; u < UNIT_COUNT; u++)
                m->mig_busy_s[i][s->ask.mig][u] += s->share * kinds[s->ask.kind].unit[u] * dt_s;
        }
    }
}

static void breathe(struct machine *m) {
    double all_w = 0;
    for (uint32_t i = 0; i < m->gpu_count; i++) all_w += plant_power_w(&m->plant[i]);
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        struct plant *p = &m->plant[i];
        p->world.cooling = m->board[i].cooling;
        p->world.air_c = m->air_c + m->board[i].air_add_c + m->shared_air_k * (all_w - plant_power_w(p));
    }
}

static int step(struct machine *m, double dt_s) {
    struct pace pace = {0};
    wake_clocks(m);
    pace_now(m, &pace);
    int finished = tasks_advance(&m->tasks, &pace, m->now_s, dt_s, m->load);
    breathe(m);
    count_mig(m, dt_s);
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        if (m->board[i].lost) continue;
        uint32_t pstate = m->plant[i].pstate;
        plant_step(&m->plant[i], &m->load[i], dt_s);
        if (m->plant[i].pstate != pstate && m->listener.event)
            m->listener.event(m->listener.self, i, EVENT_PSTATE, m->plant[i].pstate);
        if (m->plant[i].burnt) machine_lose(m, i);
    }
    m->now_s += dt_s;
    if (m->driver == SHM_DRIVER_DOWN && m->now_s >= m->driver_back_s) machine_driver_up(m);
    return finished;
}

int machine_advance(struct machine *m, double dt_s) {
    int finished = 0;
    for (double left = dt_s; left > 1e-9;) {
        double h = fmin(left, PLANT_STEP_S);
        finished += step(m, h);
        left -= h;
    }
    return finished;
}

double machine_next_s(struct machine *m) {
    struct pace pace = {0};
    pace_now(m, &pace);
    double next = tasks_next_end_s(&m->tasks, &pace);
    if (m->driver == SHM_DRIVER_DOWN) next = fmin(next, m->driver_back_s - m->now_s);
    return next;
}

PRINTF(3, 4) static int refuse(int code, char *why, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, MACHINE_WHY_MAX, fmt, ap);
    va_end(ap);
    return code;
}

static int check_card(const struct machine *m, uint32_t i, struct wire_task *ask, char *why) {
    const struct shm_card *c = &m->card[i];
    if (m->board[i].lost) return refuse(CODE_LOST, why, "GPU %u is lost", i);
    if (m->board[i].compute_mode == 2) return refuse(CODE_IN_USE, why, "GPU %u prohibits tasks", i);
    if (c->mig_count && ask->mig >= SHM_MIG_MAX) ask->mig = 0; /* as CUDA does: the first instance */
    if (c->mig_count ? ask->mig >= c->mig_count : ask->mig < SHM_MIG_MAX)
        return refuse(CODE_NOT_FOUND, why, "GPU %u has no such MIG instance", i);

    uint64_t room = c->mig_count ? c->mig[ask->mig].memory_bytes : c->memory_bytes - c->reserved_bytes;
    uint64_t used = tasks_memory(&m->tasks, i, ask->mig);
    if (ask->memory_bytes > room - used)
        return refuse(CODE_MEMORY, why, "out of memory on GPU %u: %.0f MiB asked, %.0f MiB free", i,
                      (double)ask->memory_bytes / 1048576, (double)(room - used) / 1048576);
    if (m->board[i].compute_mode == 3 && tasks_memory(&m->tasks, i, UINT32_MAX))
        return refuse(CODE_IN_USE, why, "GPU %u is in exclusive mode and in use", i);
    return 0;
}

int machine_start(struct machine *m, const struct wire_task *ask, uint32_t pid, uint32_t uid, struct task **ret,
                  char why[MACHINE_WHY_MAX]) {
    struct wire_task want = *ask;
    want.name[sizeof want.name - 1] = '\0';
    bool sane = want.kind < KIND_COUNT && want.demand >= 0 && want.demand <= 1 && want.work_s >= 0 && want.gpus;
    if (!sane) return refuse(CODE_INVALID, why, "a demand of 0 to 1, work of 0 or more and a GPU are needed");
    if (m->driver != SHM_DRIVER_UP) return refuse(CODE_DRIVER_DOWN, why, "the driver is not loaded");
    for (uint32_t i = 0; i < 64; i++) {
        if (!(want.gpus >> i & 1)) continue;
        if (i >= m->gpu_count) return refuse(CODE_NOT_FOUND, why, "GPU %u: no such GPU, there are %u", i, m->gpu_count);
        int r = check_card(m, i, &want, why);
        if (r) return r;
    }
    *ret = tasks_add(&m->tasks, &want, pid, uid, m->now_s);
    return *ret ? 0 : refuse(CODE_MEMORY, why, "too many tasks");
}
