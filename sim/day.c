/* The script: rows of tasks to draw from, and when trouble comes. */
#include "sim/day.h"

#include <math.h>
#include <stdlib.h>

#include "base/auto.h"

struct part {
    const char *title;
    enum wire_kind kind;
    double demand, memory; /* of the card */
    double least_s, most_s;
};

static const struct part large[] = {
    {"train.py",    KIND_MATMUL, 1.00, 0.62, 25, 70},
    {"finetune.py", KIND_MATMUL, 0.82, 0.48, 20, 50},
    {"vllm-serve",  KIND_INFER,  0.64, 0.70, 40, 90},
    {"gmx-mdrun",   KIND_HPC,    0.74, 0.12, 15, 45},
    {"embed.py",    KIND_COPY,   0.58, 0.35, 12, 30},
};
static const struct part small[] = {
    {"jupyter-kernel", KIND_SMALL, 0.14, 0.04, 15, 60},
    {"ffmpeg",         KIND_VIDEO, 0.35, 0.03, 10, 30},
    {"notebook-idle",  KIND_IDLE,  0.00, 0.08, 20, 60},
    {"eval.py",        KIND_INFER, 0.22, 0.10, 8,  25},
};

/* The first comes soon, so that it is seen; those after it are the kinds that a node meets in a day. */
static const uint32_t xids[] = {31, 13, 63, 43, 94};

static double between(struct day *d, double lo, double hi) {
    d->rng ^= d->rng << 13;
    d->rng ^= d->rng >> 7;
    d->rng ^= d->rng << 17;
    return lo + (hi - lo) * (double)(d->rng >> 11) * 0x1p-53;
}

void day_begin(struct day *d, struct machine *m) {
    *d = (struct day){.rng = (m->seed + 77) * 0x9e3779b97f4a7c15u | 1};
    uint32_t n = m->gpu_count;
    d->hot_gpu = 2 % n;
    d->sick_gpu = n > 3 ? 3 : n - 1;
    d->next_xid_s = 35;
    d->next_ecc_s = 20;
    m->board[d->hot_gpu].cooling = 2.1;
    for (uint32_t i = 0; i < n; i++) {
        /* The last card of several rests at first: free cards are part of a day. */
        bool rests = n > 2 && i == n - 1;
        d->lane[i][0].start_s = rests ? between(d, 20, 30) : 0.1 + 0.3 * i;
        d->lane[i][1].start_s = between(d, 3, 25);
    }
}

static void start(struct day *d, struct machine *m, struct children *c, uint32_t gpu, int lane) {
    const struct part *rows = lane == 0 ? large : small;
    size_t count = lane == 0 ? ARRAY_LEN(large) : ARRAY_LEN(small);
    const struct part *part = &rows[(size_t)between(d, 0, (double)count) % count];
    /* The hot card is hot from work. */
    if (lane == 0 && gpu == d->hot_gpu) part = &large[0];

    const struct shm_card *card = &m->card[gpu];
    uint64_t room = card->mig_count ? card->mig[0].memory_bytes : card->memory_bytes - card->reserved_bytes;
    struct wire_task ask = {
        .gpus = UINT64_C(1) << gpu,
        .memory_bytes = (uint64_t)((double)room * part->memory * between(d, 0.85, 1.1)) & ~UINT64_C(0xfffff),
        .demand = part->demand,
        .work_s = between(d, part->least_s, part->most_s),
        .kind = part->kind,
        .mig = card->mig_count ? (uint32_t)lane % card->mig_count : UINT32_MAX,
    };
    struct error e;
    int pid = children_start(c, &ask, part->title, 0, &e);
    struct lane *l = &d->lane[gpu][lane];
    l->pid = pid > 0 ? pid : 0;
    l->start_s = m->now_s + (pid > 0 ? 0 : 5);
}

static void trouble(struct day *d, struct machine *m) {
    if (m->now_s >= d->next_xid_s) {
        machine_xid(m, d->sick_gpu, xids[d->xids++ % ARRAY_LEN(xids)]);
        d->next_xid_s = m->now_s + between(d, 150, 400);
    }
    uint32_t weak = m->gpu_count > 1 ? 1 : 0;
    if (m->now_s >= d->next_ecc_s) {
        if (m->card[weak].abilities & CAN(ECC)) machine_ecc(m, weak, false, 1 + (uint32_t)between(d, 0, 3));
        d->next_ecc_s = m->now_s + between(d, 60, 180);
    }
}

void day_step(struct day *d, struct machine *m, struct children *c) {
    if (m->driver != SHM_DRIVER_UP) return;
    trouble(d, m);
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        if (m->board[i].lost) continue;
        for (int k = 0; k < DAY_LANES; k++) {
            struct lane *l = &d->lane[i][k];
            if (l->pid && children_has(c, l->pid)) continue;
            if (l->pid) {
                l->pid = 0;
                l->start_s = m->now_s + (k == 0 && i == d->hot_gpu ? 2 : between(d, 2, 14));
            }
            if (m->now_s >= l->start_s) start(d, m, c, i, k);
        }
    }
}
