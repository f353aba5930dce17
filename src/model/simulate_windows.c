/* Reservations while a trace is played: what the server makes of its own (server/queue_reserve.c), on the trace's clock. Who makes
 * the windows sees to it that they do not overlap on a GPU, and that they are in order. */
#include <stdlib.h>

#include "model/reserve.h"
#include "model/simulate_own.h"

void windows_begin(struct play *p) {
    if (!p->setup->windows) return;
    bool is_anywhere = true;
    for (uint32_t i = 0; i < p->t->jobs; i++) is_anywhere &= p->t->job[i].node == TRACE_NONE;
    p->wait_slots = is_anywhere ? 1 : p->w.gpus + 1; /* nodes have the numbers of their first GPUs */
    p->waits = simulate_room((size_t)p->t->users.count * p->wait_slots, sizeof *p->waits);
    p->last_use_s = simulate_room(p->setup->windows, sizeof *p->last_use_s);
}

void windows_done(struct play *p) {
    free(p->window);
    free(p->waits);
    free(p->last_use_s);
}

static uint32_t *waits_of(const struct play *p, uint32_t user, uint32_t node) {
    uint32_t slot = node < p->wait_slots - 1 ? node : p->wait_slots - 1;
    return &p->waits[(size_t)user * p->wait_slots + slot];
}

uint32_t *windows_waits(struct play *p, uint32_t job) { return waits_of(p, p->t->job[job].user, p->t->job[job].node); }

static bool is_for(const struct simulate_window *v, uint32_t user) {
    for (uint32_t i = 0; i < v->users; i++)
        if (v->user[i] == user) return true;
    return false;
}

static bool is_on(const struct simulate_window *v, const struct plan_run *r) {
    for (uint32_t i = 0; i < v->gpus; i++)
        for (uint16_t k = 0; k < r->gpus; k++)
            if (r->gpu[k] == v->gpu[i]) return true;
    return false;
}

/* Somebody of them runs on one of its GPUs, or waits for GPUs of its machine. */
static bool is_in_use(const struct play *p, const struct simulate_window *v) {
    uint32_t node = v->gpus ? p->gpu[v->gpu[0]].node : TRACE_NONE;
    for (uint32_t i = 0; i < v->users; i++)
        if (*waits_of(p, v->user[i], node) || *waits_of(p, v->user[i], TRACE_NONE)) return true;
    for (uint32_t i = 0; i < p->w.runs; i++)
        if (is_for(v, p->run[i].user) && is_on(v, &p->run[i])) return true;
    return false;
}

static int64_t wall_s(const struct play *p, int64_t ns) { return (p->t->zero_ns + ns) / SIMULATE_NS; }

void windows_use(struct play *p, int64_t until_ns) {
    int64_t until_s = wall_s(p, until_ns);
    const struct simulate_window *v = p->setup->window;
    while (p->window_from < p->setup->windows && v[p->window_from].to_s <= wall_s(p, p->w.now_ns)) p->window_from++;
    for (uint32_t i = p->window_from; i < p->setup->windows && v[i].from_s <= until_s; i++)
        if (v[i].to_s > wall_s(p, p->w.now_ns) && is_in_use(p, &v[i])) p->last_use_s[i] = until_s;
}

static bool stands(const struct play *p, uint32_t i, int64_t now_s) {
    const struct simulate_window *v = &p->setup->window[i];
    struct reserve_window w = {v->from_s, v->to_s};
    if (v->from_s <= now_s && is_in_use(p, v)) p->last_use_s[i] = now_s;
    return v->from_s > now_s || reserve_stands(&w, p->last_use_s[i], p->setup->unused_s, now_s);
}

void windows_make(struct play *p) {
    const struct simulate_setup *s = p->setup;
    int64_t now_s = wall_s(p, p->w.now_ns);
    p->w.windows = 0;
    for (uint32_t i = p->window_from; i < s->windows && s->window[i].from_s <= now_s + s->ahead_s; i++) {
        const struct simulate_window *v = &s->window[i];
        if (v->to_s <= now_s || v->made_s > now_s || !stands(p, i, now_s)) continue;
        for (uint32_t g = 0; g < v->gpus; g++) {
            if (p->w.windows == p->window_cap) {
                p->window_cap = p->window_cap ? 2 * p->window_cap : 64;
                p->window = realloc(p->window, p->window_cap * sizeof *p->window);
                if (!p->window) abort();
            }
            p->window[p->w.windows++] = (struct plan_window){.gpu = v->gpu[g],
                                                             .user = v->user,
                                                             .users = v->users,
                                                             .from_ns = v->from_s * SIMULATE_NS - p->t->zero_ns,
                                                             .to_ns = v->to_s * SIMULATE_NS - p->t->zero_ns,
                                                             .who = ""};
        }
    }
    p->w.window = p->window;
}

/* The next beginning or end of one, or when one that is not in use is given to everybody. */
int64_t windows_wake_ns(const struct play *p) {
    const struct simulate_setup *s = p->setup;
    int64_t now_s = wall_s(p, p->w.now_ns), wake_s = INT64_MAX;
    for (uint32_t i = p->window_from; i < s->windows; i++) {
        const struct simulate_window *v = &s->window[i];
        int64_t use_s = p->last_use_s[i] > v->from_s ? p->last_use_s[i] : v->from_s;
        if (v->from_s > now_s) {
            if (v->from_s < wake_s) wake_s = v->from_s;
            break;
        }
        if (v->to_s > now_s && v->to_s < wake_s) wake_s = v->to_s;
        if (s->unused_s && use_s + s->unused_s > now_s && use_s + s->unused_s < wake_s) wake_s = use_s + s->unused_s;
    }
    return wake_s == INT64_MAX ? PLAN_NEVER : wake_s * SIMULATE_NS - p->t->zero_ns;
}
