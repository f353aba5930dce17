/* Which GPUs are used by somebody outside the queue while somebody in the queue waits for them, or has them. What becomes of him is
 * decided by the node (model/outside.h); here is only said who is in whose way. */
#include <stdlib.h>
#include <string.h>

#include "model/wire_notice.h"
#include "server/queue_own.h"

/* Whom we let in ourselves is in nobody's way. A server that was started anew cannot know: then who was there before counts as
 * let in. */
static bool is_lent(const struct queue *q, const struct queue_gpu *g) {
    return g->is_lent || (*q->settings->watchmen_listen && g->is.since_ns < q->begun_ns);
}

static bool could_have(const struct queue *q, const struct queue_job *j, const struct queue_gpu *g) {
    uint32_t active = j->counts[JOB_GRANTED] + j->counts[JOB_RUNNING] + j->counts[JOB_ENDING];
    if (!j->counts[JOB_WAITING] || j->is_held || j->after_count || (j->at_once && active >= j->at_once)) return false;
    return strcmp(j->node, g->node) == 0 && queue_gpu_does(q, g, &j->spec) && j->spec.memory_bytes <= g->memory_bytes;
}

/* GPUs that each user has, by his number. */
static int *count_held(const struct queue *q) {
    int *held = calloc(q->users + 1, sizeof *held);
    if (!held) abort();
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            if (q->job[i]->user_at < q->users) held[q->job[i]->user_at] += r->gpus;
    return held;
}

/* Jobs of one who has all that he may have do not wait for a GPU. */
static bool is_at_limit(const struct queue *q, const struct queue_job *j, const int *held) {
    int most = q->settings->jobs_user_gpus;
    return most && j->user_at < q->users && held[j->user_at] + j->spec.gpus > most;
}

static bool is_wanted(const struct queue *q, const struct queue_gpu *g, const int *held) {
    if (!g->is_here || g->cordon || g->is.verdict != OCCUPANCY_FOREIGN || is_lent(q, g)) return false;
    for (size_t i = 0; i < q->count; i++)
        for (const struct queue_run *r = q->job[i]->runs; r; r = r->next)
            for (uint16_t k = 0; k < r->gpus; k++)
                if (strcmp(r->uuid[k], g->uuid) == 0) return q->job[i]->origin != QUEUE_BY_WATCHMEN;
    for (size_t i = 0; i < q->count; i++)
        if (could_have(q, q->job[i], g) && !is_at_limit(q, q->job[i], held)) return true;
    return false;
}

void queue_tell_wanted(struct queue *q, struct live_node *n) {
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    uint16_t count = 0, sound = 0;
    for (size_t i = 0; i < q->gpus; i++) {
        bool is_its = strcmp(q->gpu[i].node, n->name) == 0;
        count += is_its && q->gpu[i].is_wanted;
        sound += is_its && q->gpu[i].sound_ns;
    }
    size_t from = wire_begin_wanted(&b, count);
    for (size_t i = 0; i < q->gpus; i++)
        if (q->gpu[i].is_wanted && strcmp(q->gpu[i].node, n->name) == 0) wire_add_wanted(&b, q->gpu[i].uuid);
    wire_begin_sound(&b, sound);
    for (size_t i = 0; i < q->gpus; i++)
        if (q->gpu[i].sound_ns && strcmp(q->gpu[i].node, n->name) == 0)
            wire_add_sound(&b, q->gpu[i].uuid, q->gpu[i].sound_ns);
    wire_end(&b, from);
    if (link_send(q->links, n, &b, &e) < 0) return; /* it is told when it comes back */
}

void queue_wanted_tick(struct queue *q) {
    int *held = count_held(q);
    bool is_news = false;
    for (size_t i = 0; i < q->gpus; i++) { /* those of one node lie side by side */
        struct queue_gpu *g = &q->gpu[i];
        bool was_wanted = g->is_wanted, is_last = i + 1 == q->gpus || strcmp(g->node, g[1].node) != 0;
        g->is_wanted = is_wanted(q, g, held);
        is_news |= g->is_wanted != was_wanted;
        struct live_node *n = is_last && is_news ? live_find_node(q->live, g->node) : NULL;
        if (n && n->link) queue_tell_wanted(q, n);
        if (is_last) is_news = false;
    }
    free(held);
}
