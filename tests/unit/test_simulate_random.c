/* Random traces with shares, arrays, followers, limits of users and reservations: what must hold at every moment of a play,
 * whatever the policy, looked up here without the code that plays. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/simulate.h"

#define SECOND 1000000000LL
#define HOUR (3600 * SECOND)
#define GIB (1ull << 30)
#define CARD (80 * GIB)

enum { NODES = 3, EACH = 4, GPUS = NODES * EACH, USERS = 4, JOBS = 250, WINDOWS = 24 };

static uint64_t seed;
static uint64_t below(uint64_t n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % n;
}

/* ---- a trace ---- */

static void add(struct trace *t, const struct trace_job *j) {
    struct error e;
    assert_int_equal(trace_add(t, j, &e), 0);
}

static struct trace made_up(uint64_t from) {
    static const char *const names[USERS] = {"ada", "bob", "cyd", "dan"};
    struct trace t = {0};
    struct error e;
    uint32_t user;
    seed = from;
    for (size_t u = 0; u < USERS; u++) assert_int_equal(trace_user(&t, names[u], 3, &user, &e), 0);
    while (t.jobs < JOBS) {
        int64_t submit_ns = 1700000000 * SECOND + (int64_t)below(48 * 3600) * SECOND, s = 60 + (int64_t)below(9000);
        struct trace_job j = {.submit_ns = submit_ns,
                              .run_ns = s * SECOND,
                              .start_ns = -1,
                              .limit_ns = below(3) ? (s / 2 + (int64_t)below((uint64_t)(2 * s))) * SECOND : 0,
                              .like = below(12),
                              .user = (uint32_t)below(USERS),
                              .node = below(8) ? TRACE_NONE : (uint32_t)below(NODES) * EACH,
                              .array = TRACE_NONE,
                              .gpu = TRACE_NONE,
                              .gpus = 1 + (int)below(below(3) ? 1 : EACH),
                              .priority = (int)below(3),
                              .finish_by_ns = below(4) ? 0 : submit_ns + 3 * s * SECOND};
        if (!below(3)) {
            j.gpus = 1;
            j.share_bytes = (1 + below(60)) * GIB;
        }
        if (!below(6)) j.pause_ns = 30 * SECOND;
        if (t.jobs > 5 && !below(5)) {
            j.after_at = t.list_len;
            for (j.after_len = 0; j.after_len < 1 + below(2); j.after_len++)
                trace_list_add(&t, (uint32_t)below(t.jobs));
        }
        bool is_array = !below(8);
        uint32_t first = t.jobs;
        if (is_array) j.at_once = 1 + (uint32_t)below(3);
        add(&t, &j);
        j.after_len = 0; /* to each its own list */
        for (uint64_t more = is_array ? 1 + below(6) : 0; more; more--) {
            j.array = first;
            j.run_ns = (60 + (int64_t)below(3000)) * SECOND;
            add(&t, &j);
        }
    }
    trace_order(&t);
    return t;
}

/* Windows that do not overlap on a GPU: one after the other on each of some. */
static uint32_t windows(const struct trace *t, struct simulate_window *w, uint32_t (*gpu)[2], uint32_t *user) {
    uint32_t count = 0;
    int64_t zero_s = t->zero_ns / SECOND;
    for (uint32_t k = 0; k < WINDOWS; k++) {
        int64_t at = zero_s + 3600 * (int64_t)(k + 1 + below(2)), length = 60 * (int64_t)(1 + below(50));
        uint32_t first = (k % 3) * 4 + (k % 2) * 2; /* a pair of each machine in turn, six hours apart */
        gpu[k][0] = first;
        gpu[k][1] = first + 1;
        user[k] = (uint32_t)below(USERS);
        w[count++] = (struct simulate_window){at, at + length, INT64_MIN, gpu[k], &user[k], 2, 1};
    }
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k && w[k].from_s < w[k - 1].from_s; k--) {
            struct simulate_window other = w[k];
            w[k] = w[k - 1];
            w[k - 1] = other;
        }
    return count;
}

/* ---- what must hold ---- */

static int64_t end_of(const struct trace *t, const struct simulate_result *r, uint32_t i) {
    const struct trace_job *j = &t->job[i];
    return r->start_ns[i] + (j->limit_ns && j->limit_ns < j->run_ns ? j->limit_ns : j->run_ns);
}

static bool runs_at(const struct trace *t, const struct simulate_result *r, uint32_t i, int64_t at) {
    return r->start_ns[i] >= 0 && r->start_ns[i] <= at && end_of(t, r, i) > at;
}

static double worth(const struct trace_job *j) {
    return j->share_bytes ? (double)j->share_bytes / (double)CARD : j->gpus;
}

/* Just after job i began: what its GPUs, its user and its array have. */
static void at_start(const struct trace *t, const struct simulate_setup *s, const struct simulate_result *r,
                     uint32_t i) {
    const struct trace_job *j = &t->job[i];
    uint64_t used[GPUS] = {0};
    double held = 0;
    uint32_t active = 0;
    for (uint32_t k = 0; k < t->jobs; k++) {
        const struct trace_job *o = &t->job[k];
        if (!runs_at(t, r, k, r->start_ns[i])) continue;
        for (int g = 0; g < o->gpus; g++)
            used[r->gpu_list[r->gpu_at[k] + (uint32_t)g]] += o->share_bytes ? o->share_bytes : CARD;
        if (o->user == j->user) held += worth(o);
        active += o->array == j->array;
    }
    for (int g = 0; g < GPUS; g++) assert_true(used[g] <= CARD);
    if (s->user_gpus) assert_true(held <= s->user_gpus + 1e-9);
    if (j->at_once) assert_true(active <= j->at_once);
    for (int g = 0; g < j->gpus; g++) {
        uint32_t gpu = r->gpu_list[r->gpu_at[i] + (uint32_t)g];
        assert_int_equal(gpu / EACH, r->gpu_list[r->gpu_at[i]] / EACH); /* of one machine */
        if (j->node != TRACE_NONE) assert_int_equal(gpu / EACH * EACH, j->node);
    }
}

/* He had some of his hours left. */
static void hours_at_start(const struct trace *t, const struct simulate_setup *s, const struct simulate_result *r,
                           uint32_t i) {
    double had_s = 0;
    int64_t hour = (t->zero_ns + r->start_ns[i]) / HOUR;
    for (uint32_t k = 0; k < t->jobs; k++) {
        if (t->job[k].user != t->job[i].user || r->start_ns[k] < 0 || r->start_ns[k] >= r->start_ns[i]) continue;
        int64_t end_ns = end_of(t, r, k);
        bool is_over = end_ns <= r->start_ns[i];
        if (is_over && hour - (t->zero_ns + end_ns) / HOUR >= 168) continue;
        had_s += (double)((is_over ? end_ns : r->start_ns[i]) - r->start_ns[k]) / SECOND * worth(&t->job[k]);
    }
    assert_true(had_s < s->user_gpu_hours * 3600 + 1e-6);
}

static void outside_windows(const struct trace *t, const struct simulate_setup *s, const struct simulate_result *r,
                            uint32_t i) {
    for (uint32_t k = 0; k < s->windows; k++) {
        const struct simulate_window *w = &s->window[k];
        bool is_on = false, is_his = w->user[0] == t->job[i].user;
        for (int g = 0; g < t->job[i].gpus; g++) {
            uint32_t gpu = r->gpu_list[r->gpu_at[i] + (uint32_t)g];
            is_on |= gpu == w->gpu[0] || gpu == w->gpu[1];
        }
        int64_t from = w->from_s * SECOND - t->zero_ns, to = w->to_s * SECOND - t->zero_ns;
        assert_true(!is_on || is_his || r->start_ns[i] >= to || end_of(t, r, i) <= from);
    }
}

static void after_others(const struct trace *t, const struct simulate_result *r, uint32_t i) {
    const struct trace_job *j = &t->job[i];
    assert_true(r->start_ns[i] >= j->submit_ns);
    for (uint32_t k = 0; k < j->after_len; k++) {
        uint32_t before = t->list[j->after_at + k];
        assert_true(r->start_ns[before] >= 0);
        assert_true(r->start_ns[i] >= end_of(t, r, before) + j->pause_ns);
    }
}

static void play(uint64_t from, const struct plan_policy *policy, bool has_windows, bool has_limits) {
    struct trace t = made_up(from);
    struct simulate_window w[WINDOWS];
    uint32_t gpu[WINDOWS][2], user[WINDOWS];
    struct simulate_setup s = {.nodes = NODES,
                               .gpus_per_node = EACH,
                               .gpu_bytes = CARD,
                               .policy = policy,
                               .is_known = from % 3 == 0,
                               .is_close = from % 2,
                               .half_life_h = 24,
                               .fair_wait_ns = 6 * HOUR,
                               .ahead_s = 4000000000};
    if (has_windows) s.windows = windows(&t, w, gpu, user);
    s.window = w;
    if (has_limits) {
        s.user_gpus = 4;
        s.user_gpu_hours = 90;
    }
    struct simulate_result r, again;
    struct error e = {0};
    if (simulate(&t, &s, &r, &e) < 0 || simulate(&t, &s, &again, &e) < 0) fail_msg("%s", e.text);
    assert_memory_equal(r.start_ns, again.start_ns, t.jobs * sizeof *r.start_ns);
    assert_int_equal(r.jobs + r.left_out, t.jobs);
    assert_int_equal(r.left_out, 0); /* nothing here is more than there is */
    for (uint32_t i = 0; i < t.jobs; i++) {
        at_start(&t, &s, &r, i);
        after_others(&t, &r, i);
        if (has_windows) outside_windows(&t, &s, &r, i);
        if (has_limits) hours_at_start(&t, &s, &r, i);
    }
    simulate_done(&r);
    simulate_done(&again);
    trace_done(&t);
}

static void what_must_hold(void **state) {
    for (uint64_t from = 1; from <= 8; from++)
        for (size_t p = 0; p < plan_policies_count; p++) play(from * 31 + p, &plan_policies[p], from & 1, from & 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_must_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
