/* Random histories of a queue: whatever comes, no GPU is given twice, nobody gets a part of what he asked for, who is first
 * never starts later because of somebody behind him, limits hold, and what is said is true. */
#include "tests/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan_life.h"
#include "model/duration.h"
#include "model/size.h"

#define SECOND LIFE_SECOND
#define GIB (1ull << 30)

/* What a history may have in it. */
enum {
    SCOPES = 1,
    SHARES = 2,
    LIMITS = 4,
    UNKNOWN = 8,
    DEADLINES = 16,
    ARRAYS = 32,
    PRIORITIES = 64,
    FOREIGN = 128,
    AGED = 256
};

static struct life life;
static char note[128]; /* where we are, for a failure */

#define NEED(truth)                                                                                                    \
    do {                                                                                                               \
        if (!(truth)) fail_msg("%s: %s", note, #truth);                                                                \
    } while (0)

static void some_scope(struct life_job *j, uint32_t *room) {
    uint32_t node = (uint32_t)life_random(&life, life.gpus / 4);
    j->scope = room;
    j->is_scoped = true;
    for (uint32_t g = 0; g < 4; g++)
        if (life_random(&life, 2)) room[j->scope_len++] = node * 4 + g;
    if (!j->scope_len) room[j->scope_len++] = node * 4;
    j->gpus = 1 + (int)life_random(&life, j->scope_len);
}

static void submit(int has) {
    uint32_t room[4];
    struct life_job j = {.node = PLAN_NONE, .user = (uint32_t)life_random(&life, life.users)};
    int64_t s = (int64_t)(10 + life_random(&life, 600));
    j.gpus = life_random(&life, 4) ? 1 + (int)life_random(&life, 2) : 1 + (int)life_random(&life, 4);
    j.real_ns = j.expect_ns = s * SECOND;
    if (life_random(&life, 2)) j.most_ns = j.expect_ns + (int64_t)life_random(&life, 2) * s * SECOND;
    if ((has & UNKNOWN) && !life_random(&life, 3)) j.expect_ns = j.most_ns = 0;
    if ((has & SCOPES) && !life_random(&life, 3)) some_scope(&j, room);
    if ((has & SHARES) && !life_random(&life, 3)) {
        j.gpus = 1;
        j.share_bytes = (1 + life_random(&life, 50)) * GIB;
    } else if (!life_random(&life, 4)) {
        j.memory_bytes = life_random(&life, 2) ? 60 * GIB : 30 * GIB;
    }
    if (has & PRIORITIES) j.priority = (int)life_random(&life, 3) - 1;
    if ((has & DEADLINES) && !life_random(&life, 3))
        j.finish_by_ns = life.now_ns + (int64_t)(s + 2000 * (int64_t)life_random(&life, 3)) * SECOND;
    if ((has & ARRAYS) && !life_random(&life, 5)) {
        j.elements = 1 + (uint32_t)life_random(&life, 12);
        j.at_once = (uint32_t)life_random(&life, 4);
    }
    life_submit(&life, &j);
}

/* ---- what must hold of every grant and every moment ---- */

static void nothing_twice(void) {
    for (uint32_t g = 0; g < life.gpus; g++) {
        uint64_t bytes = 0;
        int whole = 0;
        for (uint32_t i = 0; i < life.runs; i++)
            for (uint16_t k = 0; k < life.run[i].gpus; k++) {
                if (life.run[i].gpu[k] != g) continue;
                uint64_t share = life.job[life.run[i].job].share_bytes;
                bytes += share;
                whole += !share;
            }
        NEED(whole <= 1 && (!whole || !bytes) && bytes <= life.gpu[g].memory_bytes);
    }
}

static bool is_in_scope(const struct life_job *j, uint32_t gpu) {
    for (uint32_t i = 0; i < j->scope_len; i++)
        if (j->scope[i] == gpu) return true;
    return !j->is_scoped;
}

static void as_asked_for(const struct life_run *r) {
    const struct life_job *j = &life.job[r->job];
    NEED(r->gpus == j->gpus);
    for (uint16_t k = 0; k < r->gpus; k++) {
        const struct plan_gpu *g = &life.gpu[r->gpu[k]];
        NEED(g->node == life.gpu[r->gpu[0]].node && g->memory_bytes >= j->memory_bytes && is_in_scope(j, r->gpu[k]));
        NEED(g->verdict == OCCUPANCY_FREE && g->is_here);
        for (uint16_t i = 0; i < k; i++) NEED(r->gpu[i] != r->gpu[k]);
    }
}

static void within_limits(void) {
    double held[8] = {0};
    for (uint32_t i = 0; i < life.runs; i++) {
        const struct life_job *j = &life.job[life.run[i].job];
        held[j->user] += j->share_bytes ? 0 : life.run[i].gpus;
        NEED(!j->at_once || j->started - j->over <= j->at_once);
    }
    for (uint32_t u = 0; u < life.users; u++) NEED(!life.user[u].gpus_max || held[u] <= life.user[u].gpus_max);
}

/* Of one user's jobs that differ in nothing but when they came, the first starts first. */
static bool is_alike(const struct life_job *a, const struct life_job *b) {
    return a->user == b->user && a->priority == b->priority && a->gpus == b->gpus &&
           a->memory_bytes == b->memory_bytes && a->share_bytes == b->share_bytes && !a->is_scoped && !b->is_scoped &&
           !a->finish_by_ns && !b->finish_by_ns && !a->at_once && !b->at_once && a->most_ns == b->most_ns;
}

static void first_come(uint32_t job) {
    for (uint32_t i = 0; i < life.waits; i++) {
        uint32_t waits = life.waiting[i];
        if (waits < job && is_alike(&life.job[waits], &life.job[job]))
            fail_msg("%s: job %u went past job %u", note, job + 1, waits + 1);
    }
}

static void same_again(const struct plan_world *w) {
    const struct plan_grant *a, *b;
    struct plan *other = plan_new();
    size_t n = plan_pass(life.plan, w, &a), m = plan_pass(other, w, &b);
    NEED(n == m && (!n || memcmp(a, b, n * sizeof *a) == 0));
    plan_free(other);
}

/* ---- what is said ---- */

static bool is_granted(uint32_t job) {
    const struct plan_grant *g;
    size_t n = plan_pass(life.plan, &life.world, &g);
    for (size_t i = 0; i < n; i++)
        if (g[i].job == job) return true;
    return false;
}

/* The job as the hint would have it; false: a hint that this test does not know. */
static bool follow(const char *hint, struct plan_job *j) {
    char text[64];
    int gpus;
    struct error e;
    if (sscanf(hint, "now with a time limit of %63s", text) == 1) return duration_parse(text, &j->most_ns, &e) == 0;
    if (sscanf(hint, "now with GPUs of %63[^i] instead", text) == 1) {
        char *end = strstr(text, "iB");
        if (!end) snprintf(text + strlen(text), 4, "iB");
        return size_parse(text, &j->memory_bytes, &e) == 0;
    }
    if (sscanf(hint, "now with %d GPU", &gpus) == 1) {
        j->gpus = gpus;
        return true;
    }
    if (strncmp(hint, "now on ", 7) != 0 && strncmp(hint, "now with any ", 13) != 0) return false;
    j->is_scoped = false;
    j->scope_len = 0;
    return true;
}

static int hints;

static void what_is_said(void) {
    static struct plan_reason r[256];
    uint32_t which[256], n = life.waits < 256 ? life.waits : 256;
    bool seen[257] = {0};
    for (uint32_t i = 0; i < n; i++) which[i] = i;
    plan_explain(life.plan, life_world(&life), which, n, r);
    for (uint32_t i = 0; i < n; i++) {
        NEED(r[i].why[0] && r[i].place >= 1 && r[i].place <= life.waits);
        NEED(n < life.waits || !seen[r[i].place]);
        if (r[i].place <= 256) seen[r[i].place] = true;
        NEED(r[i].is_now == is_granted(i));
        NEED(!r[i].start_ns || r[i].start_ns >= life.now_ns);
        if (!r[i].sooner[0]) continue;
        struct plan_job was = life.plan_job[i];
        hints++;
        if (!follow(r[i].sooner, &life.plan_job[i])) fail_msg("%s: what is \"%s\"?", note, r[i].sooner);
        if (!is_granted(i)) fail_msg("%s: job %u: \"%s\" is not true", note, life.waiting[i] + 1, r[i].sooner);
        life.plan_job[i] = was;
    }
}

/* ---- a history ---- */

/* Who is first, and when he will start: as long as he is first, that does not become later. */
static struct { int64_t id, start_ns; } head;
static int heads;

static void head_is_not_delayed(bool is_new) {
    uint32_t n = life.waits < 256 ? life.waits : 256, which[256];
    static struct plan_reason r[256];
    for (uint32_t i = 0; i < n; i++) which[i] = i;
    plan_explain(life.plan, life_world(&life), which, n, r);
    int64_t was = is_new ? 0 : head.id, was_ns = head.start_ns;
    head.id = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (r[i].place != 1 || !r[i].start_ns || !life.plan_job[i].expect_ns) continue;
        if (life.job[life.waiting[i]].elements > 1) continue; /* each start makes another element the next */
        head.id = life.plan_job[i].id;
        head.start_ns = r[i].start_ns;
        heads++;
        if (head.id == was && head.start_ns > was_ns)
            fail_msg("%s: job %lld was to start at %lld s and is to at %lld s", note, (long long)was,
                     (long long)(was_ns / SECOND), (long long)(head.start_ns / SECOND));
    }
}

static void moment(int has, bool is_said, bool is_new) {
    uint32_t before = life.runs;
    bool is_headed = !(has & (UNKNOWN | FOREIGN | LIMITS));
    if (is_headed) head_is_not_delayed(is_new); /* by time alone */
    same_again(life_world(&life));
    life_pass(&life);
    for (uint32_t i = before; i < life.runs; i++) {
        as_asked_for(&life.run[i]);
        first_come(life.run[i].job);
    }
    nothing_twice();
    within_limits();
    same_again(life_world(&life));
    NEED(life_pass(&life) == 0);               /* all that could start did */
    if (is_headed) head_is_not_delayed(false); /* by the pass */
    if (is_said) what_is_said();
}

static void history(uint64_t seed, int has) {
    life_init(&life, seed, 1 + (uint32_t)(seed % 3), 4, 4);
    for (uint32_t g = 0; g < life.gpus; g++)
        if (g % 3 == 0) life.gpu[g].memory_bytes = 40 * GIB;
    if (has & LIMITS) life.user[0].gpus_max = 2, life.user[1].gpus_max = 5;
    if (has & AGED) life.fair_wait_ns = 300 * SECOND;
    head.id = 0;
    for (int step = 0; step < 120; step++) {
        snprintf(note, sizeof note, "seed %llu, %d, step %d", (unsigned long long)seed, has, step);
        bool is_new = step < 80 && life_random(&life, 2);
        int64_t end = life_next_end(&life);
        if (is_new)
            for (uint64_t k = 1 + life_random(&life, 5); k > 0; k--) submit(has);
        else if (end != PLAN_NEVER)
            life_until(&life, end);
        if ((has & FOREIGN) && !life_random(&life, 4)) {
            struct plan_gpu *g = &life.gpu[life_random(&life, life.gpus)];
            g->verdict = g->verdict ? OCCUPANCY_FREE : life_random(&life, 2) ? OCCUPANCY_FOREIGN : OCCUPANCY_MEMORY;
            g->since_ns = life.now_ns;
        }
        moment(has, step % 7 == 0, is_new);
    }
    for (uint32_t g = 0; g < life.gpus; g++) life.gpu[g].verdict = OCCUPANCY_FREE;
    life.user[0].gpus_max = life.user[1].gpus_max = 0;
    for (int64_t end; moment(has & UNKNOWN, false, true), (end = life_next_end(&life)) != PLAN_NEVER;)
        life_until(&life, end);
    for (uint32_t i = 0; i < life.waits; i++) { /* whoever waits still asks for what is not there */
        const struct life_job *j = &life.job[life.waiting[i]];
        struct plan_job as = life_world(&life)->job[i];
        struct error e;
        if (plan_admit(&life.world, &as, &e) == 0) fail_msg("%s: job %lld never started", note, (long long)j->id);
    }
    life_done(&life);
}

static uint64_t seeds = 4;

static void histories(void **state) {
    static const int kinds[] = {0,
                                SCOPES,
                                SCOPES | PRIORITIES,
                                SHARES,
                                SHARES | SCOPES,
                                LIMITS | SHARES,
                                UNKNOWN,
                                FOREIGN,
                                DEADLINES,
                                ARRAYS | LIMITS,
                                AGED,
                                AGED | DEADLINES | ARRAYS | LIMITS,
                                AGED | SCOPES | SHARES | UNKNOWN | DEADLINES | ARRAYS | PRIORITIES | FOREIGN,
                                SCOPES | SHARES | LIMITS | UNKNOWN | DEADLINES | ARRAYS | PRIORITIES | FOREIGN};
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (uint64_t seed = 1; seed <= seeds; seed++) history(seed, kinds[k]);
    assert_true(hints > 200 && heads > 500); /* else the tests above have looked at nothing */
}

/* A large job among a stream of small ones: it starts when those are over that ran as it came. */
static void nobody_starves(void **state) {
    for (int limited = 0; limited < 2; limited++) {
        life_init(&life, 7, 1, 8, 4);
        int64_t longest = 0;
        for (int i = 0; i < 400; i++) {
            struct life_job small = {.node = PLAN_NONE, .gpus = 1, .user = (uint32_t)(i % 4)};
            small.real_ns = small.expect_ns = (60 + (int64_t)life_random(&life, 600)) * SECOND;
            small.most_ns = limited ? small.real_ns : 0;
            life_submit(&life, &small);
        }
        life_pass(&life);
        for (uint32_t i = 0; i < life.runs; i++)
            if (life.run[i].end_ns > longest) longest = life.run[i].end_ns;
        struct life_job large = {.node = PLAN_NONE, .gpus = 8, .priority = 1, .real_ns = SECOND, .expect_ns = SECOND};
        life_submit(&life, &large);
        while (life.job[400].started == 0) {
            life_pass(&life);
            if (life.job[400].started) break;
            life_until(&life, life_next_end(&life));
            assert_true(life.now_ns <= longest);
        }
        assert_true(life.now_ns <= longest);
        life_done(&life);
    }
}

/* One who had very much, among others who never stop, each with what can only just be done in time: he starts when he has waited
 * for so long, as soon as a GPU is free. His other jobs wait for their turn, and leave the others theirs. */
static void nobody_waits_for_what_he_had(void **state) {
    enum { ALL = 300, OWN = 40 };
    const int64_t wait_ns = 3600 * SECOND, run_ns = 600 * SECOND;
    for (int bounded = 0; bounded < 2; bounded++) {
        uint32_t own[OWN] = {0}, others = 0;
        life_init(&life, 7, 1, 4, 4);
        life.fair_wait_ns = bounded ? wait_ns : 0;
        life.user[0].usage_s = 1e9;
        for (int i = 0; i < ALL; i++) {
            struct life_job j = {.node = PLAN_NONE, .gpus = 1, .real_ns = run_ns, .expect_ns = run_ns};
            if (i < OWN) own[i] = life.jobs;
            if (i < OWN) life_submit(&life, &j);
            for (int k = 0; k < 4; k++) {
                j.user = 1 + (uint32_t)(k % 3);
                j.finish_by_ns = life.now_ns + 2 * run_ns;
                life_submit(&life, &j);
            }
            life_pass(&life);
            life_until(&life, life_next_end(&life));
        }
        for (uint32_t i = 0; i < life.jobs; i++) others += life.job[i].user && life.job[i].started;
        if (bounded) {
            assert_true(life.job[own[0]].started && life.job[own[0]].first_start_ns <= wait_ns + run_ns);
            for (int i = 0; i < OWN; i++) assert_true(life.job[own[i]].started);
            assert_true(others >= 3 * ALL); /* he never had more than one of the four */
        } else {
            assert_false(life.job[own[0]].started);
        }
        life_done(&life);
    }
}

/* test_unit_plan_random [SEEDS]: more histories than the suite has time for. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(histories), cmocka_unit_test(nobody_starves),
                                       cmocka_unit_test(nobody_waits_for_what_he_had)};
    if (argc > 1) seeds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
