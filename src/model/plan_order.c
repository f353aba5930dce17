/* Who comes before whom. Nothing is sorted that nobody asks for: jobs are dealt out by priority, then those of one priority by
 * user, and users are kept in a heap by what they had. */
#include <math.h>
#include <stdlib.h>

#include "model/plan_own.h"

#define HELD_S 3600.0 /* a GPU that is held, or asked for by an earlier job, counts as so much use */

void order_done(struct order *o) {
    free(o->heap);
    free(o->user);
}

void order_begin(struct plan *p) {
    struct order *o = &p->order;
    const struct plan_world *w = p->w;
    o->user = plan_grow(o->user, &o->users_cap, w->users, sizeof *o->user);
    for (uint32_t u = 0; u < w->users; u++) {
        const struct plan_user *user = &w->user[u];
        o->user[u] = (struct order_user){.charge_s = user->usage_s + p->held[u] * HELD_S, .first = PLAN_NONE};
    }
    o->priority = JOB_PRIORITY_MAX + 1;
    o->class = NULL;
    o->list_at = o->heap_len = 0;
    o->job = PLAN_NONE;
}

static void charge(struct plan *p, uint32_t u, double s) {
    struct order_user *user = &p->order.user[u];
    double weight = p->w->user[u].weight > 0 ? p->w->user[u].weight : 1;
    user->charge_s += s;
    user->step = floor(user->charge_s / weight / PLAN_FAIR_STEP_S);
}

static bool is_before(const struct order *o, uint32_t a, uint32_t b) {
    const struct order_user *x = &o->user[a], *y = &o->user[b];
    return x->step != y->step ? x->step < y->step : x->first < y->first;
}

static void sink(struct plan *p, uint32_t at) {
    struct order *o = &p->order;
    for (;;) {
        uint32_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < o->heap_len && is_before(o, o->heap[left], o->heap[least])) least = left;
        if (right < o->heap_len && is_before(o, o->heap[right], o->heap[least])) least = right;
        if (least == at) return;
        uint32_t u = o->heap[at];
        o->heap[at] = o->heap[least];
        o->heap[least] = u;
        at = least;
    }
}

/* What a user's later jobs got by going past his first does not count against that one: else it would lose its place to
 * others because it let them by. */
static void forgive(struct plan *p, uint32_t only) {
    struct order *o = &p->order;
    for (uint32_t i = 0; i < o->heap_len; i++)
        if (only == PLAN_NONE || only == o->heap[i]) o->user[o->heap[i]].past_s = 0;
    for (uint32_t i = 0; i < p->w->runs; i++) {
        const struct plan_run *r = &p->w->run[i];
        struct order_user *u = &o->user[r->user];
        if (only != PLAN_NONE && only != r->user) continue;
        if (u->first != PLAN_NONE && r->job > p->w->job[u->first].id) u->past_s += plan_held(p, r) * HELD_S;
    }
    for (size_t i = 0; i < p->grants; i++) {
        uint32_t user = p->w->job[p->grant[i].job].user;
        struct order_user *u = &o->user[user];
        if (only != PLAN_NONE && only != user) continue;
        if (u->first != PLAN_NONE && p->grant[i].job > u->first) u->past_s += p->grant_worth[i] * HELD_S;
    }
    for (uint32_t i = 0; i < o->heap_len; i++)
        if (only == PLAN_NONE || only == o->heap[i]) charge(p, o->heap[i], -o->user[o->heap[i]].past_s);
}

/* From j on, the first of a lane that has its turn there. */
static uint32_t lane_next(struct plan *p, uint32_t j) {
    while (j != PLAN_NONE && (p->line->is_urgent[j] || !plan_left(p, j)->left)) j = p->line->next[j];
    return j;
}

static void list_skip(struct plan *p) {
    struct order *o = &p->order;
    const struct line_list *l = &o->class->list;
    while (o->list_at < l->count && !plan_left(p, l->job[o->list_at])->left) o->list_at++;
}

static void class_begin(struct plan *p, struct line_class *c) {
    struct order *o = &p->order;
    o->class = c;
    o->list_at = o->heap_len = 0;
    o->is_heap = false;
    line_sorted(p->line, c);
    list_skip(p);
    if (p->line->policy->order != PLAN_FAIR) return;
    for (uint32_t u = 0; u < c->lanes && u < p->w->users; u++) {
        struct order_user *user = &o->user[u];
        user->first = lane_next(p, c->lane[u].first);
        user->is_past = false;
        if (user->first == PLAN_NONE) continue;
        o->heap = plan_grow(o->heap, &o->heap_cap, o->heap_len + 1, sizeof *o->heap);
        o->heap[o->heap_len++] = u;
    }
}

static bool is_over(const struct order *o) {
    return !o->class || (o->list_at >= o->class->list.count && o->heap_len == 0);
}

uint32_t order_next(struct plan *p) {
    struct order *o = &p->order;
    while (is_over(o)) {
        if (o->priority <= -JOB_PRIORITY_MAX) return PLAN_NONE;
        struct line_class *c = &p->line->class[--o->priority + JOB_PRIORITY_MAX];
        if (c->count) class_begin(p, c);
    }
    o->is_by_list = o->list_at < o->class->list.count;
    if (!o->is_by_list && !o->is_heap) { /* not before: urgent ones have changed what their users had */
        forgive(p, PLAN_NONE);
        for (uint32_t at = o->heap_len / 2; at-- > 0;) sink(p, at);
        o->is_heap = true;
    }
    o->job = o->is_by_list ? o->class->list.job[o->list_at] : o->user[o->heap[0]].first;
    return o->job;
}

void order_took(struct plan *p, double gpus, bool is_given) {
    struct order *o = &p->order;
    uint32_t user = p->w->job[o->job].user;
    struct order_user *u = &o->user[user];
    bool is_again = is_given && plan_left(p, o->job)->left > 0; /* more of its elements may follow */
    charge(p, user, gpus * HELD_S); /* as it will count when he holds them: the next pass sees the same order */
    if (o->is_by_list) {
        if (is_again) return;
        o->list_at++;
        list_skip(p);
        return;
    }
    if (!is_again) {
        charge(p, user, u->past_s);
        u->past_s = 0;
        u->first = lane_next(p, p->line->next[o->job]);
        if (!is_given) u->is_past = true; /* his first waits on: the others come after it */
        if (u->first != PLAN_NONE && !u->is_past) forgive(p, user);
    }
    if (u->first == PLAN_NONE) o->heap[0] = o->heap[--o->heap_len];
    sink(p, 0);
}
