/* Who gives GPUs back for somebody more important: the fewest, the least important, and never in vain. */
#include "tests/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/preempt.h"

#define SECOND 1000000000LL
#define NOW (1000000 * SECOND)
enum { GPUS = 16, RUNS = 16, JOBS = 16 };

static struct {
    struct plan_world w;
    struct plan_gpu gpu[GPUS];
    struct plan_run run[RUNS];
    struct preempt_run how[RUNS];
    struct plan_job job[JOBS];
    struct plan_user user;
    uint32_t held[RUNS][GPUS];
    uint32_t scope[JOBS][GPUS];
} now;
static struct plan *plan;

static void world(uint32_t nodes, uint32_t each) {
    memset(&now, 0, sizeof now);
    now.user = (struct plan_user){.name = "ada", .seconds_left = INFINITY};
    now.w = (struct plan_world){.now_ns = NOW,
                                .gpu = now.gpu,
                                .run = now.run,
                                .job = now.job,
                                .user = &now.user,
                                .gpus = nodes * each,
                                .users = 1};
    for (uint32_t g = 0; g < now.w.gpus; g++)
        now.gpu[g] = (struct plan_gpu){.node = g / each * each,
                                       .index = (int)(g % each),
                                       .memory_bytes = 1ull << 35,
                                       .is_here = true,
                                       .temp_c = NAN,
                                       .node_name = "n"};
}

static void run(uint32_t first, uint16_t count, int priority, bool yields) {
    uint32_t at = now.w.runs++;
    for (uint32_t i = 0; i < count; i++) now.held[at][i] = first + i;
    now.run[at] = (struct plan_run){
        .job = 100 + at, .gpu = now.held[at], .gpus = count, .start_ns = NOW - (int64_t)(100 - at) * SECOND};
    now.how[at] = (struct preempt_run){.priority = priority, .yields = yields};
}

static struct plan_job *job(int gpus, int priority) {
    struct plan_job *j = &now.job[now.w.jobs++];
    *j = (struct plan_job){
        .id = now.w.jobs, .gpus = gpus, .priority = priority, .node = PLAN_NONE, .elements = 1, .room = UINT32_MAX};
    return j;
}

/* "1,3 ": the places of those that are to end. */
static const char *chosen(void) {
    static char text[200];
    uint32_t of[PREEMPT_RUNS_MAX], whom[PREEMPT_RUNS_MAX];
    size_t n = preempt_choose(plan, &now.w, now.how, of, whom), at = 0;
    text[0] = 0;
    for (size_t i = 0; i < n; i++) at += (size_t)snprintf(text + at, sizeof text - at, "%s%u", i ? "," : "", of[i]);
    return text;
}

static void rules(void **state) {
    world(1, 4);
    for (uint32_t g = 0; g < 4; g++) run(g, 1, 0, g != 0); /* 0 does not yield */
    assert_string_equal(chosen(), "");                     /* nobody waits */
    job(1, 0);
    assert_string_equal(chosen(), ""); /* as important is not more important */
    now.job[0].priority = 1;
    assert_string_equal(chosen(), "3"); /* the one that began last */
    now.how[1].priority = -5;
    assert_string_equal(chosen(), "1"); /* the least important */
    now.job[0].gpus = 3;
    assert_string_equal(chosen(), "1,2,3");
    now.job[0].gpus = 4;
    assert_string_equal(chosen(), ""); /* in vain: 0 stays */
    now.job[0].gpus = 2;
    now.how[1].is_ending = true;
    assert_string_equal(chosen(), "3"); /* one is coming already */
    now.how[3].is_ending = true;
    assert_string_equal(chosen(), "");
}

static void fewest(void **state) {
    world(1, 4);
    run(0, 1, -9, true);
    run(1, 1, -9, true);
    run(2, 2, 0, true);
    job(2, 5);
    assert_string_equal(chosen(), "2"); /* one instead of two */
    now.how[2].priority = 5;
    assert_string_equal(chosen(), "0,1");
    now.how[2].priority = 9;
    now.job[0].gpus = 3;
    assert_string_equal(chosen(), "");
}

static void where(void **state) {
    world(2, 2);
    run(0, 2, 0, true);
    run(2, 1, 0, true);
    run(3, 1, 0, false);
    struct plan_job *j = job(1, 1);
    j->node = 0;
    assert_string_equal(chosen(), "0");
    j->node = 2;
    assert_string_equal(chosen(), "1");
    j->gpus = 2;
    assert_string_equal(chosen(), ""); /* there one does not yield */
    j->node = PLAN_NONE;
    assert_string_equal(chosen(), "0");
    j->gpus = 1;
    j->is_scoped = true;
    j->scope = now.scope[0];
    now.scope[0][0] = 3;
    j->scope_len = 1;
    assert_string_equal(chosen(), "");
    now.scope[0][0] = 2;
    assert_string_equal(chosen(), "1");
    now.gpu[2].verdict = OCCUPANCY_FOREIGN; /* even without the run it is not free */
    assert_string_equal(chosen(), "");
}

/* Several wait: each gets its own, and nobody's are counted twice. */
static void several(void **state) {
    world(1, 4);
    for (uint32_t g = 0; g < 4; g++) run(g, 1, 0, true);
    job(1, 1);
    job(1, 1);
    assert_string_equal(chosen(), "3,2");
    job(2, 9);
    uint32_t of[PREEMPT_RUNS_MAX], whom[PREEMPT_RUNS_MAX];
    assert_int_equal(preempt_choose(plan, &now.w, now.how, of, whom), 4);
    assert_int_equal(whom[0], 2); /* the most important first */
    assert_int_equal(whom[1], 2);
}

/* ---- against every set there is ---- */

static unsigned seed;
static unsigned any(unsigned n) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % n;
}

static bool does(unsigned gone) {
    struct plan_run left[RUNS];
    struct plan_world w = now.w;
    const struct plan_grant *grant;
    w.run = left;
    w.runs = 0;
    for (uint32_t i = 0; i < now.w.runs; i++)
        if (!(gone & 1u << i)) left[w.runs++] = now.run[i];
    return plan_pass(plan, &w, &grant) == 1;
}

static void random_worlds(void **state) {
    unsigned found = 0;
    for (unsigned n = 0; n < 3000; n++) {
        seed = n * 104729 + 7;
        world(1 + any(2), 4);
        for (uint32_t g = 0; g < now.w.gpus;) {
            uint16_t count = (uint16_t)(1 + any(2));
            if (g % 4 + count > 4) count = 1;
            if (any(5)) run(g, count, (int)any(4), any(3) > 0);
            g += count;
        }
        job(1 + (int)any(4), 1 + (int)any(4));
        unsigned may = 0, best = 99;
        for (uint32_t i = 0; i < now.w.runs; i++)
            if (now.how[i].yields && now.how[i].priority < now.job[0].priority) may |= 1u << i;
        for (unsigned set = 0; set < 1u << now.w.runs; set++)
            if ((set & ~may) == 0 && (unsigned)__builtin_popcount(set) < best && does(set))
                best = (unsigned)__builtin_popcount(set);
        uint32_t of[PREEMPT_RUNS_MAX], whom[PREEMPT_RUNS_MAX];
        unsigned set = 0;
        size_t count = preempt_choose(plan, &now.w, now.how, of, whom);
        for (size_t i = 0; i < count; i++) set |= 1u << of[i];
        if ((set & ~may) != 0) fail_msg("world %u: one that may not be ended", n);
        if (best == 99 || best == 0) {
            if (count) fail_msg("world %u: in vain", n);
            continue;
        }
        found++;
        if (!does(set)) fail_msg("world %u: not enough", n);
        for (size_t i = 0; i < count; i++)
            if (does(set & ~(1u << of[i]))) fail_msg("world %u: one too many", n);
        if (best <= 2 && count != best) fail_msg("world %u: %zu where %u do", n, count, best);
    }
    assert_true(found > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),   cmocka_unit_test(fewest),        cmocka_unit_test(where),
        cmocka_unit_test(several), cmocka_unit_test(random_worlds),
    };
    plan = plan_new();
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    plan_free(plan);
    return r;
}
