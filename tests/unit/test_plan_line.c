/* A line that is kept from pass to pass gives the same passes as one made anew: random histories under each policy, in which
 * the same moment is asked of both. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan.h"

#define SECOND 1000000000LL
#define GIB (1ull << 30)

enum { JOBS = 260, NODES = 3, EACH = 4, GPUS = NODES * EACH, USERS = 5, RUNS = GPUS * 4 };

static struct {
    uint64_t seed;
    struct plan_gpu gpu[GPUS];
    struct plan_job job[JOBS];
    int64_t real_ns[JOBS];
    uint32_t scope[JOBS][EACH];
    uint32_t active[JOBS], at_once[JOBS];
    struct plan_run run[RUNS];
    int64_t end_ns[RUNS];
    uint32_t held[RUNS][EACH];
    struct plan_user user[USERS];
    struct plan_window window[2];
    uint32_t users_of_window[1];
    struct plan_world w;
} now;

static uint64_t random_below(uint64_t below) {
    now.seed ^= now.seed << 13;
    now.seed ^= now.seed >> 7;
    now.seed ^= now.seed << 17;
    return (now.seed >> 11) % below;
}

static void begin(uint64_t seed) {
    memset(&now, 0, sizeof now);
    now.seed = seed * 0x9e3779b97f4a7c15ull + 1;
    for (uint32_t g = 0; g < GPUS; g++)
        now.gpu[g] = (struct plan_gpu){
            .node = g / EACH, .index = (int)(g % EACH), .memory_bytes = 80 * GIB, .is_here = true, .temp_c = NAN};
    for (uint32_t u = 0; u < USERS; u++)
        now.user[u] = (struct plan_user){.name = "u", .seconds_left = INFINITY, .gpus_max = u == 4 ? 3 : 0};
    now.w = (struct plan_world){.now_ns = 1000 * SECOND,
                                .gpu = now.gpu,
                                .run = now.run,
                                .job = now.job,
                                .user = now.user,
                                .window = now.window,
                                .gpus = GPUS,
                                .users = USERS};
}

static void come(uint32_t number) {
    struct plan_job *j = &now.job[number];
    int64_t s = 10 + (int64_t)random_below(3000);
    *j = (struct plan_job){.id = number + 1,
                           .user = (uint32_t)random_below(USERS),
                           .node = random_below(6) ? PLAN_NONE : (uint32_t)random_below(NODES),
                           .priority = (int)random_below(3) - 1,
                           .gpus = 1 + (int)random_below(random_below(3) ? 2 : EACH),
                           .since_ns = now.w.now_ns,
                           .elements = 1,
                           .room = UINT32_MAX};
    now.real_ns[number] = s * SECOND;
    if (random_below(3)) j->expect_ns = s * SECOND;
    if (random_below(2)) j->most_ns = s * 2 * SECOND;
    if (!random_below(3)) j->finish_by_ns = now.w.now_ns + (s + (int64_t)random_below(4000)) * SECOND;
    if (!random_below(4)) {
        uint32_t node = (uint32_t)random_below(NODES) * EACH;
        j->scope = now.scope[number];
        j->is_scoped = true;
        for (uint32_t g = 0; g < EACH; g++)
            if (random_below(2)) now.scope[number][j->scope_len++] = node + g;
        if (!j->scope_len) now.scope[number][j->scope_len++] = node;
        j->gpus = 1 + (int)random_below(j->scope_len);
        j->is_listed = random_below(4) == 0;
    } else if (!random_below(4)) {
        j->gpus = 1;
        j->share_bytes = (1 + random_below(60)) * GIB;
    }
    if (!random_below(5)) {
        j->elements = 2 + (uint32_t)random_below(6);
        now.at_once[number] = j->room = 1 + (uint32_t)random_below(3);
    }
    now.w.jobs = number + 1;
}

static void start(struct plan_line *line, const struct plan_grant *g) {
    struct plan_job *j = &now.job[g->job];
    uint32_t at = now.w.runs++;
    assert_true(at < RUNS);
    memcpy(now.held[at], g->gpu, g->gpus * sizeof now.held[at][0]);
    now.run[at] = (struct plan_run){.job = j->id,
                                    .user = j->user,
                                    .gpus = g->gpus,
                                    .share_bytes = j->share_bytes,
                                    .start_ns = now.w.now_ns,
                                    .end_ns = j->expect_ns ? now.w.now_ns + j->expect_ns : 0};
    now.end_ns[at] = now.w.now_ns + now.real_ns[g->job];
    if (g->is_turn) now.user[j->user].turn_ns = now.w.now_ns;
    if (j->room != UINT32_MAX) j->room--;
    if (!--j->elements) plan_line_drop(line, now.job, g->job);
}

static void end_some(void) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < now.w.runs; i++) {
        uint32_t job = (uint32_t)now.run[i].job - 1;
        if (now.end_ns[i] <= now.w.now_ns) {
            if (now.job[job].room != UINT32_MAX) now.job[job].room++;
            now.user[now.run[i].user].usage_s += (double)now.real_ns[job] / 1e9;
            continue;
        }
        now.run[left] = now.run[i];
        now.end_ns[left] = now.end_ns[i];
        memcpy(now.held[left++], now.held[i], sizeof now.held[i]);
    }
    now.w.runs = left;
}

/* Both are asked of the same world; what they say must be the same to the GPU. */
static size_t both(struct plan *kept, struct plan *fresh, struct plan_line *line, const struct plan_grant **ret) {
    const struct plan_grant *other;
    for (uint32_t i = 0; i < now.w.runs; i++) now.run[i].gpu = now.held[i];
    now.w.line = line;
    size_t n = plan_pass(kept, &now.w, ret);
    now.w.line = NULL;
    assert_int_equal(plan_pass(fresh, &now.w, &other), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal((*ret)[i].job, other[i].job);
        assert_int_equal((*ret)[i].gpus, other[i].gpus);
        assert_memory_equal((*ret)[i].gpu, other[i].gpu, other[i].gpus * sizeof other[i].gpu[0]);
    }
    return n;
}

/* One that waits for another is not in the line, and comes to its old place later; of one that waits something else may be
 * expected than before. */
static void hold_and_let_go(struct plan_line *line, uint32_t jobs, uint32_t *held) {
    uint32_t j = (uint32_t)random_below(jobs);
    struct plan_job *job = &now.job[j];
    if (held[j]) {
        job->elements = held[j];
        held[j] = 0;
        plan_line_add(line, now.job, j);
    } else if (job->elements && random_below(2)) {
        plan_line_drop(line, now.job, j);
        job->expect_ns = (int64_t)random_below(3000) * SECOND;
        plan_line_add(line, now.job, j);
    } else if (job->elements) {
        plan_line_drop(line, now.job, j);
        held[j] = job->elements;
        job->elements = 0;
    }
}

static uint32_t history(uint64_t seed, const struct plan_policy *policy) {
    struct plan *kept = plan_new(), *fresh = plan_new();
    struct plan_line *line = plan_line_new(policy);
    uint32_t jobs = 0, started = 0, held[JOBS] = {0}; /* held: elements of those that are not in line */
    begin(seed);
    now.w.policy = policy;
    now.w.fair_wait_ns = seed % 2 ? 1500 * SECOND : 0;
    for (int step = 0; step < 400; step++) {
        const struct plan_grant *g;
        if (jobs < JOBS && random_below(2)) {
            come(jobs);
            plan_line_add(line, now.job, jobs++);
        }
        if (jobs && !random_below(3)) hold_and_let_go(line, jobs, held);
        if (!random_below(3)) now.w.now_ns += (int64_t)random_below(900) * SECOND;
        if (!random_below(40)) now.w.now_ns -= (int64_t)random_below(600) * SECOND; /* a clock that is set back */
        if (!random_below(10))
            now.gpu[random_below(GPUS)].verdict = random_below(2) ? OCCUPANCY_FREE : OCCUPANCY_CORDONED;
        if (!random_below(20)) { /* people keep some, and give it back */
            now.w.windows = now.w.windows ? 0 : 1;
            now.users_of_window[0] = (uint32_t)random_below(USERS);
            now.window[0] = (struct plan_window){.gpu = (uint32_t)random_below(GPUS),
                                                 .user = now.users_of_window,
                                                 .users = 1,
                                                 .from_ns = now.w.now_ns + 100 * SECOND,
                                                 .to_ns = now.w.now_ns + 2000 * SECOND};
        }
        end_some();
        size_t n = both(kept, fresh, line, &g);
        for (size_t i = 0; i < n; i++) start(line, &g[i]);
        started += (uint32_t)n;
    }
    plan_free(kept);
    plan_free(fresh);
    plan_line_free(line);
    return started;
}

static void same_as_fresh(void **state) {
    for (size_t p = 0; p < plan_policies_count; p++) {
        uint32_t started = 0;
        for (uint64_t seed = 1; seed <= 30; seed++) started += history(seed * 7 + p, &plan_policies[p]);
        assert_true(started > 1500); /* else nothing was compared */
    }
}

/* Three jobs for one GPU: who is first is what the policy says. */
static void orders(void **state) {
    static const struct {
        const char *policy;
        uint32_t first;
    } rows[] = {
        {"fair",     2},
        {"fifo",     0},
        {"backfill", 0},
        {"edf",      1},
        {"sjf",      3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct plan *p = plan_new();
        const struct plan_grant *g;
        begin(1);
        now.w.gpus = 1;
        now.w.policy = plan_policy_find(rows[i].policy);
        assert_non_null(now.w.policy);
        for (uint32_t j = 0; j < 4; j++)
            now.job[j] = (struct plan_job){.id = j + 1,
                                           .node = PLAN_NONE,
                                           .gpus = 1,
                                           .elements = 1,
                                           .room = UINT32_MAX,
                                           .expect_ns = 5000 * SECOND};
        now.user[0].usage_s = 1e6;
        now.job[1].finish_by_ns = now.w.now_ns + 90000 * SECOND; /* far from urgent */
        now.job[2].user = 1;                                     /* who had nothing */
        now.job[3].expect_ns = 50 * SECOND;
        now.w.jobs = 4;
        assert_int_equal(plan_pass(p, &now.w, &g), 1);
        assert_int_equal(g[0].job, rows[i].first);
        plan_free(p);
    }
}

/* A job for two, of which one is free, and a short one behind it: only fifo lets nobody past. */
static void nobody_past(void **state) {
    for (size_t i = 0; i < plan_policies_count; i++) {
        struct plan *p = plan_new();
        const struct plan_grant *g;
        static const uint32_t first[] = {0};
        begin(1);
        now.w.gpus = 2;
        now.w.policy = &plan_policies[i];
        now.run[0] = (struct plan_run){
            .job = 99, .gpu = first, .gpus = 1, .start_ns = 1, .end_ns = now.w.now_ns + 1000 * SECOND};
        now.w.runs = 1;
        now.job[0] = (struct plan_job){
            .id = 1, .node = PLAN_NONE, .gpus = 2, .elements = 1, .room = UINT32_MAX, .expect_ns = 5 * SECOND};
        now.job[1] = now.job[0];
        now.job[1].id = 2;
        now.job[1].gpus = 1;
        now.job[1].most_ns = now.job[1].expect_ns = 100 * SECOND;
        now.w.jobs = 2;
        size_t n = plan_pass(p, &now.w, &g);
        assert_int_equal(n, plan_policies[i].is_backfill ? 1 : 0);
        plan_free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_fresh),
        cmocka_unit_test(orders),
        cmocka_unit_test(nobody_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
