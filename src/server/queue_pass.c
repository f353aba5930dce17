/* Who may start now. */
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

static bool is_held(const struct queue *q, const struct queue_gpu *g) {
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            for (uint16_t k = 0; k < r->gpus; k++)
                if (strcmp(r->uuid[k], g->uuid) == 0) return true;
    return false;
}

static bool pick(const struct queue *q, const struct queue_job *j, const bool *taken, size_t *ret) {
    int n = 0;
    for (size_t i = 0; i < q->gpus && n < j->spec.gpus; i++) {
        const struct queue_gpu *g = &q->gpu[i];
        bool fits = g->is_here && !g->cordon && g->is.verdict == OCCUPANCY_FREE && !taken[i] &&
                    strcmp(g->node, j->node) == 0 && queue_gpu_in_scope(g, &j->spec) &&
                    g->memory_bytes >= j->spec.memory_bytes;
        if (fits) ret[n++] = i;
    }
    return n == j->spec.gpus;
}

void queue_pass(struct queue *q) {
    queue_gpus_read(q);
    bool *taken = calloc(q->gpus + 1, sizeof *taken);
    if (!taken) abort();
    for (size_t i = 0; i < q->gpus; i++) taken[i] = is_held(q, &q->gpu[i]);
    for (size_t i = 0; i < q->count; i++) {
        struct queue_job *j = q->job[i];
        size_t gpus[JOB_GPUS_MAX];
        while (j->counts[JOB_WAITING] && !j->is_held && !j->after_count && pick(q, j, taken, gpus)) {
            uint32_t active = j->counts[JOB_GRANTED] + j->counts[JOB_RUNNING] + j->counts[JOB_ENDING];
            if (j->at_once && active >= j->at_once) break;
            while (j->cursor < j->elements && j->element[j->cursor].state != JOB_WAITING) j->cursor++;
            if (j->cursor >= j->elements) break;
            for (int k = 0; k < j->spec.gpus; k++) taken[gpus[k]] = true;
            queue_grant(q, j, j->cursor, gpus, j->spec.gpus);
        }
    }
    free(taken);
}
