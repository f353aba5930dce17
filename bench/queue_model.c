/* The queue's decisions without a server: how long a pass and an explanation take with many jobs waiting, and how far estimated
 * starts are off on a day that is played through. Prints each figure beside its limit; exit 1 when one is missed.
 *
 *   queue_model [--seed N] [--rounds N] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "bench/plan_life.h"

#define SECOND LIFE_SECOND
#define MINUTE (60 * SECOND)
#define HOUR (3600 * SECOND)
#define GIB (1ull << 30)
#define PASS_LIMIT_MS 5.0

static int missed;
static struct buf figures; /* for the last line */

/* ---- how long it takes ---- */

/* CPU time of this thread: whoever else uses the machine is not measured. */
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *v, size_t n) {
    if (!n) return NAN;
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* Jobs of all kinds: of many users, sizes, scopes, with limits and without. */
static void crowd(struct life *l, uint32_t jobs) {
    for (uint32_t i = 0; i < jobs; i++) {
        uint32_t scope[4];
        struct life_job j = {.node = PLAN_NONE, .user = (uint32_t)life_random(l, l->users)};
        j.gpus = 1 << life_random(l, 4);
        j.priority = (int)life_random(l, 3) - 1;
        j.real_ns = (int64_t)(60 + life_random(l, 36000)) * SECOND;
        if (life_random(l, 2)) j.most_ns = j.real_ns * 2;
        if (life_random(l, 2)) j.expect_ns = j.real_ns;
        if (!life_random(l, 4)) j.memory_bytes = (20 + 20 * life_random(l, 4)) * GIB;
        if (!life_random(l, 10)) { /* just these of one node */
            uint32_t first = (uint32_t)life_random(l, l->gpus / 8) * 8;
            j.gpus = 1 + (int)life_random(l, 4);
            for (int k = 0; k < j.gpus; k++) scope[k] = first + (uint32_t)k * 2;
            j.scope = scope;
            j.scope_len = (uint32_t)j.gpus;
            j.is_scoped = true;
        }
        if (!life_random(l, 20)) j.finish_by_ns = l->now_ns + j.real_ns + (int64_t)life_random(l, 7200) * SECOND;
        if (!life_random(l, 50)) j.elements = 100, j.at_once = 4;
        life_submit(l, &j);
    }
}

/* All GPUs taken, and more: `shared` of them hold several runs. */
static void fill(struct life *l, uint32_t runs) {
    for (uint32_t i = 0; i < runs; i++) {
        bool is_share = runs > l->gpus;
        struct life_job j = {.node = PLAN_NONE, .gpus = 1, .user = i % l->users, .priority = 100};
        j.real_ns = (int64_t)(60 + life_random(l, 36000)) * SECOND;
        j.expect_ns = i % 3 ? j.real_ns : 0;
        if (is_share) j.share_bytes = 30 * GIB;
        life_submit(l, &j);
    }
    life_pass(l);
}

static void leave(struct life *l, uint32_t gpus) { /* the first runs end */
    for (uint32_t i = 0; i < gpus && i < l->runs; i++) l->run[i].end_ns = l->now_ns;
    life_until(l, l->now_ns);
}

static void report(const char *key, const char *what, double *ms, size_t n, double limit_ms) {
    double mid = median(ms, n), least = ms[0];
    bool is_kept = mid <= limit_ms;
    missed += !is_kept;
    json_pair_num(&figures, key, mid);
    printf("  %-58s %8.3f ms  (least %.3f; limit %.0f ms)%s\n", what, mid, least, limit_ms, is_kept ? "" : "  MISSED");
}

static void time_pass(struct life *l, const char *key, const char *what, int rounds) {
    double *ms = calloc((size_t)rounds, sizeof *ms);
    const struct plan_grant *g;
    if (!ms) abort();
    life_world(l);
    for (int i = 0; i < rounds; i++) {
        int64_t from = cpu_ns();
        plan_pass(l->plan, &l->world, &g);
        ms[i] = (double)(cpu_ns() - from) / 1e6;
    }
    report(key, what, ms, (size_t)rounds, PASS_LIMIT_MS);
    free(ms);
}

static void time_explain(struct life *l, const char *key, const char *what, uint32_t shown, int rounds) {
    double *ms = calloc((size_t)rounds, sizeof *ms);
    struct plan_reason *r = calloc(shown, sizeof *r);
    uint32_t *which = calloc(shown, sizeof *which);
    if (!ms || !r || !which) abort();
    life_world(l);
    for (uint32_t i = 0; i < shown; i++) which[i] = i;
    for (int i = 0; i < rounds; i++) {
        int64_t from = cpu_ns();
        plan_explain(l->plan, &l->world, which, shown, r);
        ms[i] = (double)(cpu_ns() - from) / 1e6;
    }
    report(key, what, ms, (size_t)rounds, 50);
    free(ms);
    free(r);
    free(which);
}

static void times(const char *name, const char *const key[4], uint64_t seed, uint32_t nodes, uint32_t runs,
                  int rounds) {
    struct life l;
    life_init(&l, seed, nodes, 8, 40);
    fill(&l, runs);
    crowd(&l, 10000);
    printf("%s: %u GPUs, %u runs, %u jobs wait\n", name, l.gpus, l.runs, l.waits);
    time_pass(&l, key[0], "a pass while nothing is free", rounds);
    leave(&l, nodes > 1 ? 40 : 1);
    time_pass(&l, key[1], "a pass as GPUs fall free", rounds);
    while (life_pass(&l)) continue;
    time_pass(&l, key[2], "a pass that finds nobody for what is free", rounds);
    time_explain(&l, key[3], "why, when and sooner for the first 50", 50, rounds / 5 + 1);
    life_done(&l);
}

/* ---- how far estimates are off ---- */

/* What people run: each kind with a time of its own that varies, and some give a limit. */
struct kind {
    uint32_t user;
    int gpus;
    double median_s, spread;
    int64_t most_ns;
    int64_t past[16];
    int pasts;
};
enum { KINDS = 24 };

static double normal(struct life *l) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)life_random(l, 1u << 30) / (double)(1u << 30);
    return sum;
}

static int by_ns(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int64_t expect_of(const struct kind *k) {
    int64_t past[ARRAY_LEN(k->past)];
    int n = k->pasts < (int)ARRAY_LEN(past) ? k->pasts : (int)ARRAY_LEN(past);
    if (n == 0) return k->most_ns;
    memcpy(past, k->past, (size_t)n * sizeof *past);
    qsort(past, (size_t)n, sizeof *past, by_ns);
    return past[n / 2];
}

static void make_kinds(struct life *l, struct kind *kinds) {
    static const int sizes[] = {1, 1, 1, 1, 2, 2, 4, 8};
    for (int i = 0; i < KINDS; i++) {
        struct kind *k = &kinds[i];
        *k = (struct kind){.user = (uint32_t)life_random(l, l->users), .gpus = sizes[life_random(l, 8)]};
        k->median_s = exp(log(600) + 1.2 * normal(l));
        k->spread = 0.1 + (double)life_random(l, 4) * 0.15;
        if (life_random(l, 2)) k->most_ns = (int64_t)(k->median_s * 3 / 60 + 1) * MINUTE;
    }
}

static void submit_kind(struct life *l, const struct kind *k, uint32_t number, bool is_known) {
    struct life_job j = {.node = PLAN_NONE, .user = k->user, .gpus = k->gpus, .at_once = 0};
    j.real_ns = (int64_t)(k->median_s * exp(k->spread * normal(l)) * 1e9);
    if (j.real_ns < SECOND) j.real_ns = SECOND;
    if (k->most_ns && j.real_ns > k->most_ns) j.real_ns = k->most_ns;
    j.most_ns = k->most_ns;
    j.expect_ns = is_known ? j.real_ns : expect_of(k);
    j.memory_bytes = number; /* which kind it is: a few bytes more or less exclude no GPU */
    life_submit(l, &j);
}

struct guesses {
    double *error_s, *wait_s;
    size_t count, waited, told;
};

/* A day of comings and goings at about the load that the machine bears. */
static void play(struct life *l, struct kind *kinds, bool is_known, struct guesses *g) {
    double work = 0;
    for (int i = 0; i < KINDS; i++) work += kinds[i].median_s * kinds[i].gpus / KINDS;
    double every_s = work / l->gpus / 0.6;
    int64_t next = 0;
    uint32_t ended = 0;
    while (l->now_ns < 24 * HOUR || l->runs) {
        int64_t end = life_next_end(l);
        bool is_new = next <= end && next < 24 * HOUR;
        if (!is_new && end == PLAN_NEVER) break;
        for (uint32_t i = 0; !is_new && i < l->runs; i++) {
            if (l->run[i].end_ns > end) continue;
            struct kind *k = &kinds[l->job[l->run[i].job].memory_bytes];
            k->past[k->pasts++ % (int)ARRAY_LEN(k->past)] = l->run[i].end_ns - l->run[i].start_ns;
            ended++;
        }
        life_until(l, is_new ? next : end);
        if (is_new) {
            uint32_t which = (uint32_t)life_random(l, KINDS);
            submit_kind(l, &kinds[which], which, is_known);
            double busy =
                0.4 + 1.2 * fabs(sin(3.14159 * (double)l->now_ns / (double)(24 * HOUR))); /* nights are calm */
            next = l->now_ns + (int64_t)(every_s / busy * (0.1 + 1.8 * (double)life_random(l, 1000) / 1000) * 1e9);
        }
        while (life_pass(l)) continue;
        if (is_new && l->waits && l->waiting[l->waits - 1] == l->jobs - 1) {
            struct plan_reason r;
            const uint32_t last = l->waits - 1;
            plan_explain(l->plan, life_world(l), &last, 1, &r);
            l->job[l->jobs - 1].guess_ns = r.start_ns;
        }
    }
    for (uint32_t i = 0; i < l->jobs; i++) {
        const struct life_job *j = &l->job[i];
        if (!j->started || j->first_start_ns == j->submit_ns) continue;
        g->waited++;
        g->wait_s[g->count] = (double)(j->first_start_ns - j->submit_ns) / 1e9;
        if (!j->guess_ns) continue;
        g->told++;
        g->error_s[g->count++] = fabs((double)(j->first_start_ns - j->guess_ns) / 1e9);
    }
}

/* is_known: one user, and everybody knows how long everything takes. Then nothing is left to be wrong about. */
static void estimates(uint64_t seed, bool is_known) {
    struct kind kinds[KINDS];
    struct guesses g = {0};
    struct life l;
    char key[48];
    life_init(&l, seed, 1, 8, is_known ? 1 : 6);
    make_kinds(&l, kinds);
    g.error_s = calloc(100000, sizeof *g.error_s);
    g.wait_s = calloc(100000, sizeof *g.wait_s);
    if (!g.error_s || !g.wait_s) abort();
    play(&l, kinds, is_known, &g);
    printf("a day on 8 GPUs, seed %llu, %s: %u jobs, %zu had to wait, %zu of them were told when they would start\n",
           (unsigned long long)seed, is_known ? "one user, times known" : "six users, times from history", l.jobs,
           g.waited, g.told);
    double wait = median(g.wait_s, g.count), off = median(g.error_s, g.count);
    printf("  they waited (median)                                       %8.1f min\n", wait / 60);
    printf("  the first word was off by (median; nine of ten)            %8.1f min; %.1f min\n", off / 60,
           g.count ? g.error_s[g.count * 9 / 10] / 60 : NAN);
    snprintf(key, sizeof key, "estimate_off_min_%s%llu", is_known ? "known_" : "", (unsigned long long)seed);
    json_pair_num(&figures, key, round(off / 6) / 10);
    if (is_known && off > 60) {
        printf("  more than a minute where all was known: MISSED\n");
        missed++;
    }
    free(g.error_s);
    free(g.wait_s);
    life_done(&l);
}

int main(int argc, char **argv) {
    uint64_t seed = 1;
    int rounds = 51;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    }
    static const char *const one[] = {"pass_full_ms", "pass_freed_ms", "pass_kept_ms", "explain_50_ms"};
    static const char *const fleet[] = {"fleet_pass_full_ms", "fleet_pass_freed_ms", "fleet_pass_kept_ms",
                                        "fleet_explain_50_ms"};
    json_open(&figures, '{');
    json_pair_str(&figures, "bench", "queue_model");
    times("one machine", one, seed, 1, 8, rounds);
    times("a fleet", fleet, seed, 120, 2000, rounds);
    estimates(seed, true);
    for (uint64_t k = 0; k < 3; k++) estimates(seed + k, false);
    json_pair_int(&figures, "missed", missed);
    json_close(&figures, '}');
    puts(figures.s);
    buf_done(&figures);
    return missed > 0;
}
