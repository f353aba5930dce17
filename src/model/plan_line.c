#include "model/plan_line.h"

#include <stdlib.h>
#include <string.h>

#include "model/plan_own.h"

#define SOON_NS 600000000000LL
#define TABLE_MIN 64

struct plan_line *plan_line_new(const struct plan_policy *policy) {
    struct plan_line *l = calloc(1, sizeof *l);
    if (!l) abort();
    line_clear(l, policy ? policy : plan_policies, false);
    l->is_kept = true;
    l->now_ns = INT64_MIN;
    return l;
}

void plan_line_free(struct plan_line *l) {
    if (!l) return;
    line_done(l);
    free(l);
}

void line_done(struct plan_line *l) {
    void *const all[] = {l->next, l->prev, l->kind_of, l->key, l->is_urgent, l->kind, l->kind_at, l->turn};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free(all[i]);
    for (size_t i = 0; i < ARRAY_LEN(l->class); i++) {
        free(l->class[i].list.job);
        free(l->class[i].lane);
    }
    *l = (struct plan_line){0};
}

static void kinds_clear(struct plan_line *l) {
    l->kinds = 0;
    l->kind_at = plan_grow(l->kind_at, &l->table_cap, TABLE_MIN, sizeof *l->kind_at);
    for (size_t i = 0; i < l->table_cap; i++) l->kind_at[i] = PLAN_NONE;
}

void line_clear(struct plan_line *l, const struct plan_policy *policy, bool is_by_user) {
    l->policy = policy;
    l->is_by_user = is_by_user;
    l->waiting = l->exacts = l->jobs = l->turns = 0;
    kinds_clear(l);
    for (size_t i = 0; i < ARRAY_LEN(l->class); i++) {
        struct line_class *c = &l->class[i];
        c->list.count = c->count = c->lanes = 0;
        c->list.is_mixed = false;
    }
}

/* ---- by what they ask for ---- */

static void kind_chain(struct plan_line *l, uint32_t kind) {
    size_t cap = l->table_cap ? l->table_cap : 1;
    uint32_t *head = &l->kind_at[l->kind[kind].ask.hash % cap];
    l->kind[kind].next = *head;
    *head = kind;
}

static uint32_t kind_find(struct plan_line *l, const struct plan_job *j) {
    struct ask a = ask_of(j, l->is_by_user);
    for (uint32_t i = l->kind_at[a.hash % l->table_cap]; i != PLAN_NONE; i = l->kind[i].next)
        if (ask_is_same(&l->kind[i].ask, &a)) return i;
    l->kind = plan_grow(l->kind, &l->kind_cap, l->kinds + 1u, sizeof *l->kind);
    l->kind[l->kinds++] = (struct kind){.ask = a};
    if (l->kinds * 2u > l->table_cap) {
        l->kind_at = plan_grow(l->kind_at, &l->table_cap, l->table_cap * 2, sizeof *l->kind_at);
        for (size_t i = 0; i < l->table_cap; i++) l->kind_at[i] = PLAN_NONE;
        for (uint32_t i = 0; i + 1 < l->kinds; i++) kind_chain(l, i);
    }
    kind_chain(l, l->kinds - 1);
    return l->kinds - 1;
}

static void kind_join(struct plan_line *l, const struct plan_job *jobs, uint32_t job) {
    uint32_t kind = kind_find(l, &jobs[job]);
    struct kind *k = &l->kind[kind];
    int64_t ns = jobs[job].most_ns ? jobs[job].most_ns : PLAN_NEVER;
    l->kind_of[job] = kind;
    if (!k->waiting++ || ns < k->least_ns) k->least_ns = ns;
}

/* ---- by key ---- */

static bool is_before(const struct plan_line *l, uint32_t a, uint32_t b) {
    return l->key[a] != l->key[b] ? l->key[a] < l->key[b] : a < b;
}

static uint32_t list_place(const struct plan_line *l, const struct line_list *of, uint32_t job) {
    uint32_t from = 0, to = of->count;
    while (from < to) {
        uint32_t mid = (from + to) / 2;
        if (is_before(l, of->job[mid], job))
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* At its place, if the line is kept; else at the end, and all are sorted at once. */
static void list_add(struct plan_line *l, struct line_list *to, uint32_t job) {
    to->job = plan_grow(to->job, &to->cap, to->count + 1u, sizeof *to->job);
    uint32_t at = to->count;
    if (at && is_before(l, job, to->job[at - 1])) {
        if (l->is_kept)
            at = list_place(l, to, job);
        else
            to->is_mixed = true;
    }
    memmove(to->job + at + 1, to->job + at, (to->count++ - at) * sizeof *to->job);
    to->job[at] = job;
}

static void list_drop(struct plan_line *l, struct line_list *from, uint32_t job) {
    uint32_t at = list_place(l, from, job);
    if (at >= from->count || from->job[at] != job) return;
    memmove(from->job + at, from->job + at + 1, (--from->count - at) * sizeof *from->job);
}

/* Merged from runs of two, four, eight: deadlines mostly come in order. */
static void merge(const struct plan_line *l, const uint32_t *from, uint32_t mid, uint32_t count, uint32_t *to) {
    uint32_t a = 0, b = mid;
    for (uint32_t i = 0; i < count; i++) {
        bool is_first = a < mid && (b >= count || !is_before(l, from[b], from[a]));
        to[i] = is_first ? from[a++] : from[b++];
    }
}

const struct line_list *line_sorted(struct plan_line *l, struct line_class *c) {
    struct line_list *list = &c->list;
    if (!list->is_mixed) return list;
    list->job = plan_grow(list->job, &list->cap, 2 * (size_t)list->count, sizeof *list->job);
    uint32_t *from = list->job, *to = list->job + list->count;
    for (uint32_t run = 1; run < list->count; run *= 2) {
        for (uint32_t at = 0; at < list->count; at += 2 * run) {
            uint32_t count = list->count - at < 2 * run ? list->count - at : 2 * run;
            merge(l, from + at, count < run ? count : run, count, to + at);
        }
        uint32_t *was = from;
        from = to;
        to = was;
    }
    if (from != list->job) memcpy(list->job, from, list->count * sizeof *list->job);
    list->is_mixed = false;
    return list;
}

/* ---- by what time makes of them ---- */

/* Its deadline can be kept, and not for long any more. One that cannot be kept gives nobody a right to go first. */
static bool is_urgent(const struct plan_job *j, int64_t now_ns) {
    if (!j->finish_by_ns) return false;
    int64_t slack = j->finish_by_ns - now_ns - j->expect_ns;
    return slack >= 0 && slack <= (j->expect_ns > SOON_NS ? j->expect_ns : SOON_NS);
}

/* When that changes next; PLAN_NEVER: it does not. */
static int64_t next_turn(const struct plan_job *j, int64_t now_ns) {
    int64_t last = j->finish_by_ns - j->expect_ns;
    int64_t first = last - (j->expect_ns > SOON_NS ? j->expect_ns : SOON_NS);
    return now_ns < first ? first : now_ns <= last ? last + 1 : PLAN_NEVER;
}

static void turn_add(struct plan_line *l, struct line_turn t) {
    l->turn = plan_grow(l->turn, &l->turn_cap, l->turns + 1u, sizeof *l->turn);
    uint32_t at = l->turns++;
    for (; at && l->turn[(at - 1) / 2].at_ns > t.at_ns; at = (at - 1) / 2) l->turn[at] = l->turn[(at - 1) / 2];
    l->turn[at] = t;
}

static void turn_drop_first(struct plan_line *l) {
    struct line_turn last = l->turn[--l->turns];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < l->turns; at = child) {
        if (child + 1 < l->turns && l->turn[child + 1].at_ns < l->turn[child].at_ns) child++;
        if (l->turn[child].at_ns >= last.at_ns) break;
        l->turn[at] = l->turn[child];
    }
    l->turn[at] = last;
}

static struct line_class *class_of(struct plan_line *l, const struct plan_job *j) {
    return &l->class[j->priority + JOB_PRIORITY_MAX];
}

static void judge(struct plan_line *l, const struct plan_job *jobs, uint32_t job, int64_t now_ns) {
    bool is = is_urgent(&jobs[job], now_ns);
    if (is == l->is_urgent[job]) return;
    l->is_urgent[job] = is;
    (is ? list_add : list_drop)(l, &class_of(l, &jobs[job])->list, job);
}

void line_set(struct plan_line *l, const struct plan_job *jobs, bool is_by_user, int64_t now_ns) {
    if (!l->is_kept) return;
    if (l->is_by_user != is_by_user) {
        l->is_by_user = is_by_user;
        kinds_clear(l);
        for (uint32_t j = 0; j < l->jobs; j++)
            if (l->kind_of[j] != PLAN_NONE) kind_join(l, jobs, j);
    }
    if (l->policy->order == PLAN_FAIR && now_ns < l->now_ns) { /* a clock that was set back */
        l->turns = 0;
        for (uint32_t j = 0; j < l->jobs; j++)
            if (l->kind_of[j] != PLAN_NONE && jobs[j].finish_by_ns)
                turn_add(l, (struct line_turn){.at_ns = now_ns, .job = j});
    }
    while (l->turns && l->turn[0].at_ns <= now_ns) {
        uint32_t job = l->turn[0].job;
        turn_drop_first(l);
        if (l->kind_of[job] == PLAN_NONE) continue;
        judge(l, jobs, job, now_ns);
        int64_t next = next_turn(&jobs[job], now_ns);
        if (next != PLAN_NEVER) turn_add(l, (struct line_turn){.at_ns = next, .job = job});
    }
    l->now_ns = now_ns;
}

/* ---- in and out ---- */

static void lane_join(struct plan_line *l, struct line_class *c, uint32_t user, uint32_t job) {
    c->lane = plan_grow(c->lane, &c->lane_cap, user + 1u, sizeof *c->lane);
    for (; c->lanes <= user; c->lanes++) c->lane[c->lanes] = (struct line_lane){.first = PLAN_NONE, .last = PLAN_NONE};
    struct line_lane *lane = &c->lane[user];
    uint32_t before = lane->last; /* one that had to wait for another may come later than its number says */
    while (before != PLAN_NONE && before > job) before = l->prev[before];
    uint32_t behind = before == PLAN_NONE ? lane->first : l->next[before];
    l->next[job] = behind;
    l->prev[job] = before;
    *(before == PLAN_NONE ? &lane->first : &l->next[before]) = job;
    *(behind == PLAN_NONE ? &lane->last : &l->prev[behind]) = job;
}

static void places(struct plan_line *l, uint32_t job) {
    l->next = plan_grow(l->next, &l->next_cap, job + 1u, sizeof *l->next);
    l->prev = plan_grow(l->prev, &l->prev_cap, job + 1u, sizeof *l->prev);
    l->key = plan_grow(l->key, &l->key_cap, job + 1u, sizeof *l->key);
    l->is_urgent = plan_grow(l->is_urgent, &l->urgent_cap, job + 1u, sizeof *l->is_urgent);
    l->kind_of = plan_grow(l->kind_of, &l->kind_of_cap, job + 1u, sizeof *l->kind_of);
    for (; l->jobs <= job; l->jobs++) l->kind_of[l->jobs] = PLAN_NONE;
}

static int64_t key_of(const struct plan_line *l, const struct plan_job *j) {
    switch (l->policy->order) {
    case PLAN_ARRIVAL: return 0;
    case PLAN_SHORTEST: return j->expect_ns ? j->expect_ns : PLAN_NEVER;
    case PLAN_FAIR:
    case PLAN_DEADLINE: break;
    }
    return j->finish_by_ns ? j->finish_by_ns : PLAN_NEVER;
}

void line_add(struct plan_line *l, const struct plan_job *jobs, uint32_t job, int64_t now_ns) {
    const struct plan_job *j = &jobs[job];
    struct line_class *c = class_of(l, j);
    places(l, job);
    kind_join(l, jobs, job);
    l->waiting++;
    c->count++;
    l->exacts += j->is_scoped && j->scope_len == (uint32_t)j->gpus;
    l->key[job] = key_of(l, j);
    l->is_urgent[job] = false;
    if (l->policy->order != PLAN_FAIR) {
        list_add(l, &c->list, job);
        return;
    }
    lane_join(l, c, j->user, job);
    if (!l->is_kept)
        judge(l, jobs, job, now_ns);
    else if (j->finish_by_ns)
        turn_add(l, (struct line_turn){.at_ns = INT64_MIN, .job = job});
}

void plan_line_add(struct plan_line *l, const struct plan_job *jobs, uint32_t job) { line_add(l, jobs, job, 0); }

void plan_line_drop(struct plan_line *l, const struct plan_job *jobs, uint32_t job) {
    const struct plan_job *j = &jobs[job];
    struct line_class *c = class_of(l, j);
    if (!line_has(l, job)) return;
    struct kind *k = &l->kind[l->kind_of[job]];
    k->waiting--;
    l->waiting--;
    c->count--;
    l->exacts -= j->is_scoped && j->scope_len == (uint32_t)j->gpus;
    l->kind_of[job] = PLAN_NONE;
    if (l->policy->order != PLAN_FAIR || l->is_urgent[job]) list_drop(l, &c->list, job);
    if (l->policy->order != PLAN_FAIR) return;
    struct line_lane *lane = &c->lane[j->user];
    *(l->prev[job] == PLAN_NONE ? &lane->first : &l->next[l->prev[job]]) = l->next[job];
    *(l->next[job] == PLAN_NONE ? &lane->last : &l->prev[l->next[job]]) = l->prev[job];
}
