/* Who comes before whom. Nothing is sorted that nobody asks for: jobs are dealt out by priority, then those of one priority by
 * user, and users are kept in a heap by what they had. */
#include <math.h>
#include <stdlib.h>

#include "model/plan_own.h"

#define HELD_S 3600.0 /* a GPU that is held, or asked for by an earlier job, counts as so much use */
#define SOON_NS 600000000000LL

void order_done(struct order *o) {
    free(o->next);
    free(o->urgent);
    free(o->heap);
    free(o->user);
}

void order_begin(struct plan *p) {
    struct order *o = &p->order;
    const struct plan_world *w = p->w;
    size_t classes = sizeof o->by_priority / sizeof o->by_priority[0];
    o->next = plan_grow(o->next, &o->jobs_cap, w->jobs, sizeof *o->next);
    o->user = plan_grow(o->user, &o->users_cap, w->users, sizeof *o->user);
    for (size_t i = 0; i < classes; i++) o->by_priority[i] = PLAN_NONE;
    for (uint32_t j = w->jobs; j-- > 0;) { /* from the last, so that each list begins with its first */
        if (!p->left[j]) continue;
        uint32_t *first = &o->by_priority[w->job[j].priority + JOB_PRIORITY_MAX];
        o->next[j] = *first;
        *first = j;
    }
    for (uint32_t u = 0; u < w->users; u++) {
        const struct plan_user *user = &w->user[u];
        o->user[u] = (struct order_user){.charge_s = user->usage_s + p->held[u] * HELD_S, .first = PLAN_NONE};
    }
    o->priority = JOB_PRIORITY_MAX + 1;
    o->urgents = o->urgent_at = o->heap_len = 0;
    o->job = PLAN_NONE;
}

/* Its deadline can be kept, and not for long any more. One that cannot be kept gives nobody a right to go first. */
static bool is_urgent(const struct plan_job *j, int64_t now_ns) {
    if (!j->finish_by_ns) return false;
    int64_t slack = j->finish_by_ns - now_ns - j->expect_ns;
    return slack >= 0 && slack <= (j->expect_ns > SOON_NS ? j->expect_ns : SOON_NS);
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

/* Insertion from behind: deadlines mostly come in order, and few are urgent at once. */
static void urgent_add(struct plan *p, uint32_t j) {
    struct order *o = &p->order;
    o->urgent = plan_grow(o->urgent, &o->urgent_cap, o->urgents + 1, sizeof *o->urgent);
    uint32_t at = o->urgents++;
    for (; at > 0 && p->w->job[o->urgent[at - 1]].finish_by_ns > p->w->job[j].finish_by_ns; at--)
        o->urgent[at] = o->urgent[at - 1];
    o->urgent[at] = j;
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

static void deal(struct plan *p, uint32_t first) {
    struct order *o = &p->order;
    o->urgents = o->urgent_at = o->heap_len = 0;
    for (uint32_t j = first, next; j != PLAN_NONE; j = next) {
        next = o->next[j];
        if (is_urgent(&p->w->job[j], p->w->now_ns)) {
            urgent_add(p, j);
            continue;
        }
        struct order_user *u = &o->user[p->w->job[j].user];
        if (u->first == PLAN_NONE) {
            o->heap = plan_grow(o->heap, &o->heap_cap, o->heap_len + 1, sizeof *o->heap);
            o->heap[o->heap_len++] = p->w->job[j].user;
            u->first = j;
            u->is_past = false;
        } else {
            o->next[u->last] = j;
        }
        u->last = j;
        o->next[j] = PLAN_NONE;
    }
    o->is_heap = false;
}

uint32_t order_next(struct plan *p) {
    struct order *o = &p->order;
    while (o->urgent_at >= o->urgents && o->heap_len == 0) {
        if (o->priority <= -JOB_PRIORITY_MAX) return PLAN_NONE;
        uint32_t first = o->by_priority[--o->priority + JOB_PRIORITY_MAX];
        if (first != PLAN_NONE) deal(p, first);
    }
    o->is_by_urgent = o->urgent_at < o->urgents;
    if (!o->is_by_urgent && !o->is_heap) { /* not before: urgent ones have changed what their users had */
        forgive(p, PLAN_NONE);
        for (uint32_t at = o->heap_len / 2; at-- > 0;) sink(p, at);
        o->is_heap = true;
    }
    o->job = o->is_by_urgent ? o->urgent[o->urgent_at] : o->user[o->heap[0]].first;
    return o->job;
}

void order_took(struct plan *p, double gpus, bool is_given) {
    struct order *o = &p->order;
    uint32_t user = p->w->job[o->job].user;
    struct order_user *u = &o->user[user];
    bool is_again = is_given && p->left[o->job] > 0; /* more of its elements may follow */
    charge(p, user, gpus * HELD_S); /* as it will count when he holds them: the next pass sees the same order */
    if (o->is_by_urgent) {
        if (!is_again) o->urgent_at++;
        return;
    }
    if (!is_again) {
        charge(p, user, u->past_s);
        u->past_s = 0;
        u->first = o->next[o->job];
        if (!is_given) u->is_past = true; /* his first waits on: the others come after it */
        if (u->first != PLAN_NONE && !u->is_past) forgive(p, user);
    }
    if (u->first == PLAN_NONE) o->heap[0] = o->heap[--o->heap_len];
    sink(p, 0);
}
