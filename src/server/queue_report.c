/* What runs hold of the GPUs, and what those that go on have used up to now. */
#include <math.h>

#include "server/queue_own.h"
#include "server/queue_store.h"

#define HOUR_NS (3600 * NS_PER_S)

double queue_run_worth(const struct queue *q, const struct queue_run *r) {
    uint64_t share = r->job->spec.share_bytes;
    double sum = 0;
    for (uint16_t i = 0; i < r->gpus; i++) {
        const struct queue_gpu *g = share ? queue_gpu_find(q, r->uuid[i]) : NULL;
        sum += g && g->memory_bytes ? fmin((double)share / (double)g->memory_bytes, 1) : 1;
    }
    return sum;
}

/* What of it lies in these hours. One whose node has not told since the server began is left out until it does: how much it
 * has used is not known. */
static bool so_far(const struct queue *q, const struct queue_run *r, int64_t from_ns, int64_t to_ns, int64_t now_ns,
                   struct queue_report_row *ret) {
    int64_t begun_ns = r->granted_ns < now_ns ? r->granted_ns : now_ns, first_ns = begun_ns, last_ns = now_ns;
    bool is_told = r->now.key.attempt || isfinite(r->of.gpu_seconds);
    if (r->state == JOB_GRANTED || !is_told) return false;
    if (first_ns < from_ns) first_ns = from_ns;
    if (last_ns > to_ns) last_ns = to_ns;
    if (last_ns <= first_ns) return false;
    double held_s = (double)(last_ns - first_ns) / NS_PER_S;
    double part = held_s / ((double)(now_ns - begun_ns) / NS_PER_S);
    *ret = (struct queue_report_row){.user = r->job->user,
                                     .held_s = held_s * queue_run_worth(q, r),
                                     .used_s = isfinite(r->of.gpu_seconds) ? r->of.gpu_seconds * part : 0,
                                     .energy_j = isfinite(r->of.energy_joules) ? r->of.energy_joules * part : 0,
                                     .running = 1};
    return true;
}

void queue_report_now(const struct queue *q, int64_t from_hour, int64_t to_hour,
                      void (*each)(void *ctx, const struct queue_report_row *row), void *ctx) {
    int64_t now_ns = clock_real_ns();
    struct queue_report_row row;
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            if (so_far(q, r, from_hour * HOUR_NS, to_hour * HOUR_NS, now_ns, &row)) each(ctx, &row);
}
