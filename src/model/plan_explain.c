/* Place, reason and estimate of jobs that wait: a pass that goes on where plan_pass would stop, with a second timeline in
 * which everybody has his time. The first few find holes between others as a pass would let them; those far behind are put
 * after whatever is there, which is cheap and no worse a guess. */
#include <stdlib.h>
#include <string.h>

#include "model/plan_own.h"

#define FORESEEN_MAX 256
#define HOLES_MAX 64       /* that are placed with a look at every hole */
#define PLACED_MAX 5000    /* after these nothing is said */
#define ELEMENTS_AHEAD 256 /* of one array */

static void note_edge(struct plan *p, uint32_t gpu, int64_t to) {
    if (to > p->edge[gpu]) p->edge[gpu] = to;
}

static void note_node(struct plan *p, uint32_t n) {
    p->node_edge[n] = PLAN_NEVER;
    for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++)
        if (!p->is_out[g] && p->edge[g] < p->node_edge[n]) p->node_edge[n] = p->edge[g];
}

static void later_begin(struct plan *p) {
    timeline_copy(&p->later, &p->now, p->w->gpus);
    p->edge = plan_grow(p->edge, &p->edge_cap, p->w->gpus, sizeof *p->edge);
    for (uint32_t g = 0; g < p->w->gpus; g++) {
        p->edge[g] = p->w->now_ns;
        for (uint32_t i = p->later.first[g]; i != PLAN_NONE; i = p->later.slot[i].next)
            note_edge(p, g, p->later.slot[i].to);
    }
    p->node_edge = plan_grow(p->node_edge, &p->node_edge_cap, p->nodes, sizeof *p->node_edge);
    for (uint32_t n = 0; n < p->nodes; n++) note_node(p, n);
}

static int64_t length_of(const struct plan_job *j) {
    return j->expect_ns ? j->expect_ns : j->most_ns ? j->most_ns : PLAN_NEVER;
}

static void place(struct plan *p, uint32_t job, const struct shape *s, const struct fit *f) {
    const struct plan_job *j = &p->w->job[job];
    int64_t to = plan_sum(f->at, length_of(j));
    for (int i = 0; i < f->gpus; i++) {
        timeline_add(
            &p->later, f->gpu[i],
            (struct slot){.from = f->at, .to = to, .bytes = s->share, .who = job, .user = j->user, .kind = SLOT_KEPT});
        note_edge(p, f->gpu[i], to);
    }
    note_node(p, f->node);
    p->placed++;
}

/* When enough of what the user holds, or is to hold, is over for him to have more. */
static int64_t user_room(const struct plan *p, const struct plan_job *j) {
    const struct plan_user *u = &p->w->user[j->user];
    const struct timeline *t = &p->later;
    int64_t at = p->w->now_ns;
    if (!u->gpus_max) return at;
    for (;;) {
        double held = plan_need(p, j);
        int64_t next = PLAN_NEVER;
        for (uint32_t g = 0; g < p->w->gpus; g++)
            for (uint32_t i = t->first[g]; i != PLAN_NONE; i = t->slot[i].next) {
                const struct slot *o = &t->slot[i];
                if (o->user != j->user || o->kind == SLOT_WINDOW || o->to <= at) continue;
                held += o->bytes ? (double)o->bytes / (double)(p->w->gpu[g].memory_bytes + 1) : 1;
                if (o->to < next) next = o->to;
            }
        if (held <= u->gpus_max + 1e-9) return at;
        if (next == PLAN_NEVER) return PLAN_NEVER;
        at = next;
    }
}

/* When the first of its own elements ends that run. */
static int64_t own_room(const struct plan *p, uint32_t job) {
    int64_t least = PLAN_NEVER;
    for (uint32_t i = 0; i < p->w->runs; i++) {
        const struct plan_run *r = &p->w->run[i];
        if (r->job == p->w->job[job].id && r->end_ns > p->w->now_ns && r->end_ns < least) least = r->end_ns;
    }
    return least;
}

/* One element in the second timeline. Its start, or PLAN_NEVER. */
static int64_t estimate(struct plan *p, uint32_t job, const struct shape *s, enum plan_bar_to_start bar) {
    const struct plan_job *j = &p->w->job[job];
    struct fit f;
    if (!s->is_possible || bar == START_WEEK || p->placed >= PLACED_MAX) return PLAN_NEVER;
    bool is_near = p->placed < HOLES_MAX;
    int64_t from = bar == START_ROOM ? own_room(p, job) : is_near ? user_room(p, j) : p->w->now_ns;
    if (from == PLAN_NEVER) return PLAN_NEVER;
    int64_t ns = j->most_ns ? j->most_ns : PLAN_NEVER;
    bool is_found = is_near ? plan_fit_later(p, &p->later, s, from, ns, &f) : plan_fit_behind(p, s, &f);
    if (!is_found) return PLAN_NEVER;
    if (f.at < from) f.at = from;
    place(p, job, s, &f);
    return f.at;
}

/* Told what the pass would do with its next element. */
static void explain(struct plan *p, uint32_t job, const struct shape *s, enum plan_bar_to_start bar,
                    struct plan_reason *ret) {
    int64_t at = estimate(p, job, s, bar);
    const struct line_left *left = plan_left(p, job);
    uint32_t more = left->left < left->room ? left->left : left->room;
    if (more > ELEMENTS_AHEAD) more = ELEMENTS_AHEAD;
    for (uint32_t i = 1; i < more && bar == START_BUSY && at != PLAN_NEVER; i++) estimate(p, job, s, bar);
    if (!ret || ret->is_now) return;
    if (at != PLAN_NEVER) ret->start_ns = at;
    plan_why(p, job, s, bar, ret);
    plan_sooner(p, job, bar, ret);
}

static int by_number(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* By when a card that is throttled for heat is taken to have cooled; now, where there is none. */
static int64_t cool_ns(const struct plan *p) {
    int64_t at = p->w->now_ns;
    for (uint32_t g = 0; g < p->w->gpus; g++) {
        const struct plan_gpu *gpu = &p->w->gpu[g];
        int64_t by = gpu->verdict == OCCUPANCY_HOT && !p->is_out[g] ? gpu->since_ns + PLAN_SOON_NS : 0;
        if (by > at) at = by;
    }
    return at;
}

/* Better word for those who are near: the others keep what was guessed. */
static void foresee(struct plan *p, uint32_t count, struct plan_reason *ret) {
    p->starts = plan_grow(p->starts, &p->starts_cap, p->w->jobs, sizeof *p->starts);
    for (uint32_t i = 0; i < count; i++) p->starts[p->visited[i]] = PLAN_NEVER;
    if (count) qsort(p->visited, count, sizeof *p->visited, by_number);
    plan_foresee(p, p->visited, count, p->starts);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = p->visited[i];
        if (p->ask[j] == PLAN_NONE || ret[p->ask[j]].is_now) continue;
        ret[p->ask[j]].start_ns = p->starts[j] == PLAN_NEVER ? 0 : p->starts[j];
        if (p->starts[j] <= p->w->now_ns) ret[p->ask[j]].start_ns = cool_ns(p); /* it waits, so it is not now */
    }
}

void plan_explain(struct plan *p, const struct plan_world *w, const uint32_t *jobs, size_t count,
                  struct plan_reason *ret) {
    uint32_t place_now = 0;
    struct shape *s;
    struct fit f;
    size_t left = count;
    plan_begin(p, w);
    later_begin(p);
    p->visited = plan_grow(p->visited, &p->visited_cap, FORESEEN_MAX, sizeof *p->visited);
    p->ask = plan_grow(p->ask, &p->ask_cap, w->jobs, sizeof *p->ask);
    for (uint32_t j = 0; j < w->jobs; j++) p->ask[j] = PLAN_NONE;
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct plan_reason){0};
        p->ask[jobs[i]] = (uint32_t)i;
    }
    for (uint32_t j; left > 0 && (j = order_next(p)) != PLAN_NONE;) {
        struct plan_reason *r = p->ask[j] == PLAN_NONE ? NULL : &ret[p->ask[j]];
        bool is_first = plan_left(p, j)->left == w->job[j].elements;
        enum plan_bar_to_start bar = plan_try(p, j, &s, &f);
        double worth = plan_need(p, &w->job[j]);
        if (is_first) place_now++;
        if (r && is_first) r->place = place_now;
        if (is_first && place_now <= FORESEEN_MAX) p->visited[place_now - 1] = j;
        if (bar == START_NOW) {
            if (r) {
                r->is_now = true;
                r->start_ns = w->now_ns;
                strcpy(r->why, "it starts now");
            }
            place(p, j, s, &f);
            worth = plan_grant(p, j, s, &f);
        } else {
            explain(p, j, s, bar, r);
            if (bar == START_BUSY) plan_keep(p, j, s);
        }
        bool is_again = bar == START_NOW && plan_left(p, j)->left > 0;
        if (r && !is_again) left--;
        order_took(p, worth, bar == START_NOW);
    }
    foresee(p, place_now < FORESEEN_MAX ? place_now : FORESEEN_MAX, ret);
}
