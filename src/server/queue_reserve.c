/* What the queue makes of reservations: windows that a pass plans around, and those that stand unused given to everybody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/queue_reserve.h"
#include "server/queue_world.h"

struct reserves *queue_reserves(struct queue *q) {
    return &q->reserves;
}

/* ---- is it used ---- */

/* Somebody of them runs on one of its GPUs, or waits for GPUs of its machine. */
static bool is_in_use(const struct queue *q, const struct reservation *v, const bool *is_for) {
    for (size_t i = 0; i < q->count; i++) {
        const struct queue_job *j = q->job[i];
        bool waits = j->counts[JOB_WAITING] && !j->is_held && !j->after_count && strcmp(j->node, v->node) == 0;
        if ((!waits && !j->runs) || !is_for[j->user_at]) continue;
        if (waits) return true;
        for (const struct queue_run *r = j->runs; r; r = r->next)
            for (uint16_t k = 0; k < r->gpus; k++)
                if (reserves_has_gpu(v, r->uuid[k]) || reserves_has_instead(v, r->uuid[k])) return true;
    }
    return false;
}

static void tell(struct queue *q, const struct reservation *v, const char *kind, const char *text) {
    struct event ev = {.boot_ns = clock_boot_ns(), .real_ns = clock_real_ns(), .severity = EVENT_INFO, .device = -1};
    ev.code = (int32_t)(v->id & INT32_MAX);
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "%s", text);
    if (q->on_event) q->on_event(q->event_ctx, v->node, &ev);
}

static int64_t unused_s(const struct queue *q) { return 60LL * q->settings->reserve_unused_min; }

bool queue_reserve_stands(const struct queue *q, const struct reservation *v, const struct reserve_window *w,
                          int64_t now_s) {
    int64_t last_s = v->last_use_s > q->reserves.began_s ? v->last_use_s : q->reserves.began_s;
    return w->from_s > now_s || reserve_stands(w, last_s, unused_s(q), now_s);
}

/* What stands unused for too long is everybody's until it is over, or until one of them comes. */
static void look(struct queue *q, struct reservation *v, const bool *is_for, int64_t now_s) {
    struct reserve_window w;
    char text[168], who[80], until[40];
    if (!reserve_next(&v->when, now_s, &w) || w.from_s > now_s) return;
    if (is_in_use(q, v, is_for)) v->last_use_s = now_s;
    bool stands = queue_reserve_stands(q, v, &w, now_s), was_given = v->given_back_s == w.from_s;
    if (stands != was_given) return;
    v->given_back_s = stands ? 0 : w.from_s;
    reserves_holder(v, who, sizeof who);
    reserves_time(w.to_s, until, sizeof until);
    if (stands)
        snprintf(text, sizeof text, "reservation %lld of %.40s counts again until %.20s", (long long)v->id, who, until);
    else
        snprintf(text, sizeof text,
                 "reservation %lld of %.40s is unused for %d min: its GPUs are everybody's until %.20s",
                 (long long)v->id, who, q->settings->reserve_unused_min, until);
    tell(q, v, stands ? "reservation_taken_up" : "reservation_unused", text);
}

/* ---- windows ---- */

static uint32_t *users_of(const struct queue *q, const bool *is_for, uint32_t *ret_count) {
    uint32_t *users = calloc(q->users + 1, sizeof *users);
    if (!users) abort();
    *ret_count = 0;
    for (size_t u = 0; u < q->users; u++)
        if (is_for[u]) users[(*ret_count)++] = (uint32_t)u;
    return users;
}

static void add_window(struct queue_world *w, const struct plan_window *v) {
    if (w->of.windows == w->window_cap) {
        w->window_cap = w->window_cap ? 2 * w->window_cap : 16;
        w->window = realloc(w->window, w->window_cap * sizeof *w->window);
        if (!w->window) abort();
    }
    w->window[w->of.windows++] = *v;
}

/* ---- what is lost is replaced ---- */

/* Its machine is there and it is not, or an operator or a fault took it out of service. Who is merely on it will go. */
static bool is_lost(const struct queue *q, const struct queue_gpu *g) {
    bool has_machine = false;
    for (size_t i = 0; i < q->gpus; i++) has_machine |= q->gpu[i].is_here && strcmp(q->gpu[i].node, g->node) == 0;
    return has_machine && (!g->is_here || g->cordon || g->is.verdict == OCCUPANCY_LOST ||
                           g->is.verdict == OCCUPANCY_UNHEALTHY || g->is.verdict == OCCUPANCY_CORDONED);
}

/* Somebody has it then, by a reservation or in place of what he lost. */
static bool is_kept_then(const struct queue *q, const struct queue_world *w, uint32_t gpu,
                         const struct reserve_window *r) {
    struct reserve_window other;
    for (uint32_t i = 0; i < w->of.windows; i++)
        if (w->window[i].gpu == gpu && w->window[i].from_ns < r->to_s * NS_PER_S &&
            w->window[i].to_ns > r->from_s * NS_PER_S)
            return true;
    for (size_t i = 0; i < q->reserves.count; i++) {
        const struct reservation *o = q->reserves.of[i];
        if (reserves_has_gpu(o, q->gpu[gpu].uuid) && reserve_next(&o->when, r->from_s, &other) &&
            other.from_s < r->to_s)
            return true;
    }
    return false;
}

/* Another of that machine that can what the lost one could. PLAN_NONE: there is none. */
static uint32_t stand_in(const struct queue *q, const struct queue_world *w, const struct queue_gpu *lost,
                         const struct reserve_window *r) {
    for (uint32_t g = 0; g < q->gpus; g++) {
        const struct queue_gpu *o = &q->gpu[g];
        if (strcmp(o->node, lost->node) != 0 || (o->instance < 0) != (lost->instance < 0)) continue;
        if (o->memory_bytes < lost->memory_bytes || !o->is_here || is_lost(q, o) || is_kept_then(q, w, g, r)) continue;
        return g;
    }
    return PLAN_NONE;
}

/* Said when it changes, for the window that goes on or is next. */
static void tell_instead(struct queue *q, struct reservation *v, char *instead, const char *text) {
    bool is_same = v->instead && strcmp(v->instead, instead) == 0;
    if (!is_same && *instead) tell(q, v, "reservation_replaced", text);
    free(v->instead);
    v->instead = instead;
}

static void add_stand_ins(struct queue *q, struct reservation *v, const struct reserve_window *r,
                          struct plan_window *one, bool is_next, struct queue_world *w) {
    AUTO(buf_done) struct buf instead = {0}, names = {0};
    char lost[QUEUE_GPU_NAME], other[QUEUE_GPU_NAME], text[168];

    for (uint32_t g = 0; g < q->gpus; g++) {
        if (!reserves_has_gpu(v, q->gpu[g].uuid) || !is_lost(q, &q->gpu[g])) continue;
        one->gpu = stand_in(q, w, &q->gpu[g], r);
        if (one->gpu == PLAN_NONE) continue;
        add_window(w, one);
        queue_gpu_name(&q->gpu[g], lost);
        queue_gpu_name(&q->gpu[one->gpu], other);
        buf_printf(&names, "%sGPU %s instead of GPU %s", names.len ? ", " : "", other, lost);
        buf_printf(&instead, "%s%s", instead.len ? "," : "", q->gpu[one->gpu].uuid);
    }
    if (!is_next) return;
    snprintf(text, sizeof text, "reservation %lld of %.40s has %.90s", (long long)v->id, one->who,
             names.len ? names.s : "");
    char *list = strdup(instead.len ? instead.s : "");
    if (!list) abort();
    tell_instead(q, v, list, text);
}

static void add_reservation(struct queue *q, struct reservation *v, const bool *is_for, struct queue_window_text *t,
                            struct queue_world *w) {
    int64_t now_s = w->of.now_ns / NS_PER_S, ahead_s = now_s + (int64_t)(q->settings->reserve_ahead_h * 3600);
    struct plan_window one = {.id = v->id, .who = t->who};
    struct reserve_window r;
    reserves_holder(v, t->who, sizeof t->who);
    one.user = t->user = users_of(q, is_for, &one.users);
    bool is_next = true;
    for (int64_t at = now_s; reserve_next(&v->when, at, &r) && r.from_s <= ahead_s; at = r.to_s) {
        if (!queue_reserve_stands(q, v, &r, now_s)) continue;
        one.from_ns = r.from_s * NS_PER_S;
        one.to_ns = r.to_s * NS_PER_S;
        for (size_t g = 0; g < q->gpus; g++) {
            one.gpu = (uint32_t)g;
            if (reserves_has_gpu(v, q->gpu[g].uuid)) add_window(w, &one);
        }
        add_stand_ins(q, v, &r, &one, is_next, w);
        is_next = false;
    }
}

void queue_windows_make(struct queue *q, struct queue_world *w) {
    const struct reserves *r = &q->reserves;
    int64_t now_s = w->of.now_ns / NS_PER_S;
    if (!r->count) return;
    w->window_text = calloc(r->count, sizeof *w->window_text);
    if (!w->window_text) abort();
    w->window_texts = r->count;
    bool *is_for = calloc(q->users + 1, sizeof *is_for);
    if (!is_for) abort();
    for (size_t i = 0; i < r->count; i++) {
        if (!r->of[i]->is_stored) continue;
        for (size_t u = 0; u < q->users; u++) is_for[u] = reserves_is_for(r->of[i], q->user[u].name, now_s);
        look(q, r->of[i], is_for, now_s);
        add_reservation(q, r->of[i], is_for, &w->window_text[i], w);
    }
    free(is_for);
    w->of.window = w->window;
}

void queue_windows_done(struct queue_world *w) {
    for (size_t i = 0; i < w->window_texts; i++) free(w->window_text[i].user);
    free(w->window_text);
    free(w->window);
}

/* ---- asked by the API ---- */

bool queue_has_node(struct queue *q, const char *name) {
    queue_gpus_read(q);
    for (size_t i = 0; i < q->gpus; i++)
        if (strcmp(q->gpu[i].node, name) == 0) return true;
    return false;
}

const char *queue_only_node(struct queue *q) {
    queue_gpus_read(q);
    for (size_t i = 1; i < q->gpus; i++)
        if (strcmp(q->gpu[i].node, q->gpu[0].node) != 0) return NULL;
    return q->gpus ? q->gpu[0].node : NULL;
}

void queue_each_gpu(struct queue *q, const char *node, queue_gpu_fn each, void *ctx) {
    queue_gpus_read(q);
    for (size_t i = 0; i < q->gpus; i++)
        if (q->gpu[i].instance < 0 && (!node || strcmp(q->gpu[i].node, node) == 0))
            each(ctx, q->gpu[i].uuid, q->gpu[i].index);
}

void queue_reserves_changed(struct queue *q) { queue_want_pass(q); }
