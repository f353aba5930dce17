/* Why a job waits and what would start it now, in words. What a sentence says is asked of the same functions that a pass asks:
 * a hint that begins with "now" is one that a pass would grant. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "model/duration.h"
#include "model/plan_own.h"

#define MINUTE_NS 60000000000LL

static const char *s_of(int n) { return n == 1 ? "" : "s"; }

static void gpu_name(const struct plan *p, uint32_t gpu, char *ret, size_t room) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    int n = g->is_part ? snprintf(ret, room, "GPU %d:%d", g->index, g->part) : snprintf(ret, room, "GPU %d", g->index);
    if (p->nodes > 1 && g->node_name && n > 0 && (size_t)n < room)
        snprintf(ret + n, room - (size_t)n, " of %.40s", g->node_name);
}

static const struct slot *taken_by(const struct plan *p, uint32_t gpu, enum slot_kind kind) {
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next) {
        const struct slot *o = &p->now.slot[i];
        if (o->kind == kind && o->to > p->w->now_ns && (kind != SLOT_RUN || o->who != PLAN_NONE)) return o;
    }
    return NULL;
}

/* ---- why ---- */

/* "is reserved for ada (reservation 3), from 40 min on" */
static void window_text(const struct plan *p, const struct slot *s, char *ret, size_t room) {
    const struct plan_window *w = &p->w->window[s->who];
    bool is_now = s->from <= p->w->now_ns;
    char age[32];
    number_age(is_now ? s->to - p->w->now_ns : s->from - p->w->now_ns, age, sizeof age);
    snprintf(ret, room, "is reserved for %.40s (reservation %lld) %s %s", w->who ? w->who : "somebody",
             (long long)w->id, is_now ? "for another" : "in", age);
}

/* The window that keeps the user from a GPU: the one that goes on, or that begins first. */
static const struct slot *window_of(const struct plan *p, uint32_t gpu, uint32_t user) {
    const struct slot *first = NULL;
    for (uint32_t i = p->now.first[gpu]; i != PLAN_NONE; i = p->now.slot[i].next) {
        const struct slot *o = &p->now.slot[i];
        if (o->kind != SLOT_WINDOW || o->to <= p->w->now_ns || plan_is_his(p, o, user)) continue;
        if (!first || o->from < first->from) first = o;
    }
    return first;
}

/* What is the matter with one GPU, as the end of a sentence about it. */
static void matter_of(const struct plan *p, uint32_t gpu, uint32_t user, char *ret, size_t room) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    const struct slot *run = taken_by(p, gpu, SLOT_RUN), *given = taken_by(p, gpu, SLOT_GIVEN);
    char age[32];
    if (!g->is_here) {
        snprintf(ret, room, "is not connected");
    } else if (run) {
        const struct plan_run *r = &p->w->run[run->who];
        number_age(run->to == PLAN_NEVER ? 0 : run->to - p->w->now_ns, age, sizeof age);
        snprintf(ret, room, "is held by job %lld of %s%s%s", (long long)r->job, p->w->user[r->user].name,
                 run->to == PLAN_NEVER ? "" : " for about ", run->to == PLAN_NEVER ? "" : age);
    } else if (given) {
        snprintf(ret, room, "is given to job %lld now", (long long)p->w->job[given->who].id);
    } else if (g->verdict == OCCUPANCY_FOREIGN && g->user && g->user[0]) {
        snprintf(ret, room, "is used by %s outside the queue", g->user);
    } else if (g->verdict != OCCUPANCY_FREE) {
        snprintf(ret, room, "%s", g->note ? g->note : occupancy_text(g->verdict));
    } else {
        const struct slot *kept = taken_by(p, gpu, SLOT_KEPT);
        const struct slot *window = window_of(p, gpu, user);
        if (kept && kept->who < p->w->jobs)
            snprintf(ret, room, "is kept for job %lld, which is ahead of it", (long long)p->w->job[kept->who].id);
        else if (window)
            window_text(p, window, ret, room);
        else
            snprintf(ret, room, "is free");
    }
}

/* How many of the GPUs that would do are in which state, on the node that has most of them free. */
struct count {
    uint32_t node;
    int all, free, held, serving, foreign, hot, unclear, away, reserved;
    uint32_t kept_for;         /* a job that free ones are kept for; PLAN_NONE: none is */
    const struct slot *window; /* that keeps him from the first of those that are reserved */
};

static bool would_do(const struct plan *p, const struct plan_job *j, uint32_t gpu) {
    const struct plan_gpu *g = &p->w->gpu[gpu];
    bool is_in = !j->is_scoped;
    for (uint32_t i = 0; i < j->scope_len && !is_in; i++) is_in = j->scope[i] == gpu;
    return is_in && g->memory_bytes >= j->memory_bytes && g->memory_bytes >= j->share_bytes &&
           (j->node == PLAN_NONE || j->node == g->node) &&
           plan_is_for(p, gpu, j->gpus, j->memory_bytes | j->share_bytes, j->is_scoped);
}

/* People keep it, now or before this job is surely over. */
static bool is_kept_from(const struct plan *p, const struct plan_job *j, uint32_t gpu, struct count *c) {
    const struct slot *w = p->w->windows ? window_of(p, gpu, j->user) : NULL;
    if (!w || (j->most_ns && w->from >= plan_sum(p->w->now_ns, j->most_ns))) return false;
    if (!c->window) c->window = w;
    return true;
}

static struct count count_node(const struct plan *p, const struct plan_job *j, uint32_t n) {
    struct count c = {.node = n, .kept_for = PLAN_NONE};
    for (uint32_t g = p->node_first[n]; g < p->node_first[n + 1]; g++) {
        const struct plan_gpu *gpu = &p->w->gpu[g];
        if (!would_do(p, j, g)) continue;
        const struct slot *run = taken_by(p, g, SLOT_RUN), *kept = taken_by(p, g, SLOT_KEPT);
        c.all++;
        if (!gpu->is_here)
            c.away++;
        else if (run && run->who != PLAN_NONE && p->w->run[run->who].is_endless)
            c.serving++;
        else if (run || taken_by(p, g, SLOT_GIVEN))
            c.held++;
        else if (gpu->verdict == OCCUPANCY_FREE && is_kept_from(p, j, g, &c))
            c.reserved++;
        else if (gpu->verdict == OCCUPANCY_FREE)
            c.free++;
        else if (gpu->verdict == OCCUPANCY_FOREIGN || gpu->verdict == OCCUPANCY_STRAY)
            c.foreign++;
        else if (gpu->verdict == OCCUPANCY_HOT)
            c.hot++;
        else if (gpu->verdict == OCCUPANCY_MEMORY || gpu->verdict == OCCUPANCY_BUSY ||
                 gpu->verdict == OCCUPANCY_UNKNOWN)
            c.unclear++;
        else
            c.away++;
        if (!run && kept && c.kept_for == PLAN_NONE) c.kept_for = kept->who;
    }
    return c;
}

static struct count count_best(const struct plan *p, const struct plan_job *j) {
    struct count best = {.kept_for = PLAN_NONE};
    for (uint32_t n = 0; n < p->nodes; n++) {
        struct count c = count_node(p, j, n);
        if (c.free > best.free || (c.free == best.free && c.all > best.all)) best = c;
    }
    return best;
}

static void why_few(const struct plan *p, const struct plan_job *j, const struct count *c, char *ret, size_t room) {
    int n = 0;
    if (c->all < j->gpus) {
        snprintf(ret, room, "%d GPU%s that would do %s needed on one machine, and there %s %d", j->gpus, s_of(j->gpus),
                 j->gpus == 1 ? "is" : "are", c->all == 1 ? "is" : "are", c->all);
        return;
    }
    n = snprintf(ret, room, "%d GPU%s %s needed and %d of %d %s free", j->gpus, s_of(j->gpus),
                 j->gpus == 1 ? "is" : "are", c->free, c->all, c->free == 1 ? "is" : "are");
    const struct {
        int n;
        const char *what;
    } others[] = {
        {c->held,     "held by jobs"          },
        {c->serving,  "kept by services"      },
        {c->foreign,  "used outside the queue"},
        {c->hot,      "throttled for heat"    },
        {c->unclear,  "not known to be free"  },
        {c->away,     "out of service"        },
        {c->reserved, "reserved"              },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (others[i].n && n > 0 && (size_t)n < room)
            n += snprintf(ret + n, room - (size_t)n, "%s %d %s", strchr(ret, ';') ? "," : ";", others[i].n,
                          others[i].what);
    if (c->window && n > 0 && (size_t)n < room) {
        const struct plan_window *w = &p->w->window[c->window->who];
        bool is_now = c->window->from <= p->w->now_ns;
        char age[32];
        number_age((is_now ? c->window->to : c->window->from) - p->w->now_ns, age, sizeof age);
        snprintf(ret + n, room - (size_t)n, " for %.40s (reservation %lld, %s %s)", w->who ? w->who : "somebody",
                 (long long)w->id, is_now ? "for another" : "in", age);
    }
}

static void why_busy(struct plan *p, uint32_t job, char *ret, size_t room) {
    const struct plan_job *j = &p->w->job[job];
    struct count c = count_best(p, j);
    char name[64], matter[120];
    if (j->is_scoped && j->scope_len == (uint32_t)j->gpus &&
        j->scope_len > 0) { /* just these: name the first that is not */
        for (uint32_t i = 0; i < j->scope_len; i++) {
            if (j->scope[i] >= p->w->gpus) continue;
            matter_of(p, j->scope[i], j->user, matter, sizeof matter);
            if (strcmp(matter, "is free") == 0) continue;
            gpu_name(p, j->scope[i], name, sizeof name);
            snprintf(ret, room, "%s %s", name, matter);
            return;
        }
    }
    if (c.free < j->gpus || c.kept_for == PLAN_NONE || c.kept_for >= p->w->jobs) {
        if (j->share_bytes && c.free + c.held > 0)
            snprintf(ret, room, "no GPU has so much memory left to share");
        else
            why_few(p, j, &c, ret, room);
        return;
    }
    const struct plan_job *ahead = &p->w->job[c.kept_for];
    snprintf(ret, room, "%d GPU%s %s free, but kept for job %lld, which is ahead of it and needs %d", c.free,
             s_of(c.free), c.free == 1 ? "is" : "are", (long long)ahead->id, ahead->gpus);
}

void plan_why(struct plan *p, uint32_t job, const struct shape *s, enum plan_bar_to_start bar,
              struct plan_reason *ret) {
    const struct plan_job *j = &p->w->job[job];
    const struct plan_user *u = &p->w->user[j->user];
    (void)s;
    switch (bar) {
    case START_NOW: snprintf(ret->why, sizeof ret->why, "it starts now"); return;
    case START_GPUS:
        if (j->gpus > u->gpus_max)
            snprintf(ret->why, sizeof ret->why, "it needs %d GPUs, and %s may have %d at once", j->gpus, u->name,
                     u->gpus_max);
        else
            snprintf(ret->why, sizeof ret->why, "%s may have %d GPU%s at once and has %.3g", u->name, u->gpus_max,
                     s_of(u->gpus_max), p->held[j->user]);
        return;
    case START_WEEK:
        snprintf(ret->why, sizeof ret->why, "%s has used the %.4g GPU hours of this week", u->name,
                 u->seconds_max / 3600);
        return;
    case START_ROOM: snprintf(ret->why, sizeof ret->why, "as many of its elements run as may at once"); return;
    case START_OUT:
    case START_BUSY: why_busy(p, job, ret->why, sizeof ret->why); return;
    }
}

/* ---- sooner ---- */

/* Whether it would start now if it asked for this instead. */
static bool would_start(struct plan *p, const struct plan_job *j, struct fit *f, int64_t *most) {
    const struct plan_user *u = &p->w->user[j->user];
    *most = 0;
    if (u->gpus_max && p->held[j->user] + plan_need(p, j) > u->gpus_max + 1e-9) return false;
    struct shape s = plan_shape_try(p, j);
    return s.is_possible && plan_fit_now(p, &s, j->most_ns ? j->most_ns : PLAN_NEVER, f, most);
}

static bool with_limit(struct plan *p, const struct plan_job *j, char *ret, size_t room) {
    struct plan_job other = *j;
    struct fit f;
    int64_t most;
    char limit[DURATION_TEXT];
    if (j->finish_by_ns && !j->expect_ns) return false; /* a limit would move it in the queue, too */
    if (would_start(p, j, &f, &most) || most < MINUTE_NS || most == PLAN_NEVER) return false;
    other.most_ns = most - most % MINUTE_NS;
    if (!would_start(p, &other, &f, &most)) return false;
    duration_text(other.most_ns, limit);
    snprintf(ret, room, "now with a time limit of %s or less", limit);
    return true;
}

static bool with_fewer(struct plan *p, const struct plan_job *j, char *ret, size_t room) {
    struct plan_job other = *j;
    struct fit f;
    int64_t most;
    if (j->share_bytes) return false;
    for (other.gpus = j->gpus - 1; other.gpus > 0; other.gpus--)
        if (would_start(p, &other, &f, &most)) {
            snprintf(ret, room, "now with %d GPU%s instead of %d", other.gpus, s_of(other.gpus), j->gpus);
            return true;
        }
    return false;
}

static bool with_others(struct plan *p, const struct plan_job *j, char *ret, size_t room) {
    struct plan_job other = *j;
    struct fit f;
    int64_t most;
    char name[64], was[64];
    if (!j->is_scoped) return false;
    other.is_scoped = other.is_listed = false;
    other.scope_len = 0;
    if (!would_start(p, &other, &f, &most)) return false;
    gpu_name(p, f.gpu[0], name, sizeof name);
    if (j->gpus == 1 && j->scope_len == 1 && j->scope[0] < p->w->gpus) {
        gpu_name(p, j->scope[0], was, sizeof was);
        snprintf(ret, room, "now on %s instead of %s", name, was);
    } else if (j->gpus == 1) {
        snprintf(ret, room, "now on %s, which is not among those it asks for", name);
    } else {
        snprintf(ret, room, "now with any %d GPUs instead of these", j->gpus);
    }
    return true;
}

/* The most memory below what it asks for that would do. */
static bool with_less(struct plan *p, const struct plan_job *j, char *ret, size_t room) {
    struct plan_job other = *j;
    struct fit f;
    int64_t most;
    char less[32], was[32];
    if (!j->memory_bytes) return false;
    other.memory_bytes = 0;
    if (!would_start(p, &other, &f, &most)) return false;
    for (uint32_t g = 0; g < p->w->gpus; g++) {
        uint64_t has = p->w->gpu[g].memory_bytes;
        struct plan_job larger = *j;
        larger.memory_bytes = has;
        if (has > other.memory_bytes && has < j->memory_bytes && would_start(p, &larger, &f, &most))
            other.memory_bytes = has;
    }
    if (!other.memory_bytes) return false;
    number_bytes((double)other.memory_bytes, less, sizeof less);
    number_bytes((double)j->memory_bytes, was, sizeof was);
    snprintf(ret, room, "now with GPUs of %s instead of %s", less, was);
    return true;
}

void plan_sooner(struct plan *p, uint32_t job, enum plan_bar_to_start bar, struct plan_reason *ret) {
    const struct plan_job *j = &p->w->job[job];
    bool is_for_gpus = bar == START_BUSY || bar == START_OUT || bar == START_GPUS;
    if (!is_for_gpus || p->w->user[j->user].seconds_left <= 0 || plan_left(p, job)->room == 0) return;
    if (bar == START_BUSY && with_limit(p, j, ret->sooner, sizeof ret->sooner)) return;
    if (with_fewer(p, j, ret->sooner, sizeof ret->sooner)) return;
    if (bar == START_GPUS) return;
    if (with_others(p, j, ret->sooner, sizeof ret->sooner)) return;
    with_less(p, j, ret->sooner, sizeof ret->sooner);
}
