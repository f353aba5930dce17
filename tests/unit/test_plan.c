/* Who may start now, and why the others wait: one rule a test. Times are seconds after now. */
#include "tests/test.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan.h"

#define SECOND 1000000000LL
#define NOW (1000000 * SECOND)
#define GIB (1ull << 30)
enum { GPUS = 16, JOBS = 64, RUNS = 32, ADA = 0, BOB = 1, EVE = 2, USERS };

static struct {
    struct plan_world w;
    struct plan_gpu gpu[GPUS];
    struct plan_run run[RUNS];
    struct plan_job job[JOBS];
    struct plan_user user[USERS];
    struct plan_window window[4];
    uint32_t list[RUNS + JOBS][JOB_GPUS_MAX];
    uint32_t lists;
} now;
static struct plan *plan;

static void world(uint32_t nodes, uint32_t each) {
    memset(&now, 0, sizeof now);
    now.w = (struct plan_world){.now_ns = NOW,
                                .gpu = now.gpu,
                                .run = now.run,
                                .job = now.job,
                                .user = now.user,
                                .window = now.window,
                                .gpus = nodes * each,
                                .users = USERS};
    for (uint32_t g = 0; g < now.w.gpus; g++)
        now.gpu[g] = (struct plan_gpu){.node = g / each,
                                       .index = (int)(g % each),
                                       .memory_bytes = 40 * GIB,
                                       .is_here = true,
                                       .temp_c = NAN,
                                       .node_name = g / each ? "beta" : "alpha"};
    static const char *const names[] = {"ada", "bob", "eve"};
    for (int u = 0; u < USERS; u++) now.user[u] = (struct plan_user){.name = names[u], .seconds_left = INFINITY};
}

/* "0,3": numbers of GPUs. */
static uint32_t *numbers(const char *text, uint32_t *count) {
    uint32_t *list = now.list[now.lists++];
    *count = 0;
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',')
        list[(*count)++] = (uint32_t)strtoul(at, NULL, 10);
    return list;
}

static struct plan_run *run(const char *gpus, int64_t ends_s) {
    struct plan_run *r = &now.run[now.w.runs++];
    uint32_t count;
    *r = (struct plan_run){.job = 100 + now.w.runs, .start_ns = NOW - 3600 * SECOND, .gpu = numbers(gpus, &count)};
    r->gpus = (uint16_t)count;
    r->end_ns = ends_s ? NOW + ends_s * SECOND : 0;
    return r;
}

static struct plan_job *job(int gpus) {
    struct plan_job *j = &now.job[now.w.jobs++];
    *j = (struct plan_job){.id = now.w.jobs, .gpus = gpus, .node = PLAN_NONE, .elements = 1, .room = UINT32_MAX};
    return j;
}

static struct plan_job *exactly(const char *gpus) {
    struct plan_job *j = job(1);
    j->scope = numbers(gpus, &j->scope_len);
    j->is_scoped = true;
    j->gpus = (int)j->scope_len;
    return j;
}

/* "1:0,1 3:2": job 1 on GPUs 0 and 1, job 3 on GPU 2. */
static void expect_at(const char *want, int line) {
    const struct plan_grant *g;
    char got[512] = "";
    size_t n = plan_pass(plan, &now.w, &g), at = 0;
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%lld:", i ? " " : "", (long long)now.job[g[i].job].id);
        for (int k = 0; k < g[i].gpus; k++)
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%u", k ? "," : "", g[i].gpu[k]);
    }
    if (strcmp(got, want) != 0) {
        print_error("line %d: \"%s\" and not \"%s\"\n", line, got, want);
        _fail(__FILE__, line);
    }
}
#define EXPECT(want) expect_at(want, __LINE__)

static struct plan_reason reason_of(const struct plan_job *j) {
    struct plan_reason r;
    uint32_t which = (uint32_t)(j - now.job);
    plan_explain(plan, &now.w, &which, 1, &r);
    return r;
}

static void why_at(const struct plan_job *j, const char *why, const char *sooner, int64_t starts_s, int line) {
    struct plan_reason r = reason_of(j);
    int64_t want = starts_s < 0 ? 0 : NOW + starts_s * SECOND;
    if (strcmp(r.why, why) != 0 || strcmp(r.sooner, sooner) != 0 || r.start_ns != want) {
        print_error("line %d: \"%s\", \"%s\", %lld\n", line, r.why, r.sooner,
                    r.start_ns ? (long long)((r.start_ns - NOW) / SECOND) : -1);
        _fail(__FILE__, line);
    }
}
#define WHY(j, why, sooner, starts_s) why_at(j, why, sooner, starts_s, __LINE__)

static void first_come(void **state) {
    world(1, 4);
    EXPECT("");
    job(2), job(1), job(1), job(1);
    EXPECT("1:0,1 2:2 3:3");
}

static void all_or_nothing(void **state) {
    world(1, 4);
    run("0", 0);
    job(4);
    EXPECT("");
    world(2, 2); /* four are free, but two and two */
    job(3);
    EXPECT("");
    job(2);
    EXPECT("2:0,1");
}

/* Whoever would need the GPU of one that stays keeps nothing from others: it would keep it for ever. */
static void what_stays_is_not_waited_for(void **state) {
    world(1, 4);
    run("0", 0)->is_endless = true;
    struct plan_job *large = job(4), *small = job(1);
    EXPECT("2:1");
    WHY(large, "4 GPUs are needed and 3 of 4 are free; 1 kept by services", "now with 3 GPUs instead of 4", -1);
    exactly("0");
    EXPECT("2:1");
    large->gpus = 3; /* that can have them some day, and they are kept for it */
    run("1", 0);
    EXPECT("");
    now.run[0].is_endless = false;
    large->gpus = 4;
    now.run[1].end_ns = now.run[0].end_ns = NOW + 60 * SECOND;
    EXPECT("");
    small->most_ns = 30 * SECOND;
    EXPECT("2:2");
    world(1, 1);
    run("0", 0)->is_endless = true;
    now.run[0].share_bytes = 10 * GIB; /* the rest of it is for others */
    job(1)->share_bytes = 20 * GIB;
    EXPECT("1:0");
}

static void priorities(void **state) {
    world(1, 1);
    job(1), job(1)->priority = 5, job(1)->priority = -5;
    EXPECT("2:0");
    now.job[2].priority = 100;
    EXPECT("3:0");
}

static void kept_for_the_head(void **state) {
    world(1, 4);
    run("0,1", 600);
    job(4);                         /* at 600 */
    job(1);                         /* nobody knows for how long: not on what is kept */
    job(1)->most_ns = 601 * SECOND; /* too long */
    EXPECT("");
    job(1)->most_ns = 600 * SECOND;
    EXPECT("4:2");
    WHY(&now.job[0], "4 GPUs are needed and 2 of 4 are free; 2 held by jobs", "now with 2 GPUs instead of 4", 600);
    WHY(&now.job[1], "2 GPUs are free, but kept for job 1, which is ahead of it and needs 4",
        "now with a time limit of 10m or less", -1);
}

static void kept_without_a_known_end(void **state) {
    world(1, 4);
    run("0", 0);
    run("1", 600);
    job(3)->expect_ns = 60 * SECOND; /* 1, 2 and 3, at 600 */
    job(1)->most_ns = 600 * SECOND;
    EXPECT("2:2");
    now.run[1].end_ns = 0; /* now nobody knows: 2 and 3 are kept whatever the limit */
    EXPECT("");
    WHY(&now.job[0], "3 GPUs are needed and 2 of 4 are free; 2 held by jobs", "now with 2 GPUs instead of 3", -1);
    world(2, 2); /* what the head cannot use is free to take */
    run("0", 0);
    now.run[0].gpus = 1;
    run("2", 0);
    job(2);
    job(1);
    EXPECT("2:3");
}

static void every_kind_is_kept(void **state) {
    world(1, 3);
    run("0", 0);
    exactly("0"), exactly("0"), exactly("0");
    job(2); /* behind the three, and on 1 and 2 at once */
    EXPECT("4:1,2");
    run("1", 600);
    EXPECT(""); /* 2 is kept for it */
    job(1);
    EXPECT("");
    job(1)->most_ns = 600 * SECOND;
    EXPECT("6:2");
}

static void exact_goes_past(void **state) {
    world(1, 4);
    run("3", 600);
    exactly("3");
    job(1);
    exactly("0,1");
    EXPECT("2:2 3:0,1"); /* it leaves those alone that another must have */
    WHY(&now.job[0], "GPU 3 is held by job 101 of ada for about 10 min", "now on GPU 2 instead of GPU 3", 600);
}

static void memory_and_fit(void **state) {
    world(1, 4);
    now.gpu[0].memory_bytes = 80 * GIB;
    job(1)->memory_bytes = 30 * GIB; /* not the large one */
    job(1)->memory_bytes = 60 * GIB;
    EXPECT("1:1 2:0");
    now.job[0].memory_bytes = 100 * GIB;
    EXPECT("2:0");
    WHY(&now.job[0], "1 GPU that would do is needed on one machine, and there are 0",
        "now with GPUs of 80.0 GiB instead of 100.0 GiB", -1);
    struct error e;
    assert_true(plan_admit(&now.w, &now.job[0], &e) < 0);
    assert_string_equal(e.text, "memory: no GPU has 100.0 GiB; the largest has 80.0 GiB");
}

/* Card 0 is whole, the second is cut into three: of 10, 20 and 40 GiB. */
static void world_with_parts(void) {
    world(1, 4);
    for (int i = 0; i < 3; i++) {
        now.gpu[1 + i].index = 1;
        now.gpu[1 + i].is_part = true;
        now.gpu[1 + i].part = i;
        now.gpu[1 + i].memory_bytes = (10ull << i) * GIB;
    }
    now.gpu[0].memory_bytes = 80 * GIB;
}

static void parts_of_cards(void **state) {
    world_with_parts();
    job(1), job(1); /* who asks for a card gets a card */
    EXPECT("1:0");
    WHY(&now.job[1], "1 GPU is needed and 0 of 1 are free; 1 held by jobs", "", -1);
    world_with_parts();
    job(1)->memory_bytes = 15 * GIB;
    job(1)->memory_bytes = 15 * GIB;
    job(1)->memory_bytes = 15 * GIB; /* the smallest that suffices */
    EXPECT("1:2 2:3 3:0");
    world_with_parts();
    job(2); /* several only by name: one process cannot see two */
    EXPECT("");
    exactly("1,3");
    EXPECT("2:1,3");
    world_with_parts();
    job(1)->share_bytes = 8 * GIB;
    EXPECT("1:1");
    run("3", 60);
    WHY(exactly("3"), "GPU 1:2 is held by job 101 of ada for about 60 s", "now on GPU 0 instead of GPU 1:2", 60);
    world(1, 2); /* where every card is cut, everybody gets instances */
    now.gpu[0].is_part = now.gpu[1].is_part = true;
    job(1), job(1);
    EXPECT("1:0 2:1");
}

static void nodes_are_filled(void **state) {
    world(2, 4);
    run("4,5", 0);
    job(2);
    EXPECT("1:6,7"); /* and alpha stays whole */
    now.job[0].node = 0;
    EXPECT("1:0,1");
}

static void cool_first(void **state) {
    world(1, 4);
    for (int g = 0; g < 4; g++) now.gpu[g].temp_c = 70 - 10 * (g == 2);
    job(1);
    EXPECT("1:2");
}

static void listed_order(void **state) {
    world(1, 4);
    struct plan_job *j = exactly("3,0,1");
    j->gpus = 2;
    EXPECT("1:0,1");
    j->is_listed = true;
    EXPECT("1:3,0");
}

static void measured_free(void **state) {
    static const struct {
        enum occupancy is;
        const char *why;
    } rows[] = {
        {OCCUPANCY_FOREIGN,  "GPU 0 is used by mallory outside the queue"        },
        {OCCUPANCY_MEMORY,   "GPU 0 has memory in use that belongs to no process"},
        {OCCUPANCY_HOT,      "GPU 0 is throttled for heat"                       },
        {OCCUPANCY_LOST,     "GPU 0 does not answer"                             },
        {OCCUPANCY_CORDONED, "GPU 0 was taken out of service"                    },
        {OCCUPANCY_UNKNOWN,  "GPU 0 has not been read yet"                       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        world(1, 1);
        now.gpu[0].verdict = rows[i].is;
        now.gpu[0].user = "mallory";
        exactly("0");
        EXPECT("");
        WHY(&now.job[0], rows[i].why, "", -1);
    }
    world(1, 1);
    now.gpu[0].is_here = false;
    exactly("0");
    EXPECT("");
    WHY(&now.job[0], "GPU 0 is not connected", "", -1);
    world(1, 4);
    now.gpu[0].verdict = OCCUPANCY_FOREIGN;
    now.gpu[1].verdict = OCCUPANCY_CORDONED;
    job(3);
    job(1);
    EXPECT("2:2"); /* nothing is kept for what may never be */
    WHY(&now.job[0], "3 GPUs are needed and 2 of 4 are free; 1 used outside the queue, 1 out of service",
        "now with 2 GPUs instead of 3", -1);
}

/* A card that cools is waited for: not now, and not for ever. */
static void what_is_hot(void **state) {
    world(1, 2);
    now.gpu[0].verdict = OCCUPANCY_HOT;
    now.gpu[0].since_ns = NOW - 10 * SECOND;
    job(2);
    EXPECT("");
    WHY(&now.job[0], "2 GPUs are needed and 1 of 2 is free; 1 throttled for heat", "now with 1 GPU instead of 2", 50);
    now.gpu[0].verdict = OCCUPANCY_BUSY;
    WHY(&now.job[0], "2 GPUs are needed and 1 of 2 is free; 1 not known to be free", "now with 1 GPU instead of 2", 0);
}

/* The memory of what has just ended is given back in a moment: whoever is ahead does not lose the others over it. */
static void what_passes(void **state) {
    world(1, 2);
    now.gpu[0].verdict = OCCUPANCY_MEMORY;
    now.gpu[0].since_ns = NOW - SECOND;
    job(2);
    job(1);
    EXPECT("");
    now.gpu[0].since_ns = NOW - 60 * SECOND;
    EXPECT("2:1");
}

static void deadlines(void **state) {
    world(1, 1);
    job(1);
    struct plan_job *late = job(1), *soon = job(1);
    late->finish_by_ns = NOW + 5000 * SECOND;
    soon->finish_by_ns = NOW + 4500 * SECOND;
    EXPECT("1:0"); /* there is time */
    late->expect_ns = soon->expect_ns = 4400 * SECOND;
    EXPECT("3:0"); /* earliest first */
    soon->expect_ns = 4600 * SECOND;
    EXPECT("2:0"); /* cannot be kept any more */
    now.job[0].priority = 1;
    EXPECT("1:0");
}

static void fair_share(void **state) {
    world(1, 4);
    for (int i = 0; i < 4; i++) job(1)->user = ADA;
    for (int i = 0; i < 4; i++) job(1)->user = BOB;
    EXPECT("1:0 5:1 2:2 6:3"); /* in turn */
    now.user[ADA].usage_s = 100;
    EXPECT("1:0 5:1 2:2 6:3"); /* a little is no difference */
    now.user[ADA].usage_s = 7200;
    EXPECT("5:0 6:1 1:2 7:3"); /* he comes to the same, then in turn */
    now.user[ADA].weight = 100;
    EXPECT("1:0 2:1 3:2 4:3");
    now.user[ADA] = (struct plan_user){.name = "ada", .seconds_left = INFINITY};
    run("0,1", 0)->job = 0; /* came before the first that waits */
    EXPECT("5:2 6:3");      /* what he holds counts */
}

static void waited_too_long(void **state) {
    world(1, 4);
    now.w.fair_wait_ns = 3600 * SECOND;
    now.user[ADA].usage_s = now.user[EVE].usage_s = 1e9;
    for (int i = 0; i < 4; i++) job(1)->user = ADA;
    for (int i = 0; i < 4; i++) job(1)->user = BOB;
    for (int i = 0; i < 8; i++) now.job[i].since_ns = NOW - 3599 * SECOND;
    EXPECT("5:0 6:1 7:2 8:3"); /* ada had too much */
    for (int i = 0; i < 2; i++) now.job[i].since_ns = NOW - 3600 * SECOND;
    EXPECT("1:0 2:1 5:2 6:3"); /* both: two are an even part */
    for (int i = 0; i < 4; i++) now.job[i].since_ns = NOW - 7200 * SECOND;
    EXPECT("1:0 2:1 5:2 6:3"); /* and no more than that, however old */
    job(2)->user = EVE;
    now.job[8].since_ns = NOW - 9000 * SECOND;
    EXPECT("9:0,1 1:2 5:3"); /* a third is less than two, but it is her turn; the longest first */
    now.user[EVE].turn_ns = NOW - 3599 * SECOND;
    EXPECT("1:0 5:1 6:2 7:3"); /* which she had */
    now.job[4].finish_by_ns = NOW + 500 * SECOND;
    now.job[4].expect_ns = 400 * SECOND;
    EXPECT("1:0 5:1 6:2 7:3"); /* not even deadlines come before */
    now.job[5].priority = 1;
    EXPECT("6:0 1:1 5:2 7:3"); /* but who is more important does */
    now.w.fair_wait_ns = 0;
    EXPECT("6:0 5:1 7:2 8:3");
}

/* What waits too long and cannot start has GPUs kept for it, as whoever is first. */
static void waited_too_long_for_many(void **state) {
    world(1, 4);
    now.w.fair_wait_ns = 3600 * SECOND;
    now.user[ADA].usage_s = 1e9;
    run("0", 600)->user = BOB;
    job(4)->user = ADA;
    job(1)->user = BOB;
    job(1)->user = ADA;
    now.job[0].since_ns = NOW - 3000 * SECOND;
    EXPECT("2:1");
    now.job[0].since_ns = NOW - 4000 * SECOND;
    EXPECT("");
    assert_int_equal(reason_of(&now.job[0]).place, 1);
    now.job[2].most_ns = 600 * SECOND;
    EXPECT("3:1"); /* over by then */
}

static void user_limits(void **state) {
    world(1, 4);
    now.user[ADA].gpus_max = 2;
    job(1), job(1), job(1), job(2)->user = BOB;
    EXPECT("1:0 4:1,2 2:3");
    now.w.jobs = 0;
    run("0", 600), job(2), job(1)->user = BOB, job(1);
    EXPECT("2:1 3:2"); /* nothing is kept for who has reached his limit */
    WHY(&now.job[0], "ada may have 2 GPUs at once and has 1", "now with 1 GPU instead of 2", 600);
    now.user[ADA] = (struct plan_user){.name = "ada", .seconds_left = 0, .seconds_max = 40 * 3600};
    EXPECT("2:1");
    WHY(&now.job[0], "ada has used the 40 GPU hours of this week", "", -1);
    now.user[ADA] = (struct plan_user){.name = "ada", .seconds_left = INFINITY, .gpus_max = 1};
    struct error e;
    assert_true(plan_admit(&now.w, &now.job[0], &e) < 0);
    assert_string_equal(e.text, "gpus: 2 are asked for, and ada may have 1 at once");
}

static void arrays(void **state) {
    world(1, 4);
    struct plan_job *a = job(1);
    a->elements = 10000;
    a->room = 3;
    job(1);
    EXPECT("1:0 1:1 1:2 2:3");
    a->room = 0;
    EXPECT("2:0");
    WHY(a, "as many of its elements run as may at once", "", -1);
    a->room = UINT32_MAX;
    EXPECT("1:0 1:1 1:2 1:3");
    now.job[1].user = BOB;
    EXPECT("1:0 2:1 1:2 1:3"); /* ten thousand elements are not ahead of everybody */
}

static void shares(void **state) {
    world(1, 2);
    for (int i = 0; i < 5; i++) job(1)->share_bytes = 15 * GIB;
    job(1);
    EXPECT("1:0 2:0 3:1 4:1");
    WHY(&now.job[4], "no GPU has so much memory left to share", "", -1);
    now.w.jobs = 0;
    run("0", 0)->share_bytes = 30 * GIB;
    job(1)->share_bytes = 11 * GIB; /* does not fit beside it */
    job(1)->share_bytes = 10 * GIB;
    EXPECT("1:1 2:0");
    now.w.jobs = 0;
    run("1", 0);
    job(1); /* nobody gets a whole one that is shared */
    EXPECT("");
}

static struct plan_window *window(uint32_t gpu, const char *users, int64_t from_s, int64_t to_s) {
    struct plan_window *v = &now.window[now.w.windows++];
    *v = (struct plan_window){
        .gpu = gpu, .from_ns = NOW + from_s * SECOND, .to_ns = NOW + to_s * SECOND, .id = 7, .who = "group lab"};
    v->user = numbers(users, &v->users);
    return v;
}

static void windows(void **state) {
    world(1, 1);
    struct plan_window *v = window(0, "1", 60, 120);
    job(1);
    EXPECT(""); /* it might run into it */
    now.job[0].most_ns = 60 * SECOND;
    EXPECT("1:0"); /* surely over by then */
    now.job[0].most_ns = 61 * SECOND;
    EXPECT("");
    now.job[0].most_ns = 0;
    now.job[0].user = BOB;
    EXPECT("1:0");
    v->to_ns = NOW;
    now.job[0].user = ADA;
    EXPECT("1:0");
}

/* Two GPUs for a group of two, while a third fills what is left, and what ends in time goes where it is kept. */
static void windows_of_a_group(void **state) {
    world(1, 4);
    window(1, "0,1", 600, 4200);
    window(2, "0,1", 600, 4200);
    for (int i = 0; i < 6; i++) job(1)->user = EVE;
    now.job[2].most_ns = now.job[4].most_ns = 600 * SECOND;
    EXPECT("1:0 2:3 3:1 5:2"); /* the long ones on the others, the short ones on these */
    now.w.jobs = 0;
    job(2)->user = BOB;
    job(1)->user = EVE;
    job(2)->user = ADA;
    now.w.now_ns = NOW + 700 * SECOND; /* it has begun: bob has what is kept for his group, and leaves the rest */
    EXPECT("1:1,2 2:0");
    now.job[0].user = EVE;
    EXPECT("1:0,3 3:1,2"); /* and eve nothing of it, though she is first */
}

/* Around a job that is waited for: what is kept for people and what is kept for the head are both left alone. */
static void windows_and_backfill(void **state) {
    world(1, 3);
    run("0", 1000);
    window(2, "1", 500, 2000);
    job(3)->expect_ns = 100 * SECOND; /* all three, so not before the window is over */
    assert_int_equal(reason_of(&now.job[0]).start_ns, NOW + 2000 * SECOND);
    job(1)->most_ns = 3000 * SECOND; /* would run into the head's time and into the window */
    job(1)->most_ns = 1900 * SECOND; /* is over before the head starts, not before the window */
    job(1)->most_ns = 400 * SECOND;  /* is over before both */
    EXPECT("3:1 4:2");
}

/* Within his own window nobody is ahead of him, whatever comes after it. */
static void windows_are_whose_they_are(void **state) {
    world(1, 1);
    window(0, "1", -60, 3600);
    job(1)->priority = 50; /* has it kept from the end of the window on */
    job(1)->user = BOB;    /* and nobody knows how long he takes */
    EXPECT("2:0");
    now.job[1].user = EVE;
    EXPECT("");
}

static void windows_in_words(void **state) {
    world(1, 2);
    run("0", 1000);
    window(1, "1", 2400, 6000);
    job(1);
    WHY(&now.job[0],
        "1 GPU is needed and 0 of 2 are free; 1 held by jobs, 1 reserved for group lab (reservation 7, in 40 min)",
        "now with a time limit of 40m or less", 1000);
    now.w.jobs = 0;
    exactly("1");
    WHY(&now.job[0], "GPU 1 is reserved for group lab (reservation 7) in 40 min",
        "now with a time limit of 40m or less", 6000);
    now.window[0].from_ns = NOW - SECOND;
    WHY(&now.job[0], "GPU 1 is reserved for group lab (reservation 7) for another 100 min", "", 6000);
}

static void overdue(void **state) {
    world(1, 2);
    run("0", -60); /* expected to be over a minute ago: it may be any moment */
    job(2);
    job(1);
    EXPECT("");
    job(1)->most_ns = SECOND;
    EXPECT("3:1");
    assert_true(reason_of(&now.job[0]).start_ns > NOW);
}

static void estimates(void **state) {
    world(1, 2);
    run("0", 100);
    run("1", 200);
    for (int i = 0; i < 4; i++) job(1)->expect_ns = 50 * SECOND;
    struct plan_reason r[4];
    const uint32_t which[] = {3, 0, 2, 1};
    static const int64_t want_s[] = {200, 100, 200, 150};
    static const uint32_t place[] = {4, 1, 3, 2};
    plan_explain(plan, &now.w, which, 4, r);
    for (int i = 0; i < 4; i++) {
        if (r[i].start_ns != NOW + want_s[i] * SECOND || r[i].place != place[i])
            fail_msg("%d: place %u at %lld", i, r[i].place, (long long)((r[i].start_ns - NOW) / SECOND));
    }
    const struct plan_bar *bar;
    assert_int_equal(plan_bars(plan, &bar), 4);
    assert_true(bar[0].gpu == 0 && bar[0].job == 0 && bar[0].from_ns == NOW + 100 * SECOND);
    assert_true(bar[0].to_ns == NOW + 150 * SECOND);
}

static void admission(void **state) {
    static const struct {
        int gpus;
        const char *exactly, *want;
        uint64_t memory, share;
    } rows[] = {
        {4, NULL,  "",                                                                           0,        0       },
        {5, NULL,  "gpus: 5 are asked for, and no machine has more than 4",                      0,        0       },
        {2, "0,4", "scope: 2 GPUs are asked for, and of these no machine has more than 1",       0,        0       },
        {1, "99",  "scope: there is no such GPU",                                                0,        0       },
        {2, NULL,  "memory: 2 GPUs with 60.0 GiB are asked for, and no machine has more than 1", 60 * GIB, 0       },
        {1, "1",   "memory: no GPU of the scope has 60.0 GiB; the largest has 40.0 GiB",         60 * GIB, 0       },
        {1, NULL,  "share: no GPU has 81.0 GiB; the largest has 80.0 GiB",                       0,        81 * GIB},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        world(2, 4);
        now.gpu[0].memory_bytes = 80 * GIB;
        for (int g = 0; g < 8; g++) now.gpu[g].verdict = OCCUPANCY_CORDONED; /* what is out today is there tomorrow */
        struct plan_job *j = rows[i].exactly ? exactly(rows[i].exactly) : job(rows[i].gpus);
        j->memory_bytes = rows[i].memory;
        j->share_bytes = rows[i].share;
        int r = plan_admit(&now.w, j, &e);
        if ((r < 0) != (rows[i].want[0] != 0) || strcmp(e.text, rows[i].want) != 0) fail_msg("%zu: %s", i, e.text);
    }
}

static void no_gpus_at_all(void **state) {
    world(0, 1);
    job(1);
    EXPECT("");
    WHY(&now.job[0], "1 GPU that would do is needed on one machine, and there are 0", "", -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come),
        cmocka_unit_test(all_or_nothing),
        cmocka_unit_test(what_stays_is_not_waited_for),
        cmocka_unit_test(priorities),
        cmocka_unit_test(kept_for_the_head),
        cmocka_unit_test(kept_without_a_known_end),
        cmocka_unit_test(every_kind_is_kept),
        cmocka_unit_test(exact_goes_past),
        cmocka_unit_test(memory_and_fit),
        cmocka_unit_test(parts_of_cards),
        cmocka_unit_test(nodes_are_filled),
        cmocka_unit_test(cool_first),
        cmocka_unit_test(listed_order),
        cmocka_unit_test(measured_free),
        cmocka_unit_test(what_passes),
        cmocka_unit_test(what_is_hot),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(fair_share),
        cmocka_unit_test(waited_too_long),
        cmocka_unit_test(waited_too_long_for_many),
        cmocka_unit_test(user_limits),
        cmocka_unit_test(arrays),
        cmocka_unit_test(shares),
        cmocka_unit_test(windows),
        cmocka_unit_test(windows_of_a_group),
        cmocka_unit_test(windows_and_backfill),
        cmocka_unit_test(windows_are_whose_they_are),
        cmocka_unit_test(windows_in_words),
        cmocka_unit_test(overdue),
        cmocka_unit_test(estimates),
        cmocka_unit_test(admission),
        cmocka_unit_test(no_gpus_at_all),
    };
    plan = plan_new();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    plan_free(plan);
    return failed;
}
