/* Callers that want to hear when a job moves on. What a caller has seen he names by its stage; whoever names another one than
 * the job is in by now is answered at once, so nothing is missed between two questions, also not over a restart. They are
 * told after the commit, as everybody. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/queue_own.h"

struct queue_wait {
    struct queue_wait *next;
    int64_t job, until_ns; /* boot clock */
    char stage[QUEUE_STAGE];
    void (*done)(void *ctx);
    void *ctx;
};

static void mix(uint64_t *h, uint64_t v) {
    for (int i = 0; i < 8; i++, v >>= 8) *h = (*h ^ (v & 0xff)) * 0x100000001b3ull;
}

void queue_stage(const struct queue_job *j, char ret[QUEUE_STAGE]) {
    uint64_t h = 0xcbf29ce484222325ull;
    mix(&h, j->is_held);
    mix(&h, (uint64_t)j->priority);
    mix(&h, j->after_count);
    for (int s = 0; s < JOB_STATE_COUNT; s++) mix(&h, j->counts[s]);
    for (const struct queue_run *r = j->runs; r; r = r->next) {
        mix(&h, (uint64_t)r->of.key.element << 32 | r->of.key.attempt);
        mix(&h, r->state);
    }
    snprintf(ret, QUEUE_STAGE, "%016" PRIx64, h);
}

static struct queue_wait **bucket(struct queue *q, int64_t job) { return &q->waits[(uint64_t)job % QUEUE_WAITS]; }

bool queue_wait(struct queue *q, int64_t job, const char *stage, int64_t for_ns, void (*done)(void *ctx), void *ctx) {
    char now[QUEUE_STAGE];
    const struct queue_job *j = queue_find(q, job);
    if (!j || q->is_draining || job_state_is_over(queue_job_state(j))) return false;
    queue_stage(j, now);
    if (strcmp(now, stage) != 0) return false;
    struct queue_wait *w = malloc(sizeof *w), **at = bucket(q, job);
    if (!w) abort();
    *w = (struct queue_wait){.next = *at, .job = job, .until_ns = clock_boot_ns() + for_ns, .done = done, .ctx = ctx};
    memcpy(w->stage, now, sizeof w->stage);
    *at = w;
    return true;
}

static bool is_due(struct queue *q, const struct queue_wait *w, int64_t now_ns) {
    char now[QUEUE_STAGE];
    const struct queue_job *j = queue_find(q, w->job);
    if (!j || q->is_draining || now_ns >= w->until_ns) return true;
    queue_stage(j, now);
    return strcmp(now, w->stage) != 0;
}

/* job 0: any. */
static void look(struct queue *q, struct queue_wait **at, int64_t job) {
    struct queue_wait *due = NULL;
    int64_t now_ns = clock_boot_ns();
    while (*at) {
        struct queue_wait *w = *at;
        if ((job && w->job != job) || !is_due(q, w, now_ns)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = due;
        due = w;
    }
    while (due) { /* apart: whoever is told may ask again */
        struct queue_wait *w = due;
        due = w->next;
        w->done(w->ctx);
        free(w);
    }
}

void queue_waits_look(struct queue *q, int64_t job) { look(q, bucket(q, job), job); }

void queue_waits_tick(struct queue *q) {
    for (size_t i = 0; i < QUEUE_WAITS; i++)
        if (q->waits[i]) look(q, &q->waits[i], 0);
}

void queue_drain(struct queue *q) {
    if (!q) return;
    q->is_draining = true;
    queue_waits_tick(q);
}

void queue_waits_free(struct queue *q) {
    for (size_t i = 0; i < QUEUE_WAITS; i++)
        while (q->waits[i]) {
            struct queue_wait *w = q->waits[i];
            q->waits[i] = w->next;
            free(w);
        }
}
