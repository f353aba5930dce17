#include "core/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/sampler.h"
#include "model/rates.h"

#define STACK_BYTES (256 * 1024)
#define GUARD_NS (100 * NS_PER_MS)
#define GUARD_FAR_NS NS_PER_S /* however rare the rounds are */
#define MARGIN_NS (900 * NS_PER_MS)
#define QUICK_NS (2 * NS_PER_MS)
#define REPLAN_FIRST_NS (3 * NS_PER_S)
#define REPLAN_NS (60 * NS_PER_S)
#define EARLY_NS (5 * NS_PER_MS)
#define RETRY_NS (2 * NS_PER_S)
#define MISSES_PATIENT 3 /* a call that fails so often in a row is asked less often */
#define MISS_PAUSE_NS (10 * NS_PER_S)
#define MISS_PAUSE_GUARD_NS (500 * NS_PER_MS) /* what the guard goes by is missed sooner */
#define RECUT_LOOK_NS (10 * NS_PER_S)         /* MIG instances may be made and removed while the card is watched */

void watch_end(struct watch_common *c, int code, const char *why) {
    pthread_mutex_lock(&c->lock);
    if (!c->end) {
        snprintf(c->end_why, sizeof c->end_why, "%s", why);
        c->end = code;
    }
    pthread_cond_broadcast(&c->moved);
    pthread_mutex_unlock(&c->lock);
    eventfd_write(c->end_fd, 1);
}

void watch_again(struct watch_common *c, const char *why) { watch_end(c, SAMPLER_AGAIN, why); }

static void stage_set(struct watch *w, enum watch_stage stage, const char *trouble) {
    pthread_mutex_lock(&w->common->lock);
    w->stage = stage;
    snprintf(w->trouble, sizeof w->trouble, "%.103s", trouble);
    pthread_cond_broadcast(&w->common->moved);
    pthread_mutex_unlock(&w->common->lock);
}

bool watch_is_running(struct watch *w) {
    pthread_mutex_lock(&w->common->lock);
    bool is_running = w->stage == WATCH_RUNNING;
    pthread_mutex_unlock(&w->common->lock);
    return is_running;
}

/* A bell's lower half counts what asks for no more than a look at the processes, its upper half the rest. */
#define RING_HUNT 1u
#define RING_ALL 0x10000u

static void ring_bell_of(_Atomic uint32_t *bell, uint32_t by) {
    atomic_fetch_add(bell, by);
    shm_wake(bell);
}

static void ring_both(struct watch *w) {
    ring_bell_of(&w->bell, RING_ALL);
    ring_bell_of(&w->slow_bell, RING_ALL);
}

/* Sleeps until at_ns, or until someone rings. Returns whether someone did. */
static bool doze(_Atomic uint32_t *bell, int64_t at_ns, uint32_t *seen) {
    for (;;) {
        uint32_t now = atomic_load(bell);
        if (now != *seen) {
            *seen = now;
            return true;
        }
        int64_t left_ns = at_ns - clock_boot_ns();
        if (left_ns <= 0) return false;
        shm_wait(bell, now, left_ns);
    }
}

/* ---- the devices of a watch: the GPU and its MIG instances ---- */

static unsigned parts(const struct watch *w) { return 1 + gpu_instances(w->gpu); }

static struct gpu *part(const struct watch *w, unsigned i) { return i == 0 ? w->gpu : gpu_instance(w->gpu, i - 1); }

/* ---- calls ---- */

struct misses {
    uint8_t in_row[GPU_CALLS_MAX];
    int64_t not_before_ns[GPU_CALLS_MAX];
};

struct round {
    int came; /* metrics */
    int lost, stale, failed;
    bool has_processes;
    int last_error_call;
};

static void call_make(struct watch *w, struct gpu *g, unsigned call, struct sample *s, struct ring_processes *p,
                      struct misses *m, struct round *r, int64_t now_ns) {
    if (m->not_before_ns[call] > now_ns) return;
    if (atomic_fetch_or(&w->busy_calls, BIT(call)) & BIT(call)) return; /* the other thread is at it */
    int n = gpu_read(g, call, s, p);
    atomic_fetch_and(&w->busy_calls, ~BIT(call));
    if (n >= 0) {
        m->in_row[call] = 0;
        r->came += n;
        r->has_processes |= gpu_call(w->common->driver, call)->lists_processes;
        return;
    }
    if (n == -ENOTSUP && gpu_cost(g, call).support != SUPPORT_YES) return; /* never worked here */
    r->failed++;
    r->last_error_call = (int)call;
    if (n == -ENODEV) r->lost++;
    if (n == -EINVAL) r->stale++;
    if (n == -ENXIO) watch_again(w->common, "the driver went away");
    if (m->in_row[call] < UINT8_MAX) m->in_row[call]++;
    if (m->in_row[call] >= MISSES_PATIENT && n != -ENODEV)
        m->not_before_ns[call] = now_ns + (w->guard_calls & BIT(call) ? MISS_PAUSE_GUARD_NS : MISS_PAUSE_NS);
}

/* Two or more processes on a GPU make some calls worth it that were not: the plan is made anew at once. */
static void sharing_note(struct watch *w, bool is_shared) {
    if (atomic_exchange(&w->is_shared, is_shared) != is_shared) ring_both(w);
}

/* ---- the fast thread ---- */

/* What a first round makes: the calls that a person misses most. What they cost is known afterwards. */
static uint64_t essential_calls(const struct gpu_driver *d) {
    uint64_t calls = 0;
    for (unsigned c = 0; c < gpu_calls(d); c++) {
        const struct gpu_call *k = gpu_call(d, c);
        if (k->weight >= 1 && k->least_ms == 0) calls |= BIT(c);
    }
    return calls;
}

static void self_metrics(struct watch *w, struct sample *s, int64_t due_ns) {
    int64_t cpu_ns = clock_thread_cpu_ns();
    atomic_store(&w->fast_cpu_ns, cpu_ns);
    sample_put(s, METRIC_SELF_CYCLE, (double)((clock_boot_ns() - s->boot_ns) / NS_PER_US) * 1e-6);
    sample_put(s, METRIC_SELF_LATE, (double)((s->boot_ns - due_ns) / NS_PER_US) * 1e-6);
    sample_put(s, METRIC_SELF_CPU, (double)((cpu_ns + atomic_load(&w->slow_cpu_ns)) / NS_PER_US) * 1e-6);
}

static const char *trouble_words(const struct watch *w, const struct round *r, char *ret, size_t room) {
    if (r->lost)
        snprintf(ret, room, "the driver says that it is lost");
    else
        snprintf(ret, room, "%s fails", gpu_call(w->common->driver, (unsigned)r->last_error_call)->name);
    return ret;
}

static void round_fast(struct watch *w, unsigned i, struct misses *m, struct ring_processes *p, int64_t due_ns) {
    struct gpu *g = part(w, i);
    unsigned device = (unsigned)w->device + i;
    struct sample s;
    struct round r = {0};
    memset(&s, 0, sizeof s); /* all of it goes into memory that anyone may read */
    s.boot_ns = clock_boot_ns();
    s.real_ns = clock_real_ns();
    bool was_there = board_is_there(w->common->board, device);
    board_begin(w->common->board, device, s.boot_ns);
    uint64_t calls = atomic_load(&w->fast_calls);
    for (unsigned c = 0; calls; c++, calls >>= 1) {
        if (!(calls & 1) || (i && !gpu_call(w->common->driver, c)->for_instances)) continue;
        atomic_store_explicit(&w->fast_call, (int)c, memory_order_relaxed);
        call_make(w, g, c, &s, p, m, &r, s.boot_ns);
        if (r.lost) break; /* the rest would say the same, each at its price */
    }
    atomic_store_explicit(&w->fast_call, -1, memory_order_relaxed);
    if (w->common->end) return;
    /* What was read before a call hung is history by now: say nothing and read anew. */
    bool was_hung = clock_boot_ns() - s.boot_ns > w->common->board->answer_ns;
    if (r.came == 0 || r.lost || was_hung) {
        char words[104];
        if (i == 0 && !r.lost && !was_hung) guarding_step(&w->guard, &s, s.boot_ns); /* silence counts as hot */
        board_end(w->common->board, device, NULL, NULL, r.lost > 0,
                  r.failed ? trouble_words(w, &r, words, sizeof words) : NULL);
        if (r.stale && r.stale == r.failed) watch_again(w->common, "the driver no longer knows a GPU");
        return;
    }
    if (i == 0) self_metrics(w, &s, due_ns);
    if (i == 0) guarding_step(&w->guard, &s, s.boot_ns);
    if (r.has_processes && i == 0) sharing_note(w, p->total > 1);
    if (r.has_processes) hunting_note(&w->hunting, i, p);
    board_end(w->common->board, device, &s, r.has_processes ? p : NULL, false, NULL);
    if (!was_there && i == 0) watch_look(w); /* what is seldom read went with the rest: it is wanted now */
}

static int64_t next_tick(int64_t now_ns, int64_t base_ns) { return (now_ns / base_ns + 1) * base_ns; }

/* The calls that the guard cannot do without, for the rounds between the rounds. */
static uint64_t guard_calls(const struct gpu_driver *d) {
    uint64_t calls = 0;
    for (unsigned c = 0; c < gpu_calls(d); c++) {
        const struct gpu_call *k = gpu_call(d, c);
        for (const int *id = k->metrics; k->weight >= 1 && k->least_ms == 0 && *id >= 0; id++)
            if (*id == METRIC_TEMP_CORE || *id == METRIC_TEMP_MEMORY || *id == METRIC_POWER || *id == METRIC_UTIL_GPU ||
                *id == METRIC_REASON_POWER_CAP || *id == METRIC_POWER_LIMIT_ENFORCED)
                calls |= BIT(c);
    }
    return calls;
}

static uint64_t calls_of(const struct gpu_driver *d, int metric) {
    uint64_t calls = 0;
    for (unsigned c = 0; c < gpu_calls(d); c++)
        for (const int *id = gpu_call(d, c)->metrics; *id >= 0; id++)
            if (*id == metric) calls |= BIT(c);
    return calls;
}

/* Near its target a card is read ten times a second, whatever the pace of the rounds: just what the guard needs. */
static void round_guard(struct watch *w, struct misses *m, uint64_t calls) {
    struct sample s;
    struct round r = {0};
    memset(&s, 0, sizeof s);
    s.boot_ns = clock_boot_ns();
    s.real_ns = clock_real_ns();
    board_begin(w->common->board, (unsigned)w->device, s.boot_ns);
    for (unsigned c = 0; calls; c++, calls >>= 1) {
        if (!(calls & 1)) continue;
        atomic_store_explicit(&w->fast_call, (int)c, memory_order_relaxed);
        call_make(w, w->gpu, c, &s, NULL, m, &r, s.boot_ns);
        if (r.lost) break;
    }
    atomic_store_explicit(&w->fast_call, -1, memory_order_relaxed);
    if (w->common->end) return;
    guarding_step(&w->guard, &s, s.boot_ns); /* also when nothing came: a sensor that is silent counts as hot */
    if (r.came > 0 && !r.lost)
        board_end(w->common->board, (unsigned)w->device, &s, NULL, false, NULL);
    else
        board_end(w->common->board, (unsigned)w->device, NULL, NULL, r.lost > 0, NULL);
}

static void guard_settings(struct watch *w) {
    struct watch_common *c = w->common;
    if (w->guard.settings_seen == c->settings_version) return;
    w->guard.settings_seen = c->settings_version;
    pthread_mutex_lock(&c->lock);
    guarding_reconfigure(&w->guard, c->settings);
    pthread_mutex_unlock(&c->lock);
}

/* Only a process that ends for good gives its cards back: the next one finds the record and goes on. */
static void guard_give_back(struct watch *w) {
    if (!atomic_exchange(&w->is_guarded, false)) return;
    if (w->common->leaving) guarding_close(&w->guard);
    atomic_fetch_sub(&w->common->guarded, 1);
}

static void round_hunt(struct watch *w) {
    for (unsigned i = 0; i < parts(w) && !w->common->end; i++) {
        struct hunting_part of = {part(w, i), i, (unsigned)w->device + i};
        if (!board_is_there(w->common->board, of.device)) continue;
        uint64_t call = BIT(w->hunting.call);
        if (atomic_fetch_or(&w->busy_calls, call) & call) continue; /* the other thread is at it */
        board_begin(w->common->board, of.device, clock_boot_ns());
        atomic_store_explicit(&w->fast_call, w->hunting.call, memory_order_relaxed);
        hunting_look(&w->hunting, &of, w->common->board);
        atomic_store_explicit(&w->fast_call, -1, memory_order_relaxed);
        atomic_fetch_and(&w->busy_calls, ~call);
    }
}

/* Sleeps until at_ns and looks for new processes meanwhile, as often as that is worth it. Returns whether someone rang for
 * more than that. */
static bool doze_hunting(struct watch *w, int64_t at_ns, uint32_t *seen) {
    for (;;) {
        int64_t look_ns = hunting_next_ns(&w->hunting, clock_boot_ns());
        uint32_t before = *seen;
        bool was_rung = doze(&w->bell, look_ns < at_ns ? look_ns : at_ns, seen);
        if (was_rung && (*seen ^ before) >= RING_ALL) return true;
        if (was_rung) continue; /* announced: look_ns has changed */
        if (look_ns >= at_ns) return false;
        round_hunt(w);
    }
}

static void fast_rounds(struct watch *w) {
    struct misses m[1 + MIG_MAX];
    struct ring_processes p;
    const uint64_t for_guard = guard_calls(w->common->driver), margin = calls_of(w->common->driver, METRIC_TEMP_MARGIN);
    w->guard_calls = for_guard | margin;
    hunting_begin(&w->hunting, w->common->driver, clock_boot_ns());
    int64_t margin_ns = 0;
    uint32_t seen = atomic_load(&w->bell);
    memset(m, 0, sizeof m);
    int64_t due_ns = clock_boot_ns(), tick_ns = due_ns;
    while (!w->common->end && !w->common->leaving) {
        int64_t base_ns = w->common->base_ns;
        guard_settings(w);
        if (due_ns >= tick_ns) {
            for (unsigned i = 0; i < parts(w); i++) round_fast(w, i, &m[i], &p, due_ns);
            tick_ns = next_tick(clock_boot_ns(), base_ns);
        } else {
            /* the margin costs a hundred times the others on some cards: once a second is enough */
            bool is_due = guarding_is_near(&w->guard) && due_ns >= margin_ns;
            if (is_due) margin_ns = due_ns + MARGIN_NS;
            round_guard(w, &m[0], for_guard | (is_due ? margin : 0));
        }
        int64_t now_ns = clock_boot_ns(), next_ns = tick_ns;
        if (now_ns - due_ns > w->common->board->answer_ns) next_ns = tick_ns = now_ns; /* it was stuck: do not wait */
        int64_t guard_ns = next_tick(now_ns, guarding_is_near(&w->guard) ? GUARD_NS : GUARD_FAR_NS);
        if (guarding_is_on(&w->guard) && guard_ns < next_ns) next_ns = guard_ns;
        /* someone changed the rate or asked to look: the tick is then */
        bool was_rung = doze_hunting(w, next_ns, &seen);
        due_ns = was_rung ? clock_boot_ns() : next_ns;
        if (was_rung) tick_ns = due_ns;
    }
    guard_give_back(w);
}

/* ---- the slow thread ---- */

struct slow_plan {
    int64_t period_ns[GPU_CALLS_MAX], due_ns[GPU_CALLS_MAX];
    int64_t made_ns;
};

/* When a slow call with this period is due next: on a grid of seconds, or of ten for what is rare, to wake up once for
 * several; at another moment for each GPU, and not when the fast rounds begin. */
static int64_t slow_due_ns(const struct watch *w, int64_t now_ns, int64_t period_ns) {
    int64_t grid_ns = period_ns >= 10 * NS_PER_S ? 10 * NS_PER_S : NS_PER_S;
    int64_t offset_ns = (150 + w->index * 97 % 700) * NS_PER_MS;
    return (now_ns + period_ns - offset_ns + grid_ns / 2) / grid_ns * grid_ns + offset_ns;
}

static void plan_make(struct watch *w, struct slow_plan *plan, int64_t now_ns) {
    const struct gpu_driver *d = w->common->driver;
    struct rate_call calls[GPU_CALLS_MAX] = {0};
    unsigned n = gpu_calls(d);
    int64_t base_ns = w->common->base_ns;
    bool is_early = plan->made_ns == 0;
    uint64_t fast = 0;
    for (unsigned c = 0; c < n; c++) {
        const struct gpu_call *k = gpu_call(d, c);
        calls[c].weight = k->weight;
        calls[c].least_ns = (int64_t)k->least_ms * NS_PER_MS;
        for (unsigned i = 0; i < parts(w); i++) {
            struct gpu_cost cost = gpu_cost(part(w, i), c);
            if (cost.support == SUPPORT_NO || cost.support == SUPPORT_FORBIDDEN) continue;
            if (i && !k->for_instances) continue;
            calls[c].is_wanted = !k->only_shared || w->is_shared;
            calls[c].cpu_ns += cost.cpu_ns;
            calls[c].wall_ns += cost.wall_ns;
        }
        /* At the start two threads are at the driver's lock at once, and what is cheap looks dear: judged a little later. */
        if (is_early && k->weight >= 1 && k->least_ms == 0 && calls[c].wall_ns < EARLY_NS)
            calls[c].cpu_ns = calls[c].wall_ns = 0;
    }
    rates_plan(calls, n, base_ns, w->common->slow_share);
    for (unsigned c = 0; c < n; c++) {
        if (calls[c].is_fast) fast |= BIT(c);
        bool was_made = plan->period_ns[c] || atomic_load(&w->fast_calls) & BIT(c);
        plan->period_ns[c] = calls[c].is_fast ? 0 : calls[c].period_ns;
        int64_t due_ns = slow_due_ns(w, now_ns, plan->period_ns[c]);
        if (plan->due_ns[c] == 0 || plan->due_ns[c] > due_ns) plan->due_ns[c] = due_ns;
        if (!was_made && calls[c].is_wanted && plan->made_ns) plan->due_ns[c] = now_ns; /* wanted from now on */
        int64_t keep_ns = 3 * (calls[c].is_fast ? base_ns : calls[c].period_ns) + 2 * NS_PER_S;
        for (unsigned i = 0; i < parts(w); i++)
            board_keep(w->common->board, (unsigned)w->device + i, gpu_call(d, c)->metrics, keep_ns);
    }
    atomic_store(&w->fast_calls, fast);
    plan->made_ns = now_ns;
    for (unsigned c = 0; c < n; c++)
        if (calls[c].is_wanted)
            log_line(LOG_DEBUG, "plan", (int)w->index, "%s every %.1f s: %.1f us of CPU, %.1f us in all",
                     gpu_call(d, c)->name, (double)calls[c].period_ns * 1e-9, (double)calls[c].cpu_ns * 1e-3,
                     (double)calls[c].wall_ns * 1e-3);
}

/* Makes the calls of a mask and publishes what came of them as one sample. */
static void slow_calls(struct watch *w, uint64_t mask, struct misses *m) {
    for (unsigned i = 0; mask && i < parts(w); i++) {
        if (!board_is_there(w->common->board, (unsigned)w->device + i)) continue;
        struct sample s;
        struct ring_processes p;
        struct round r = {0};
        memset(&s, 0, sizeof s); /* all of it goes into memory that anyone may read */
        s.boot_ns = clock_boot_ns();
        s.real_ns = clock_real_ns();
        for (unsigned c = 0; c < gpu_calls(w->common->driver) && !w->common->end; c++) {
            if (!(mask & BIT(c)) || (i && !gpu_call(w->common->driver, c)->for_instances)) continue;
            atomic_store(&w->slow_call, (int)c);
            atomic_store(&w->slow_began_ns, clock_boot_ns());
            call_make(w, part(w, i), c, &s, &p, &m[i], &r, s.boot_ns);
            atomic_store(&w->slow_began_ns, 0);
        }
        atomic_store(&w->slow_call, -1);
        if (w->common->end) return;
        if (r.has_processes && i == 0) sharing_note(w, p.total > 1);
        if (r.came > 0 || r.failed > 0)
            board_add(w->common->board, (unsigned)w->device + i, &s, r.has_processes ? &p : NULL);
    }
    atomic_store(&w->slow_cpu_ns, clock_thread_cpu_ns());
}

/* What is quickly read goes out together; a call that takes long, or may, stands alone and holds up no other's news. */
static void slow_due(struct watch *w, uint64_t mask, struct misses *m) {
    uint64_t quick = 0;
    for (unsigned c = 0; c < gpu_calls(w->common->driver); c++) {
        struct gpu_cost cost = gpu_cost(w->gpu, c);
        if (mask & BIT(c) && cost.support == SUPPORT_YES && cost.wall_ns < QUICK_NS) quick |= BIT(c);
    }
    slow_calls(w, quick, m);
    for (unsigned c = 0; c < gpu_calls(w->common->driver) && !w->common->end; c++)
        if (mask & ~quick & BIT(c)) slow_calls(w, BIT(c), m);
}

static void slow_first(struct watch *w, struct misses *m) {
    const struct gpu_driver *d = w->common->driver;
    slow_due(w, ~atomic_load(&w->fast_calls), m);
    for (unsigned c = 0; c < gpu_calls(d); c++) {
        const int *ids = gpu_call(d, c)->metrics;
        if (ids[0] == METRIC_ENERGY && gpu_cost(w->gpu, c).support > SUPPORT_YES)
            board_energy_is_ours(w->common->board, (unsigned)w->device);
    }
}

/* The rings are laid out for the instances that there were: others need a new process. */
static void recut_look(struct watch *w, int64_t *next_ns, int64_t now_ns) {
    if (now_ns < *next_ns) return;
    *next_ns = now_ns + RECUT_LOOK_NS;
    if (gpu_is_recut(w->gpu) > 0) watch_again(w->common, "a GPU has other MIG instances than before");
}

static void *slow_main(void *arg) {
    struct watch *w = arg;
    struct misses m[1 + MIG_MAX];
    struct slow_plan plan;
    int64_t recut_ns = 0;
    memset(m, 0, sizeof m);
    memset(&plan, 0, sizeof plan);
    pthread_setname_np(pthread_self(), "gpu-slow");
    if (!fence_take(w->common->fence, w->index, FENCE_SLOW)) return NULL;
    uint32_t seen = atomic_load(&w->slow_bell), looks = atomic_load(&w->looks);
    slow_first(w, m);
    plan_make(w, &plan, clock_boot_ns());
    bool was_shared = w->is_shared, is_first = true;
    while (!w->common->end) {
        const unsigned n = gpu_calls(w->common->driver);
        int64_t replan_ns = plan.made_ns + (is_first ? REPLAN_FIRST_NS : REPLAN_NS), next_ns = replan_ns;
        for (unsigned c = 0; c < n; c++)
            if (plan.period_ns[c] && plan.due_ns[c] < next_ns) next_ns = plan.due_ns[c];
        bool was_rung = doze(&w->slow_bell, next_ns, &seen);
        bool is_look = looks != atomic_load(&w->looks);
        looks = atomic_load(&w->looks);
        int64_t now_ns = clock_boot_ns();
        uint64_t due = 0;
        for (unsigned c = 0; c < n; c++) {
            if (!plan.period_ns[c] || (!is_look && plan.due_ns[c] > now_ns)) continue;
            due |= BIT(c);
            plan.due_ns[c] = slow_due_ns(w, now_ns, plan.period_ns[c]);
        }
        slow_due(w, due, m);
        if (was_rung || was_shared != w->is_shared || now_ns >= replan_ns) {
            is_first &= now_ns < replan_ns;
            plan_make(w, &plan, now_ns);
        }
        was_shared = w->is_shared;
        recut_look(w, &recut_ns, now_ns);
    }
    return NULL;
}

/* ---- opening ---- */

static bool fence_pass(struct watch *w) {
    struct fence *f = w->common->fence;
    return fence_is_free(f, w->index, FENCE_SLOW) && fence_take(f, w->index, FENCE_FAST);
}

/* A predecessor that was killed a moment ago is still dying: that is not stuck. */
static bool fence_pass_soon(struct watch *w) {
    for (int i = 0; i < 30; i++) {
        if (fence_pass(w)) return true;
        clock_sleep_until(clock_boot_ns() + 10 * NS_PER_MS);
    }
    return false;
}

static bool open_until_done(struct watch *w) {
    struct watch_common *c = w->common;
    struct error e;
    int64_t began_ns = clock_boot_ns();
    bool was_late = false;
    for (bool is_free = fence_pass_soon(w); !is_free; is_free = fence_pass(w)) {
        was_late = true;
        stage_set(w, WATCH_FENCED, "an earlier process of ours is stuck with it");
        clock_sleep_until(clock_boot_ns() + RETRY_NS / 2);
        if (c->end) return false;
    }
    for (; gpu_open(c->driver, w->index, &w->gpu, &e) < 0; was_late = true) {
        if (e.code == -ENXIO) watch_again(c, e.text);
        if (c->end) return false;
        stage_set(w, e.code == -EACCES ? WATCH_FORBIDDEN : WATCH_FAILED, e.text);
        clock_sleep_until(clock_boot_ns() + RETRY_NS);
    }
    pthread_mutex_lock(&c->lock);
    bool is_left_out = w->device >= 0; /* the board was laid out without it */
    pthread_mutex_unlock(&c->lock);
    if (is_left_out && !was_late) c->open_ns = clock_boot_ns() - began_ns;
    if (is_left_out || was_late) watch_again(c, "a GPU answers that did not");
    return !is_left_out && !was_late;
}

/* Nobody waits for a thread that a driver may never give back: it is detached, and names itself. */
static int thread_start(void *(*run)(void *), struct watch *w, struct error *e) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int errnum = pthread_create(&thread, &attr, run, w);
    pthread_attr_destroy(&attr);
    return errnum ? fail_errno(e, errnum, "GPU %u: thread", w->index) : 0;
}

static void *fast_main(void *arg) {
    struct watch *w = arg;
    struct watch_common *c = w->common;
    char name[16];
    snprintf(name, sizeof name, "gpu-%u", w->index);
    pthread_setname_np(pthread_self(), name);
    clock_be_prompt();
    if (!open_until_done(w)) return NULL;
    stage_set(w, WATCH_OPENED, "");
    pthread_mutex_lock(&c->lock);
    while (w->stage != WATCH_RUNNING && !c->end) pthread_cond_wait(&c->moved, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->end || w->device < 0) return NULL;

    struct error e;
    pthread_mutex_lock(&c->lock);
    struct settings settings = *c->settings;
    pthread_mutex_unlock(&c->lock);
    guarding_open(&w->guard, w->gpu, c->board, (unsigned)w->device, &settings);
    w->guard.settings_seen = c->settings_version;
    atomic_fetch_add(&c->guarded, 1);
    atomic_store(&w->is_guarded, true);
    atomic_store(&w->fast_calls, essential_calls(c->driver));
    if (thread_start(slow_main, w, &e) < 0) log_line(LOG_ERROR, "thread", (int)w->index, "no slow metrics: %s", e.text);
    fast_rounds(w);
    return NULL;
}

int watch_start(struct watch *w, struct watch_common *common, unsigned index, struct error *e) {
    memset(w, 0, sizeof *w);
    w->common = common;
    w->index = index;
    w->device = -1;
    w->fast_call = w->slow_call = -1;
    hunting_init(&w->hunting);
    return thread_start(fast_main, w, e);
}

void watch_go(struct watch *w, int device) {
    pthread_mutex_lock(&w->common->lock);
    w->device = device;
    w->stage = WATCH_RUNNING;
    pthread_cond_broadcast(&w->common->moved);
    pthread_mutex_unlock(&w->common->lock);
}

void watch_hunt(struct watch *w, uint32_t pid, int64_t now_ns, int64_t until_ns) {
    if (pid == WATCH_ANYBODY || pid == WATCH_OPENER)
        hunting_arm(&w->hunting, pid == WATCH_OPENER, until_ns);
    else
        hunting_expect(&w->hunting, pid, now_ns, until_ns);
    ring_bell_of(&w->bell, RING_HUNT);
}

void watch_hunt_base(struct watch *w, int64_t base_ns) {
    hunting_set_base(&w->hunting, base_ns);
    ring_bell_of(&w->bell, RING_HUNT);
}

void watch_look(struct watch *w) {
    atomic_fetch_add(&w->looks, 1);
    ring_both(w);
}
