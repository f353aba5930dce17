/* Who comes before whom. Nothing is sorted that nobody asks for: jobs are dealt out by priority, then those of one priority by
 * user, and users are kept in a heap by what they had. */
#include <math.h>
#include <stdlib.h>

#include "model/plan_own.h"

#define HELD_S 3600.0 /* a GPU that is held, or asked for by an earlier job, counts as so much use */

void order_done(struct order *o) {
    free(o->heap);
    free(o->due);
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
    o->list_at = o->heap_len = o->dues = o->due_at = 0;
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
        if (u->is_past) continue;
        if (u->first != PLAN_NONE && r->job > p->w->job[u->first].id) u->past_s += plan_held(p, r) * HELD_S;
    }
    for (size_t i = 0; i < p->grants; i++) {
        uint32_t user = p->w->job[p->grant[i].job].user;
        struct order_user *u = &o->user[user];
        if (only != PLAN_NONE && only != user) continue;
        if (u->is_past) continue;
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

/* What each would hold if all who hold or want something held the same. */
static double even_part(const struct plan *p) {
    uint32_t users = 0, gpus = 0;
    for (uint32_t u = 0; u < p->w->users; u++) users += p->held[u] > 0 || p->order.user[u].first != PLAN_NONE;
    for (uint32_t g = 0; g < p->w->gpus; g++) gpus += !p->is_out[g];
    return users ? (double)gpus / users : gpus;
}

/* What he holds by jobs that were not behind his first: what went past it does not count against it. */
static double held_before(const struct plan *p, uint32_t u) {
    uint32_t first = p->order.user[u].first;
    double held = 0;
    for (uint32_t i = 0; i < p->w->runs; i++) {
        const struct plan_run *r = &p->w->run[i];
        if (r->user == u && r->job <= p->w->job[first].id) held += plan_held(p, r);
    }
    for (size_t i = 0; i < p->grants; i++)
        if (p->w->job[p->grant[i].job].user == u && p->grant[i].job <= first) held += p->grant_worth[i];
    return held;
}

/* This pass was his turn. */
static bool had_turn(const struct plan *p, uint32_t u) {
    for (size_t i = 0; i < p->grants; i++)
        if (p->grant[i].is_turn && p->w->job[p->grant[i].job].user == u) return true;
    return false;
}

static bool is_due_before(const struct order_user *a, const struct order_user *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->first < b->first;
}

/* His first has waited for too long: it goes before all others, as long as he holds no more than an even part, and once in
 * such a time even so. Without that bound whoever hands in a thousand jobs would have all GPUs as soon as they are old. */
static void due_add(struct plan *p, uint32_t u) {
    struct order *o = &p->order;
    const struct plan_world *w = p->w;
    if (!w->fair_wait_ns || o->user[u].first == PLAN_NONE) return;
    const struct plan_job *j = &w->job[o->user[u].first];
    int64_t due_ns = plan_sum(j->since_ns, w->fair_wait_ns), turn_ns = plan_sum(w->user[u].turn_ns, w->fair_wait_ns);
    if (!j->since_ns || due_ns > w->now_ns) return;
    if (held_before(p, u) + plan_need(p, j) > o->even && (turn_ns > w->now_ns || had_turn(p, u))) return;
    o->user[u].due_ns = due_ns;
    o->due = plan_grow(o->due, &o->due_cap, o->dues + 1, sizeof *o->due);
    uint32_t at = o->dues++;
    for (; at > o->due_at && is_due_before(&o->user[u], &o->user[o->due[at - 1]]); at--) o->due[at] = o->due[at - 1];
    o->due[at] = u;
}

static void class_begin(struct plan *p, struct line_class *c) {
    struct order *o = &p->order;
    o->class = c;
    o->list_at = o->heap_len = o->dues = o->due_at = 0;
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
    if (p->w->fair_wait_ns) o->even = even_part(p);
    for (uint32_t i = 0; i < o->heap_len; i++) due_add(p, o->heap[i]);
}

static bool is_over(const struct order *o) {
    return !o->class || (o->due_at >= o->dues && o->list_at >= o->class->list.count && o->heap_len == 0);
}

uint32_t order_next(struct plan *p) {
    struct order *o = &p->order;
    while (is_over(o)) {
        if (o->priority <= -JOB_PRIORITY_MAX) return PLAN_NONE;
        struct line_class *c = &p->line->class[--o->priority + JOB_PRIORITY_MAX];
        if (c->count) class_begin(p, c);
    }
    o->is_by_due = o->due_at < o->dues;
    o->is_by_list = !o->is_by_due && o->list_at < o->class->list.count;
    if (!o->is_by_due && !o->is_by_list &&
        !o->is_heap) { /* not before: urgent ones have changed what their users had */
        forgive(p, PLAN_NONE);
        for (uint32_t at = o->heap_len / 2; at-- > 0;) sink(p, at);
        o->is_heap = true;
    }
    o->job = o->is_by_due    ? o->user[o->due[o->due_at]].first
             : o->is_by_list ? o->class->list.job[o->list_at]
                             : o->user[o->heap[0]].first;
    return o->job;
}

/* Whether it starts or waits on, the others of this user have their place by what he had. */
static void due_took(struct plan *p, uint32_t user, bool is_given) {
    struct order *o = &p->order;
    struct order_user *u = &o->user[user];
    o->due_at++;
    u->first = lane_next(p, is_given ? o->job : p->line->next[o->job]);
    if (!is_given)
        u->is_past = true;
    else
        due_add(p, user);
    for (uint32_t i = 0; u->first == PLAN_NONE && i < o->heap_len; i++)
        if (o->heap[i] == user) o->heap[i] = o->heap[--o->heap_len]; /* not a heap yet */
}

bool order_is_turn(const struct plan *p) {
    const struct order *o = &p->order;
    return !o->is_by_list && !o->user[p->w->job[o->job].user].is_past;
}

void order_took(struct plan *p, double gpus, bool is_given) {
    struct order *o = &p->order;
    uint32_t user = p->w->job[o->job].user;
    struct order_user *u = &o->user[user];
    bool is_again = is_given && plan_left(p, o->job)->left > 0; /* more of its elements may follow */
    charge(p, user, gpus * HELD_S); /* as it will count when he holds them: the next pass sees the same order */
    if (o->is_by_due) {
        due_took(p, user, is_given);
        return;
    }
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
