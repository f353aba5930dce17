#include "model/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "model/plan_own.h"

struct plan *plan_new(void) {
    struct plan *p = calloc(1, sizeof *p);
    if (!p) abort();
    return p;
}

void plan_free(struct plan *p) {
    if (!p) return;
    timeline_done(&p->now);
    timeline_done(&p->later);
    order_done(&p->order);
    line_done(&p->own);
    foresight_free(p->foresight);
    void *const all[] = {p->node_first, p->is_out,  p->wanted,      p->held,   p->left,       p->open,
                         p->edge,       p->shape,   p->reach,       p->masks,  p->choice,     p->grant,
                         p->bar,        p->ask,     p->is_whole,    p->starts, p->node_whole, p->visited,
                         p->node_edge,  p->node_at, p->grant_worth, p->release};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free(all[i]);
    free(p);
}

/* ---- the world as slots ---- */

static void find_nodes(struct plan *p) {
    const struct plan_world *w = p->w;
    p->nodes = 0;
    p->has_parts = false;
    p->node_first = plan_grow(p->node_first, &p->node_cap, w->gpus + 1u, sizeof *p->node_first);
    p->node_at = plan_grow(p->node_at, &p->node_at_cap, w->gpus, sizeof *p->node_at);
    for (uint32_t g = 0; g < w->gpus; g++) {
        if (g == 0 || w->gpu[g].node != w->gpu[g - 1].node) p->node_first[p->nodes++] = g;
        p->node_at[g] = p->nodes - 1;
        p->has_parts |= w->gpu[g].is_part;
    }
    p->node_first[p->nodes] = w->gpus;
}

/* One whose end is overdue by what history says may end any moment, or not: a quarter of its time is added. */
int64_t plan_end(const struct plan_run *r, int64_t now_ns) {
    if (r->end_ns <= 0) return PLAN_NEVER;
    if (r->end_ns > now_ns) return r->end_ns;
    int64_t more = (now_ns - r->start_ns) / 4;
    return plan_sum(now_ns, more > 1000000000 ? more : 1000000000);
}

/* How much of a GPU a share is. */
static double worth_of(const struct plan *p, uint64_t share, uint32_t gpu) {
    uint64_t all = p->w->gpu[gpu].memory_bytes;
    return share && all ? (double)share / (double)all : 1;
}

double plan_held(const struct plan *p, const struct plan_run *r) {
    double sum = 0;
    for (uint16_t k = 0; k < r->gpus; k++)
        if (r->gpu[k] < p->w->gpus) sum += worth_of(p, r->share_bytes, r->gpu[k]);
    return sum;
}

static void add_runs(struct plan *p) {
    const struct plan_world *w = p->w;
    for (uint32_t u = 0; u < w->users; u++) p->held[u] = 0;
    for (uint32_t i = 0; i < w->runs; i++) {
        const struct plan_run *r = &w->run[i];
        for (uint16_t k = 0; k < r->gpus; k++) {
            if (r->gpu[k] >= w->gpus) continue; /* a GPU that is gone */
            timeline_add(&p->now, r->gpu[k],
                         (struct slot){.from = INT64_MIN,
                                       .to = plan_end(r, w->now_ns),
                                       .bytes = r->share_bytes,
                                       .who = i,
                                       .user = r->user,
                                       .kind = SLOT_RUN});
        }
        p->held[r->user] += plan_held(p, r);
    }
    for (uint32_t i = 0; i < w->windows; i++) {
        const struct plan_window *v = &w->window[i];
        if (v->gpu >= w->gpus || v->to_ns <= w->now_ns) continue;
        timeline_add(
            &p->now, v->gpu,
            (struct slot){.from = v->from_ns, .to = v->to_ns, .who = i, .user = PLAN_NONE, .kind = SLOT_WINDOW});
    }
}

/* What passes by itself, if it is young: the memory of a process that has just ended, a card that cools down. Whoever is
 * ahead must not lose the other GPUs to somebody else over it. A process outside the queue may be the rest of a run that
 * ended a moment ago, but not for long. */
static bool may_pass(const struct plan_gpu *g, int64_t now_ns) {
    static const uint32_t passing = BIT(OCCUPANCY_MEMORY) | BIT(OCCUPANCY_BUSY) | BIT(OCCUPANCY_HOT) |
                                    BIT(OCCUPANCY_UNKNOWN) | BIT(OCCUPANCY_FOREIGN);
    int64_t young_ns = g->verdict == OCCUPANCY_FOREIGN ? PLAN_REST_NS : PLAN_SOON_NS;
    return (passing & BIT(g->verdict)) && g->since_ns && now_ns - g->since_ns < young_ns;
}

/* What of it nobody has now, whoever it may be kept for. */
static void note_room(struct plan *p, uint32_t gpu) {
    uint64_t all = p->w->gpu[gpu].memory_bytes, used = 0;
    p->is_whole[gpu] = !p->is_out[gpu];
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next) {
        if (p->now.slot[i].kind != SLOT_RUN) continue;
        p->is_whole[gpu] = false;
        used += p->now.slot[i].bytes ? p->now.slot[i].bytes : all;
    }
    p->whole += p->is_whole[gpu];
    if (!p->is_out[gpu] && used < all && all - used > p->roomiest) p->roomiest = all - used;
}

static bool has_run(const struct plan *p, uint32_t gpu) {
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next)
        if (p->now.slot[i].kind == SLOT_RUN) return true;
    return false;
}

/* Whether somebody has all of it for good. */
static bool is_taken(const struct plan *p, uint32_t gpu) {
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next) {
        const struct slot *s = &p->now.slot[i];
        if (s->kind == SLOT_RUN && p->w->run[s->who].is_endless && !s->bytes) return true;
    }
    return false;
}

static void find_reach(struct plan *p) {
    const struct plan_world *w = p->w;
    p->whole = 0;
    p->roomiest = 0;
    p->reach_most = 0;
    p->memory_least = UINT64_MAX;
    memset(p->reach, 0, p->mask_words * sizeof *p->reach);
    for (uint32_t g = 0; g < w->gpus; g++) {
        const struct plan_gpu *gpu = &w->gpu[g];
        bool is_held = has_run(p, g), is_free = gpu->verdict == OCCUPANCY_FREE;
        bool is_soon = !is_free && (is_held ? gpu->verdict == OCCUPANCY_HOT : may_pass(gpu, w->now_ns));
        p->is_out[g] = !gpu->is_here || (!is_free && !is_soon) || is_taken(p, g);
        if (!p->is_out[g] && is_soon)
            timeline_add(&p->now, g,
                         (struct slot){.from = INT64_MIN,
                                       .to = plan_sum(w->now_ns, PLAN_SOON_NS),
                                       .who = PLAN_NONE,
                                       .user = PLAN_NONE,
                                       .kind = SLOT_RUN});
        note_room(p, g);
    }
}

/* What nobody has, by node. */
static void count_nodes(struct plan *p) {
    p->node_whole = plan_grow(p->node_whole, &p->node_whole_cap, p->nodes, sizeof *p->node_whole);
    for (uint32_t n = 0; n < p->nodes; n++) {
        uint32_t reach = 0;
        p->node_whole[n] = 0;
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) {
            p->node_whole[n] += p->is_whole[g];
            if (p->is_out[g]) continue;
            reach++;
            p->reach[g / 64] |= 1ull << (g % 64);
            if (p->w->gpu[g].memory_bytes < p->memory_least) p->memory_least = p->w->gpu[g].memory_bytes;
        }
        if (reach > p->reach_most) p->reach_most = reach;
    }
}

static uint64_t least_share(const struct plan_world *w) {
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; w->line && k < w->line->kinds; k++) {
        const struct kind *kind = &w->line->kind[k];
        if (kind->waiting && kind->ask.share && kind->ask.share < least) least = kind->ask.share;
    }
    for (uint32_t j = 0; !w->line && j < w->jobs; j++)
        if (w->job[j].share_bytes && w->job[j].share_bytes < least) least = w->job[j].share_bytes;
    return least;
}

static void begin_gpus(struct plan *p, const struct plan_world *w) {
    p->w = w;
    p->grants = p->bars = p->masks_len = 0;
    p->kept = p->placed = 0;
    p->has_wanted = p->has_release = p->is_past = false;
    p->mask_words = w->gpus / 64 + 1;
    p->is_out = plan_grow(p->is_out, &p->out_cap, w->gpus, sizeof *p->is_out);
    p->is_whole = plan_grow(p->is_whole, &p->whole_cap, w->gpus, sizeof *p->is_whole);
    p->wanted = plan_grow(p->wanted, &p->wanted_cap, p->mask_words, sizeof *p->wanted);
    p->reach = plan_grow(p->reach, &p->reach_cap, p->mask_words, sizeof *p->reach);
    p->held = plan_grow(p->held, &p->held_cap, w->users, sizeof *p->held);
    timeline_clear(&p->now, w->gpus);
    find_nodes(p);
    add_runs(p);
    find_reach(p);
    count_nodes(p);
    p->least_share = least_share(w);
}

struct line_left *plan_left(struct plan *p, uint32_t job) {
    struct line_left *l = &p->left[job];
    if (l->pass != p->pass)
        *l = (struct line_left){.pass = p->pass, .left = p->w->job[job].elements, .room = p->w->job[job].room};
    return l;
}

/* New places of an array whose entries name their pass. */
#define GROW_BLANK(array, cap, need)                                                                                   \
    do {                                                                                                               \
        size_t was = cap;                                                                                              \
        array = plan_grow(array, &cap, need, sizeof *(array));                                                         \
        if (cap > was) memset((array) + was, 0, (cap - was) * sizeof *(array));                                        \
    } while (0)

static void begin_jobs(struct plan *p) {
    const struct plan_world *w = p->w;
    p->line = w->line;
    if (!p->line) {
        p->line = &p->own;
        line_clear(p->line, w->policy ? w->policy : plan_policies, w->windows > 0);
        for (uint32_t j = 0; j < w->jobs; j++)
            if (w->job[j].elements) line_add(p->line, w->job, j, w->now_ns);
    }
    line_set(p->line, w->job, w->windows > 0, w->now_ns);
    p->pass++;
    GROW_BLANK(p->left, p->left_cap, w->jobs);
    GROW_BLANK(p->shape, p->shape_cap, p->line->kinds);
    order_begin(p);
}

void plan_begin(struct plan *p, const struct plan_world *w) {
    begin_gpus(p, w);
    begin_jobs(p);
}

/* ---- one job ---- */

double plan_need(const struct plan *p, const struct plan_job *j) {
    return j->share_bytes && p->w->gpus ? worth_of(p, j->share_bytes, 0) : j->gpus;
}

enum plan_bar_to_start plan_try(struct plan *p, uint32_t job, struct shape **ret_shape, struct fit *ret) {
    const struct plan_job *j = &p->w->job[job];
    const struct plan_user *u = &p->w->user[j->user];
    int64_t ns = j->most_ns ? j->most_ns : PLAN_NEVER, most;
    struct shape *s = *ret_shape = plan_shape(p, p->line->kind_of[job]);
    if (u->gpus_max && p->held[j->user] + plan_need(p, j) > u->gpus_max + 1e-9) return START_GPUS;
    if (u->seconds_left <= 0) return START_WEEK;
    if (plan_left(p, job)->room == 0) return START_ROOM;
    if (!s->is_possible) return START_OUT;
    if (s->now_most < ns || (s->share ? s->share > p->roomiest : (uint32_t)s->gpus > p->whole)) return START_BUSY;
    if (plan_fit_now(p, s, ns, ret, &most)) return START_NOW;
    s->now_most = most; /* from here on GPUs only get fewer */
    return START_BUSY;
}

double plan_grant(struct plan *p, uint32_t job, const struct shape *s, const struct fit *f) {
    const struct plan_job *j = &p->w->job[job];
    int64_t ns = j->expect_ns ? j->expect_ns : j->most_ns ? j->most_ns : PLAN_NEVER;
    for (int i = 0; i < f->gpus; i++)
        timeline_add(&p->now, f->gpu[i],
                     (struct slot){.from = p->w->now_ns,
                                   .to = plan_sum(p->w->now_ns, ns),
                                   .bytes = s->share,
                                   .who = job,
                                   .user = j->user,
                                   .kind = SLOT_GIVEN});
    for (int i = 0; i < f->gpus; i++) {
        p->whole -= p->is_whole[f->gpu[i]];
        p->node_whole[f->node] -= p->is_whole[f->gpu[i]];
        p->is_whole[f->gpu[i]] = false;
    }
    double worth = worth_of(p, s->share, f->gpu[0]) * f->gpus;
    p->held[j->user] += worth;
    p->is_past |= p->kept > 0;
    struct line_left *left = plan_left(p, job);
    left->left--;
    if (left->room != UINT32_MAX) left->room--;
    p->changes++;
    p->grant = plan_grow(p->grant, &p->grant_cap, p->grants + 1, sizeof *p->grant);
    p->grant_worth = plan_grow(p->grant_worth, &p->worth_cap, p->grants + 1, sizeof *p->grant_worth);
    struct plan_grant *g = &p->grant[p->grants];
    *g = (struct plan_grant){.job = job, .gpus = (uint16_t)f->gpus, .is_turn = order_is_turn(p)};
    memcpy(g->gpu, f->gpu, (size_t)f->gpus * sizeof *g->gpu);
    p->grant_worth[p->grants++] = worth;
    return worth;
}

/* Nobody goes past: whatever would do for it is kept from now on. */
static void keep_all(struct plan *p, uint32_t job, const struct shape *s) {
    for (uint32_t n = s->node_from; n < s->node_to; n++)
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++)
            if (plan_is_in(p, s, g) && (p->is_whole[g] || p->least_share <= p->roomiest))
                timeline_add(&p->now, g,
                             (struct slot){.from = p->w->now_ns,
                                           .to = PLAN_NEVER,
                                           .who = job,
                                           .user = p->w->job[job].user,
                                           .kind = SLOT_KEPT});
}

void plan_keep(struct plan *p, uint32_t job, struct shape *s) {
    const struct plan_job *j = &p->w->job[job];
    int64_t ns = j->expect_ns ? j->expect_ns : j->most_ns ? j->most_ns : PLAN_NEVER;
    struct fit f;
    if (s->is_kept || p->kept >= PLAN_KEPT_MAX) return;
    if (!p->line->policy->is_backfill) {
        keep_all(p, job, s);
        f.gpus = 0;
    } else if (!plan_fit_later(p, &p->now, s, p->w->now_ns, ns, &f) && !plan_fit_some_day(p, &p->now, s, ns, &f)) {
        return;
    }
    s->is_kept = true;
    p->kept++;
    p->changes++;
    for (int i = 0; i < f.gpus; i++) {
        int64_t from = f.at;
        if (from == PLAN_NEVER) from = plan_free_from(p, &p->now, s, f.gpu[i], p->w->now_ns, ns);
        if (from == PLAN_NEVER) continue; /* somebody has it, or is to have it, until nobody knows when */
        timeline_add(&p->now, f.gpu[i],
                     (struct slot){.from = from,
                                   .to = f.at == PLAN_NEVER ? PLAN_NEVER : plan_sum(from, ns),
                                   .bytes = s->share,
                                   .who = job,
                                   .user = j->user,
                                   .kind = SLOT_KEPT});
    }
}

static bool has_room(const struct plan *p) { return p->whole || p->least_share <= p->roomiest; }

/* Whether one of that kind could start now, whoever of them it is. */
static bool is_open(struct plan *p, uint32_t kind) {
    int64_t least = p->line->kind[kind].least_ns, most;
    struct shape *s = plan_shape(p, kind);
    struct fit f;
    if (!s->is_possible || s->now_most < least) return false;
    if (s->share ? s->share > p->roomiest : (uint32_t)s->gpus > p->whole) return false;
    if (plan_fit_now(p, s, least, &f, &most)) return true;
    s->now_most = most; /* from here on GPUs only get fewer */
    return false;
}

/* Whether anybody may still start: else the rest of the queue need not be looked at, however long it is. Each kind is done
 * with once; the last of those that are not is asked again only after something was given or kept. */
static bool is_any_open(struct plan *p) {
    if (!has_room(p)) return false;
    if (p->opens && p->open_at == p->changes) return true;
    while (p->opens && !is_open(p, p->open[p->opens - 1])) p->opens--;
    p->open_at = p->changes;
    return p->opens > 0;
}

static void open_all(struct plan *p) {
    p->open = plan_grow(p->open, &p->open_cap, p->line->kinds, sizeof *p->open);
    p->opens = 0;
    for (uint32_t k = 0; k < p->line->kinds; k++)
        if (p->line->kind[k].waiting) p->open[p->opens++] = k;
    p->open_at = p->changes - 1;
}

/* Once through the queue. */
static void walk(struct plan *p) {
    struct shape *s;
    struct fit f;
    open_all(p);
    for (uint32_t j; has_room(p) && (j = order_next(p)) != PLAN_NONE;) {
        enum plan_bar_to_start bar = plan_try(p, j, &s, &f);
        double worth = plan_need(p, &p->w->job[j]);
        if (bar == START_NOW) {
            worth = plan_grant(p, j, s, &f);
        } else if (!is_any_open(p)) {
            return;
        } else if (bar == START_BUSY) {
            plan_keep(p, j, s);
        }
        order_took(p, worth, bar == START_NOW);
    }
}

/* Who went past somebody may have made him be kept elsewhere, where he is in nobody's way. */
static void walk_again(struct plan *p) {
    timeline_drop_kept(&p->now, p->w->gpus);
    for (uint32_t i = 0; i < p->line->kinds; i++) {
        p->shape[i].is_kept = false;
        p->shape[i].now_most = PLAN_NEVER;
    }
    p->kept = 0;
    p->is_past = false;
    order_begin(p);
    walk(p);
}

size_t plan_pass(struct plan *p, const struct plan_world *w, const struct plan_grant **ret) {
    p->grants = 0;
    if (w->jobs) {
        begin_gpus(p, w);
        if (has_room(p)) {
            begin_jobs(p);
            walk(p);
            while (p->is_past) walk_again(p);
        }
    }
    *ret = p->grant;
    return p->grants;
}

size_t plan_bars(const struct plan *p, const struct plan_bar **ret) {
    *ret = p->bar;
    return p->bars;
}

void plan_bar_add(struct plan *p, const struct plan_grant *g, uint32_t job, int64_t from_ns, int64_t ns) {
    for (uint16_t i = 0; i < g->gpus; i++) {
        p->bar = plan_grow(p->bar, &p->bar_cap, p->bars + 1, sizeof *p->bar);
        p->bar[p->bars++] = (struct plan_bar){
            .gpu = g->gpu[i], .job = job, .from_ns = from_ns, .to_ns = plan_sum(from_ns, ns ? ns : PLAN_NEVER)};
    }
}
