#include "model/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/simulate_own.h"

#define NS SIMULATE_NS
#define MINUTE_NS (60 * NS)
#define CLOSE_MOST 300              /* of a longer queue each look would cost as much as all passes together */
#define IDLE_NS (31LL * 86400 * NS) /* longer than a week of hours that were had */
#define LAST_NS (4000000000LL * NS) /* 126 years: nothing is added up beyond */

void *simulate_room(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) abort();
    return p;
}

/* ---- who ends next ---- */

static bool ends_before(const struct play *p, uint32_t a, uint32_t b) {
    return p->end_ns[a] != p->end_ns[b] ? p->end_ns[a] < p->end_ns[b] : a < b;
}

static void end_push(struct play *p, uint32_t job) {
    uint32_t at = p->ends++;
    for (; at && ends_before(p, job, p->end[(at - 1) / 2]); at = (at - 1) / 2) p->end[at] = p->end[(at - 1) / 2];
    p->end[at] = job;
}

static uint32_t end_pop(struct play *p) {
    uint32_t first = p->end[0], last = p->end[--p->ends], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < p->ends; at = child) {
        if (child + 1 < p->ends && ends_before(p, p->end[child + 1], p->end[child])) child++;
        if (!ends_before(p, p->end[child], last)) break;
        p->end[at] = p->end[child];
    }
    p->end[at] = last;
    return first;
}

/* ---- what users had ---- */

static void users_look(struct play *p) {
    const struct simulate_setup *s = p->setup;
    double most_s = s->user_gpu_hours * 3600;
    int64_t hour = (p->t->zero_ns + p->w.now_ns) / SIMULATE_HOUR_NS;
    for (uint32_t u = 0; u < p->t->users.count; u++) {
        const struct held *h = &p->held[u];
        double running_s = (double)p->w.now_ns / NS * h->gpus - h->since_s;
        p->user[u].usage_s = usage_at(&h->usage, s->half_life_h, p->t->zero_ns + p->w.now_ns) + running_s;
        if (most_s > 0) p->user[u].seconds_left = most_s - usage_week_s(&h->usage, hour) - running_s;
    }
}

/* ---- jobs come ---- */

/* As the queue would say when it is handed in; -1: it is taken. */
static int admit(const struct play *p, const struct plan_job *j) {
    struct plan_world anybody = p->w;
    struct error e;
    anybody.users = 0;
    if (plan_admit(&anybody, j, &e) < 0)
        return strncmp(e.text, "scope", 5) == 0  ? SIMULATE_SCOPE
               : strncmp(e.text, "gpus", 4) == 0 ? SIMULATE_GPUS
                                                 : SIMULATE_MEMORY;
    return plan_admit(&p->w, j, &e) < 0 ? SIMULATE_USER : -1;
}

/* Most jobs ask for nothing but a number of GPUs: those are looked at once. */
static int admit_once(struct play *p, const struct plan_job *j) {
    bool is_plain = !j->is_scoped && !j->memory_bytes && !j->share_bytes && j->node == PLAN_NONE;
    if (!is_plain || j->gpus > JOB_GPUS_MAX) return admit(p, j);
    if (!p->admits[j->gpus]) {
        int out = admit(p, j);
        p->admits[j->gpus] = (signed char)(out < 0 ? -1 : out + 1);
    }
    return p->admits[j->gpus] < 0 ? -1 : p->admits[j->gpus] - 1;
}

/* The longest of an array: they stand side by side, and the queue does not tell them apart. */
static int64_t longest_of(const struct play *p, uint32_t first) {
    int64_t most_ns = 0;
    for (uint32_t i = first; i < p->t->jobs && p->t->job[i].array == p->t->job[first].array; i++)
        if (simulate_time_of(&p->t->job[i]) > most_ns) most_ns = simulate_time_of(&p->t->job[i]);
    return most_ns;
}

static int64_t expect_of(const struct play *p, uint32_t job) {
    const struct trace_job *j = &p->t->job[job];
    if (p->setup->is_known) return longest_of(p, job);
    return likes_expect(&p->likes, j->like, p->held[j->user].like, j->limit_ns, 0);
}

static struct plan_job ask_of(const struct play *p, uint32_t job) {
    const struct trace_job *j = &p->t->job[job];
    struct plan_job mine = {.id = job + 1,
                            .user = j->user,
                            .node = j->node,
                            .priority = j->priority,
                            .gpus = j->gpus,
                            .scope = p->t->list + j->scope_at,
                            .scope_len = j->scope_len,
                            .is_scoped = j->is_scoped,
                            .is_listed = j->is_listed,
                            .memory_bytes = j->memory_bytes,
                            .share_bytes = j->share_bytes,
                            .finish_by_ns = j->finish_by_ns,
                            .expect_ns = expect_of(p, job),
                            .most_ns = p->setup->is_known ? longest_of(p, job) : j->limit_ns,
                            .since_ns = j->submit_ns + 1, /* the first comes at 0, which is "nobody knows" */
                            .room = UINT32_MAX};
    return mine;
}

static void room_look(struct play *p, uint32_t first) {
    uint32_t most = p->t->job[first].at_once, active = p->lineup[first].active;
    if (most) p->job[first].room = most > active ? most - active : 0;
}

/* One that is tried again stands before later elements. */
static void lineup_add(struct play *p, struct lineup *l, uint32_t job) {
    uint32_t before = l->last < job ? l->last : PLAN_NONE;
    for (uint32_t at = l->first; l->last > job && at < job; at = p->next[at]) before = at;
    p->next[job] = before == PLAN_NONE ? l->first : p->next[before];
    *(before == PLAN_NONE ? &l->first : &p->next[before]) = job;
    if (l->last < job) l->last = job;
}

/* It may start from now on. */
static void join(struct play *p, uint32_t job) {
    uint32_t first = p->t->job[job].array;
    struct lineup *l = &p->lineup[first];
    if (p->job[first].elements) {
        lineup_add(p, l, job);
        p->job[first].elements++;
    } else {
        p->next[job] = PLAN_NONE;
        l->last = job;
        p->job[first] = ask_of(p, first);
        p->job[first].elements = 1;
        l->first = job;
        room_look(p, first);
        plan_line_add(p->line, p->job, first);
        p->queue_at[first] = p->queued;
        p->queue[p->queued++] = first;
        if (first >= p->w.jobs) p->w.jobs = first + 1;
    }
    p->waiting++;
    p->waiting_shares += p->t->job[job].share_bytes > 0;
    if (p->waits) ++*windows_waits(p, job);
}

/* False: it is left out, and nothing has happened. */
static bool come(struct play *p, uint32_t job) {
    struct plan_job mine = ask_of(p, job);
    int out = admit_once(p, &mine);
    if (out >= 0)
        p->r->out[out]++;
    else if (!p->missing || --p->missing[job] == 0)
        join(p, job);
    return out < 0;
}

/* Those that it follows are over. */
static void come_after(struct play *p, uint32_t job) {
    int64_t pause_ns = p->t->job[job].pause_ns;
    if (!pause_ns) {
        join(p, job);
        return;
    }
    p->pause_end_ns[job] = p->w.now_ns + pause_ns;
    p->paused[p->pauses++] = job;
}

static void let_follow(struct play *p, uint32_t job) {
    for (uint32_t i = p->follower_at[job]; i < p->follower_at[job + 1]; i++)
        if (--p->missing[p->follower[i]] == 0) come_after(p, p->follower[i]);
}

/* The first pause that ends, of a few: its place in paused. */
static uint32_t pause_first(const struct play *p) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < p->pauses; i++)
        if (p->pause_end_ns[p->paused[i]] < p->pause_end_ns[p->paused[first]]) first = i;
    return first;
}

static void pause_over(struct play *p) {
    uint32_t at = pause_first(p), job = p->paused[at];
    memmove(p->paused + at, p->paused + at + 1, (--p->pauses - at) * sizeof *p->paused);
    join(p, job);
}

/* ---- and start and end ---- */

static uint32_t leave(struct play *p, uint32_t first) {
    struct lineup *l = &p->lineup[first];
    uint32_t job = l->first;
    l->first = p->next[job];
    l->active++;
    room_look(p, first);
    if (--p->job[first].elements == 0) {
        plan_line_drop(p->line, p->job, first);
        p->queue[p->queue_at[first]] = p->queue[--p->queued];
        p->queue_at[p->queue[p->queue_at[first]]] = p->queue_at[first];
    }
    p->waiting--;
    p->waiting_shares -= p->t->job[job].share_bytes > 0;
    if (p->waits) --*windows_waits(p, job);
    return job;
}

static void start(struct play *p, const struct plan_grant *g) {
    int64_t now_ns = p->w.now_ns, expect_ns = p->job[g->job].expect_ns;
    uint32_t job = leave(p, g->job), at = p->w.runs++, *gpus = p->r->gpu_list + p->r->gpu_at[job];
    const struct trace_job *j = &p->t->job[job];
    struct held *h = &p->held[j->user];
    memcpy(gpus, g->gpu, g->gpus * sizeof *gpus);
    p->run[at] = (struct plan_run){.job = g->job + 1,
                                   .user = j->user,
                                   .gpu = gpus,
                                   .gpus = g->gpus,
                                   .share_bytes = j->share_bytes,
                                   .start_ns = now_ns,
                                   .end_ns = expect_ns ? now_ns + expect_ns : 0};
    p->run_of[job] = at;
    p->job_of[at] = job;
    p->worth[job] = simulate_worth(p->setup, j, gpus[0]);
    if (g->is_turn) p->user[j->user].turn_ns = now_ns;
    h->gpus += p->worth[job];
    h->since_s += (double)now_ns / NS * p->worth[job];
    p->r->start_ns[job] = now_ns;
    p->end_ns[job] = now_ns > LAST_NS - simulate_time_of(j) ? PLAN_NEVER : now_ns + simulate_time_of(j);
    end_push(p, job);
    p->busy += p->worth[job];
    for (uint16_t i = 0; i < g->gpus; i++) p->taken += p->users_on[gpus[i]]++ == 0;
}

static void end(struct play *p, uint32_t job) {
    const struct trace_job *j = &p->t->job[job];
    struct held *h = &p->held[j->user];
    uint32_t at = p->run_of[job], last = --p->w.runs, first = j->array;
    int64_t now_ns = p->w.now_ns, wall_ns = p->t->zero_ns + now_ns, start_ns = p->run[at].start_ns;
    double worth = p->worth[job];
    usage_add(&h->usage, p->setup->half_life_h, (double)(now_ns - start_ns) / (double)NS * worth, wall_ns, wall_ns);
    h->gpus -= worth;
    h->since_s -= (double)start_ns / NS * worth;
    for (uint16_t i = 0; i < p->run[at].gpus; i++) p->taken -= --p->users_on[p->run[at].gpu[i]] == 0;
    p->run[at] = p->run[last];
    p->job_of[at] = p->job_of[last];
    p->run_of[p->job_of[at]] = at;
    p->busy -= worth;
    p->lineup[first].active--;
    room_look(p, first);
    if (p->missing) let_follow(p, job);
    if (j->is_unlike) return;
    p->is_learnt = true;
    likes_add(&p->likes, j->like, now_ns - start_ns);
    likes_add(&p->likes, h->like, now_ns - start_ns);
}

/* A run that has outlasted what was expected of it is expected to take as long as those that took longer still. A server looks
 * at all of them anew. */
static void expect_again(struct play *p) {
    for (uint32_t i = 0; i < p->w.runs; i++) {
        struct plan_run *r = &p->run[i];
        if (!p->setup->is_close && (!r->end_ns || r->end_ns > p->w.now_ns)) continue;
        const struct trace_job *j = &p->t->job[r->job - 1];
        r->end_ns = likes_end(&p->likes, j->like, p->held[j->user].like, r->start_ns, j->limit_ns, p->w.now_ns);
    }
}

/* The same of those that wait: as the server does in every pass. */
static void expect_anew(struct play *p) {
    p->is_learnt = false;
    for (uint32_t i = 0; i < p->queued; i++) {
        uint32_t job = p->queue[i];
        int64_t expect_ns = expect_of(p, job);
        if (expect_ns == p->job[job].expect_ns) continue;
        plan_line_drop(p->line, p->job, job);
        p->job[job].expect_ns = expect_ns;
        plan_line_add(p->line, p->job, job);
    }
}

static bool has_room(const struct play *p) { return p->taken < p->w.gpus || p->waiting_shares; }

static void pass(struct play *p) {
    const struct plan_grant *g;
    if (!p->waiting || !has_room(p)) return; /* nobody waits, or nothing is free */
    users_look(p);
    if (!p->setup->is_known) expect_again(p);
    if (p->setup->is_close && p->is_learnt && p->queued <= CLOSE_MOST && !p->setup->is_known) expect_anew(p);
    if (p->setup->windows) windows_make(p);
    size_t n = plan_pass(p->plan, &p->w, &g);
    for (size_t i = 0; i < n; i++) start(p, &g[i]);
    p->r->passes++;
}

/* When somebody may start though nobody comes or ends: hours that users had are forgotten, and GPUs that people kept are free. */
static int64_t wake_of(const struct play *p) {
    int64_t wake_ns = PLAN_NEVER, wall_ns = p->t->zero_ns + p->w.now_ns;
    if (!p->waiting) return PLAN_NEVER;
    if (p->setup->user_gpu_hours > 0) wake_ns = (wall_ns / SIMULATE_HOUR_NS + 1) * SIMULATE_HOUR_NS - p->t->zero_ns;
    if (p->setup->is_close && has_room(p) && p->w.now_ns + MINUTE_NS < wake_ns) wake_ns = p->w.now_ns + MINUTE_NS;
    if (p->setup->windows && windows_wake_ns(p) < wake_ns) wake_ns = windows_wake_ns(p);
    return wake_ns < LAST_NS ? wake_ns : PLAN_NEVER;
}

/* Nobody comes, runs or ends any more, and what time alone could change has not let anybody start for long. */
static bool is_stuck(const struct play *p, bool is_last) {
    return is_last && !p->ends && !p->pauses && p->waiting && p->w.now_ns - p->event_ns > IDLE_NS;
}

/* Until the next moment at which something happens, all of this one has happened and is passed on. */
static void go(struct play *p) {
    uint32_t next = 0;
    for (bool is_settled = true;;) {
        int64_t comes = next < p->t->jobs ? p->t->job[next].submit_ns : PLAN_NEVER;
        int64_t ends = p->ends ? p->end_ns[p->end[0]] : PLAN_NEVER;
        int64_t now = comes < ends ? comes : ends;
        int64_t pauses = p->pauses ? p->pause_end_ns[p->paused[pause_first(p)]] : PLAN_NEVER;
        if (p->wake_ns < now) now = p->wake_ns;
        if (pauses < now) now = pauses;
        if (now > p->w.now_ns && !is_settled) {
            pass(p);
            p->wake_ns = wake_of(p);
            simulate_note(p->r, p->w.now_ns, p->waiting, p->busy);
            is_settled = true;
            continue; /* what has just started may end before */
        }
        if (is_stuck(p, next == p->t->jobs)) p->r->never = p->waiting;
        if (now == PLAN_NEVER || p->r->never) return;
        if (p->setup->windows) windows_use(p, now);
        p->w.now_ns = now;
        if (now != p->wake_ns) p->event_ns = now;
        if (now == comes && now != ends) {
            is_settled &= !come(p, next++);
            continue;
        }
        if (now == ends)
            end(p, end_pop(p));
        else if (now == pauses)
            pause_over(p);
        else
            p->wake_ns = PLAN_NEVER;
        is_settled = false;
    }
}

/* ---- the beginning ---- */

static void gpus_begin(struct play *p) {
    const struct simulate_setup *s = p->setup;
    p->w.gpus = s->gpu ? s->gpus : s->nodes * s->gpus_per_node;
    p->gpu = simulate_room(p->w.gpus, sizeof *p->gpu);
    p->users_on = simulate_room(p->w.gpus, sizeof *p->users_on);
    if (s->gpu) memcpy(p->gpu, s->gpu, p->w.gpus * sizeof *p->gpu);
    for (uint32_t g = 0; g < p->w.gpus && !s->gpu; g++)
        p->gpu[g] = (struct plan_gpu){.node = g / s->gpus_per_node * s->gpus_per_node,
                                      .index = (int)(g % s->gpus_per_node),
                                      .memory_bytes = s->gpu_bytes,
                                      .is_here = true,
                                      .temp_c = NAN,
                                      .node_name = ""};
    p->w.gpu = p->gpu;
}

/* Who follows whom, the other way round. */
static void followers_begin(struct play *p) {
    const struct trace *t = p->t;
    if (!t->afters) return;
    p->missing = simulate_room(t->jobs, sizeof *p->missing);
    p->paused = simulate_room(t->jobs, sizeof *p->paused);
    p->pause_end_ns = simulate_room(t->jobs, sizeof *p->pause_end_ns);
    p->follower_at = simulate_room(t->jobs + 1u, sizeof *p->follower_at);
    p->follower = simulate_room(t->list_len, sizeof *p->follower);
    for (uint32_t i = 0; i < t->jobs; i++) {
        p->missing[i] = t->job[i].after_len + 1; /* and that it is handed in */
        for (uint32_t k = 0; k < t->job[i].after_len; k++) p->follower_at[t->list[t->job[i].after_at + k] + 1]++;
    }
    for (uint32_t i = 0; i < t->jobs; i++) p->follower_at[i + 1] += p->follower_at[i];
    uint32_t *at = simulate_room(t->jobs, sizeof *at);
    for (uint32_t i = 0; i < t->jobs; i++)
        for (uint32_t k = 0; k < t->job[i].after_len; k++) {
            uint32_t of = t->list[t->job[i].after_at + k];
            p->follower[p->follower_at[of] + at[of]++] = i;
        }
    free(at);
}

static void begin(struct play *p) {
    const struct trace *t = p->t;
    const struct simulate_setup *s = p->setup;
    size_t gpus = 0;
    p->w = (struct plan_world){.users = t->users.count, .now_ns = -1, .fair_wait_ns = s->fair_wait_ns};
    p->wake_ns = PLAN_NEVER;
    gpus_begin(p);
    p->job = simulate_room(t->jobs, sizeof *p->job);
    p->run = simulate_room(t->jobs, sizeof *p->run);
    p->user = simulate_room(t->users.count, sizeof *p->user);
    p->held = simulate_room(t->users.count, sizeof *p->held);
    p->lineup = simulate_room(t->jobs, sizeof *p->lineup);
    p->next = simulate_room(t->jobs, sizeof *p->next);
    p->queue = simulate_room(t->jobs + 1u, sizeof *p->queue);
    p->queue_at = simulate_room(t->jobs + 1u, sizeof *p->queue_at);
    p->run_of = simulate_room(t->jobs, sizeof *p->run_of);
    p->job_of = simulate_room(t->jobs, sizeof *p->job_of);
    p->worth = simulate_room(t->jobs, sizeof *p->worth);
    p->end = simulate_room(t->jobs, sizeof *p->end);
    p->end_ns = simulate_room(t->jobs, sizeof *p->end_ns);
    p->r->gpu_at = simulate_room(t->jobs + 1u, sizeof *p->r->gpu_at);
    for (uint32_t i = 0; i < t->jobs; i++) {
        p->r->gpu_at[i] = (uint32_t)gpus;
        p->r->start_ns[i] = -1;
        gpus += (size_t)t->job[i].gpus;
    }
    p->r->gpu_list = simulate_room(gpus, sizeof *p->r->gpu_list);
    for (uint32_t u = 0; u < t->users.count; u++) {
        p->user[u] = (struct plan_user){.name = t->users.of[u],
                                        .weight = 1,
                                        .gpus_max = s->user_gpus,
                                        .seconds_max = s->user_gpu_hours * 3600,
                                        .seconds_left = INFINITY};
        p->held[u].like = likes_key(t->users.of[u], NULL);
    }
    followers_begin(p);
    windows_begin(p);
    p->plan = plan_new();
    p->line = plan_line_new(s->policy);
    p->w.policy = s->policy;
    p->w.line = p->line;
    p->w.job = p->job;
    p->w.run = p->run;
    p->w.user = p->user;
}

/* What never came follows one that was left out. */
static void count_out(struct play *p) {
    struct simulate_result *r = p->r;
    for (uint32_t i = 0; i < p->t->jobs; i++) r->left_out += r->start_ns[i] < 0;
    r->left_out -= p->waiting;
    r->out[SIMULATE_AFTER] = r->left_out;
    for (int o = 0; o < SIMULATE_AFTER; o++) r->out[SIMULATE_AFTER] -= r->out[o];
}

int simulate(const struct trace *t, const struct simulate_setup *s, struct simulate_result *ret, struct error *e) {
    *ret = (struct simulate_result){.start_ns = simulate_room(t->jobs, sizeof *ret->start_ns)};
    struct play p = {.t = t, .setup = s, .r = ret};
    begin(&p);
    go(&p);
    bool is_over = !p.ends && p.waiting == ret->never;
    count_out(&p);
    if (is_over) simulate_add_up(t, s, ret);
    plan_free(p.plan);
    plan_line_free(p.line);
    likes_done(&p.likes);
    windows_done(&p);
    void *const all[] = {p.gpu,      p.job,    p.run,    p.user,   p.held,         p.lineup,      p.next,
                         p.run_of,   p.job_of, p.end_ns, p.end,    p.missing,      p.follower_at, p.follower,
                         p.users_on, p.worth,  p.queue,  p.paused, p.pause_end_ns, p.queue_at};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) free(all[i]);
    return is_over ? 0 : fail(e, -ERANGE, "so many jobs would take so few GPUs more than a century");
}
