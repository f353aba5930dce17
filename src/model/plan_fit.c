/* Which GPUs, and from when on. Those of one job are of one node. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan_own.h"

bool plan_is_in(const struct plan *p, const struct shape *s, uint32_t gpu) {
    return p->masks[s->mask + gpu / 64] >> (gpu % 64) & 1;
}

/* ---- which of a node's ---- */

/* Exact jobs have no choice; those with one leave them theirs. */
static void find_wanted(struct plan *p) {
    p->has_wanted = true;
    memset(p->wanted, 0, p->mask_words * sizeof *p->wanted);
    for (uint32_t i = 0; p->line->exacts && i < p->line->jobs; i++) {
        const struct plan_job *j = &p->w->job[i];
        if (!line_has(p->line, i)) continue;
        if (!j->is_scoped || j->scope_len != (uint32_t)j->gpus) continue;
        for (uint32_t k = 0; k < j->scope_len; k++)
            if (j->scope[k] < p->w->gpus) p->wanted[j->scope[k] / 64] |= 1ull << (j->scope[k] % 64);
    }
}

static bool is_wanted(const struct plan *p, uint32_t gpu) { return p->wanted[gpu / 64] >> (gpu % 64) & 1; }

static int by_harm(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    if (x->is_own != y->is_own) return x->is_own ? -1 : 1;
    if (x->is_wanted != y->is_wanted) return x->is_wanted ? 1 : -1;
    if (x->used != y->used) return x->used > y->used ? -1 : 1; /* shares: fill one before the next */
    if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
    if (x->gap != y->gap) return x->gap < y->gap ? -1 : 1; /* a short one goes where only short ones can */
    if (x->warmth != y->warmth) return x->warmth < y->warmth ? -1 : 1;
    return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

static uint64_t shared_bytes(const struct timeline *t, uint32_t gpu, int64_t at) {
    uint64_t sum = 0;
    for (uint32_t i = t->first[gpu]; i != PLAN_NONE; i = t->slot[i].next)
        if (t->slot[i].from <= at && t->slot[i].to > at) sum += t->slot[i].bytes;
    return sum;
}

static struct choice choice_of(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t gpu,
                               int64_t at, int64_t gap) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    double temp = isnan(g->temp_c) ? 50 : g->temp_c;
    return (struct choice){.gpu = gpu,
                           .is_own = plan_is_own(p, t, gpu, s->user, at),
                           .is_wanted = is_wanted(p, gpu),
                           .gap = gap,
                           .memory = g->memory_bytes,
                           .used = s->share ? shared_bytes(t, gpu, at) : 0,
                           .warmth = floor(temp / 5)}; /* in steps: a degree is no reason */
}

static int by_number(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* As they stand in the scope: whoever wrote it meant it so. */
static bool pick_listed(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t node,
                        int64_t at, int64_t ns, struct fit *ret) {
    for (uint32_t i = 0; i < s->scope_len && ret->gpus < s->gpus; i++) {
        uint32_t g = s->scope[i];
        bool is_here = g >= p->node_first[node] && g < p->node_first[node + 1];
        if (is_here && plan_is_in(p, s, g) && plan_gap(p, t, s, g, at) >= ns) ret->gpu[ret->gpus++] = g;
    }
    return ret->gpus == s->gpus;
}

/* Of the node's, those that are there from then on for so long; false: too few. What is only planned does not mind what
 * others want: they may be gone by then. */
static bool pick(struct plan *p, const struct timeline *t, const struct shape *s, uint32_t node, int64_t at, int64_t ns,
                 bool is_now, struct fit *ret) {
    size_t count = 0;
    *ret = (struct fit){.at = at, .node = node};
    if (s->is_listed) return pick_listed(p, t, s, node, at, ns, ret);
    if (!p->has_wanted) find_wanted(p);
    p->choice = plan_grow(p->choice, &p->choice_cap, p->node_first[node + 1] - p->node_first[node], sizeof *p->choice);
    for (uint32_t g = p->node_first[node]; g < p->node_first[node + 1]; g++) {
        int64_t gap = plan_is_in(p, s, g) ? plan_gap(p, t, s, g, at) : 0;
        if (gap <= 0 || gap < ns) continue;
        p->choice[count] = choice_of(p, t, s, g, at, gap);
        p->choice[count++].is_wanted &= is_now;
    }
    if (count < (size_t)s->gpus) return false;
    qsort(p->choice, count, sizeof *p->choice, by_harm);
    for (int i = 0; i < s->gpus; i++) ret->gpu[i] = p->choice[i].gpu;
    ret->gpus = s->gpus;
    qsort(ret->gpu, (size_t)s->gpus, sizeof *ret->gpu, by_number);
    return true;
}

/* ---- which node ---- */

/* The k greatest (or least) of a few values, by insertion: k is small, and so are nodes. */
struct best {
    int64_t of[JOB_GPUS_MAX];
    int k, count;
    bool is_greatest;
};

static void best_offer(struct best *b, int64_t v) {
    int at = b->count < b->k ? b->count++ : b->k;
    for (; at > 0 && (b->is_greatest ? b->of[at - 1] < v : b->of[at - 1] > v); at--)
        if (at < b->k) b->of[at] = b->of[at - 1];
    if (at < b->k) b->of[at] = v;
}

static bool best_kth(const struct best *b, int64_t *ret) {
    if (b->count < b->k) return false;
    *ret = b->of[b->k - 1];
    return true;
}

/* What a node has for it now: for how long, how many to spare, whether others must have some of them. */
struct now {
    int64_t most;
    int spare;
    bool is_harm;
};

static bool node_now(struct plan *p, const struct shape *s, uint32_t n, int64_t ns, struct now *ret) {
    struct best gaps = {.k = s->gpus, .is_greatest = true};
    int fit = 0, unwanted = 0;
    for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) {
        if ((!s->share && !p->is_whole[g]) || !plan_is_in(p, s, g)) continue;
        int64_t gap = plan_gap(p, &p->now, s, g, p->w->now_ns);
        if (gap <= 0) continue;
        best_offer(&gaps, gap);
        fit += gap >= ns;
        unwanted += gap >= ns && !is_wanted(p, g);
    }
    *ret = (struct now){.spare = fit - s->gpus, .is_harm = unwanted < s->gpus};
    return best_kth(&gaps, &ret->most);
}

bool plan_fit_now(struct plan *p, const struct shape *s, int64_t ns, struct fit *ret, int64_t *ret_most) {
    uint32_t node = PLAN_NONE;
    struct now best = {0}, is;
    *ret_most = 0;
    if (!p->has_wanted) find_wanted(p);
    for (uint32_t n = s->node_from; n < s->node_to; n++) {
        if (!s->share && p->node_whole[n] < (uint32_t)s->gpus) continue;
        if (!node_now(p, s, n, ns, &is)) continue;
        if (is.most > *ret_most) *ret_most = is.most;
        if (is.most < ns) continue;
        if (node != PLAN_NONE && (is.is_harm != best.is_harm ? is.is_harm : is.spare >= best.spare)) continue;
        node = n;
        best = is;
    }
    return node != PLAN_NONE && pick(p, &p->now, s, node, p->w->now_ns, ns, true, ret);
}

/* When the node has enough of them for so long, at the same time. Each round the answer can only be later than the k-th of
 * the times at which single ones are there. */
static int64_t node_later(const struct plan *p, const struct timeline *t, const struct shape *s, uint32_t n,
                          int64_t from, int64_t ns, int64_t before) {
    int64_t at = from, kth;
    for (;;) {
        struct best times = {.k = s->gpus};
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++)
            if (plan_is_in(p, s, g)) best_offer(&times, plan_free_from(p, t, s, g, at, ns));
        if (!best_kth(&times, &kth) || kth >= before) return PLAN_NEVER;
        if (kth == at) return at;
        at = kth;
    }
}

static int64_t release_of(const struct plan *p, uint32_t gpu) {
    int64_t last = p->is_out[gpu] ? PLAN_NEVER : p->w->now_ns;
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next)
        if (p->now.slot[i].kind == SLOT_RUN && p->now.slot[i].to > last) last = p->now.slot[i].to;
    return last;
}

/* Sorted by insertion: a node has a few. */
static void find_release(struct plan *p) {
    p->has_release = true;
    p->release = plan_grow(p->release, &p->release_cap, p->w->gpus, sizeof *p->release);
    for (uint32_t n = 0; n < p->nodes; n++)
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) {
            int64_t at = release_of(p, g);
            uint32_t place = g;
            for (; place > p->node_first[n] && p->release[place - 1] > at; place--)
                p->release[place] = p->release[place - 1];
            p->release[place] = at;
        }
}

/* Whether the node could have them before then, whoever they are kept for. */
static bool is_before(const struct plan *p, const struct shape *s, uint32_t n, int64_t then) {
    uint32_t kth = p->node_first[n] + (uint32_t)s->gpus - 1;
    return kth < p->node_first[n + 1] && (s->share || p->release[kth] < then);
}

bool plan_fit_later(struct plan *p, const struct timeline *t, const struct shape *s, int64_t from, int64_t ns,
                    struct fit *ret) {
    int64_t least = PLAN_NEVER;
    uint32_t node = PLAN_NONE;
    if (!p->has_release) find_release(p);
    for (uint32_t n = s->node_from; n < s->node_to; n++) {
        if (!is_before(p, s, n, least)) continue;
        int64_t at = node_later(p, t, s, n, from, ns, least);
        if (at >= least) continue;
        least = at;
        node = n;
    }
    return node != PLAN_NONE && pick(p, t, s, node, least, ns, false, ret);
}

bool plan_fit_some_day(struct plan *p, const struct timeline *t, const struct shape *s, int64_t ns, struct fit *ret) {
    int most = -1;
    *ret = (struct fit){.at = PLAN_NEVER, .node = PLAN_NONE};
    for (uint32_t n = s->node_from; n < s->node_to; n++) {
        int all = 0, now = 0;
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) {
            if (!plan_is_in(p, s, g)) continue;
            all++;
            now += plan_gap(p, t, s, g, p->w->now_ns) >= ns;
        }
        if (all < s->gpus || now <= most) continue;
        most = now;
        ret->node = n;
    }
    if (ret->node == PLAN_NONE) return false;
    struct {
        int64_t at;
        uint32_t gpu;
    } least[JOB_GPUS_MAX] = {0};
    for (uint32_t g = p->node_first[ret->node]; g < p->node_first[ret->node + 1]; g++) {
        if (!plan_is_in(p, s, g)) continue;
        int64_t at = plan_free_from(p, t, s, g, p->w->now_ns, ns);
        int place = ret->gpus < s->gpus ? ret->gpus++ : s->gpus;
        for (; place > 0 && least[place - 1].at > at; place--)
            if (place < s->gpus) least[place] = least[place - 1];
        if (place < s->gpus) {
            least[place].at = at;
            least[place].gpu = g;
        }
    }
    for (int i = 0; i < ret->gpus; i++) ret->gpu[i] = least[i].gpu;
    return true;
}

bool plan_fit_behind(struct plan *p, const struct shape *s, struct fit *ret) {
    int64_t least = PLAN_NEVER, kth;
    uint32_t node = PLAN_NONE;
    for (uint32_t n = s->node_from; n < s->node_to; n++) {
        struct best times = {.k = s->gpus};
        if (p->node_edge[n] >= least) continue;
        for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++)
            if (plan_is_in(p, s, g)) best_offer(&times, p->edge[g]);
        if (!best_kth(&times, &kth) || kth >= least) continue;
        least = kth;
        node = n;
    }
    if (node == PLAN_NONE) return false;
    *ret = (struct fit){.at = least, .node = node};
    for (uint32_t g = p->node_first[node]; g < p->node_first[node + 1] && ret->gpus < s->gpus; g++)
        if (plan_is_in(p, s, g) && p->edge[g] <= least) ret->gpu[ret->gpus++] = g;
    return true;
}
