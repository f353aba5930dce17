/* Traces in and figures out: what CSV is taken and how it is refused, what the like of a job is expected to take, and small
 * histories whose figures were worked out by hand. tests/system/test_simulate.py compares with a queue written in Python. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/likes.h"
#include "model/settings.h"
#include "model/simulate.h"

#define MINUTE 60000000000LL
#define GIB (1024.0 * 1024 * 1024)
#define PLAIN "user,gpus,submit_min,duration_min"
#define HEAD PLAIN ",deadline_min\n"

/* ---- CSV ---- */

static void refused(void **state) {
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"",                                                    "line 1: it is empty"                                          },
        {"user,gpus,submit_min\n",                              "line 1: there is no column duration_min (or _s)"              },
        {"usr,gpus,submit_min,duration_min\n",                  "line 1: there is no column user; is it \"usr\"?"              },
        {"user,user,gpus,submit_s,duration_s\n",                "line 1, column user: \"user\" is there twice"                 },
        {HEAD,                                                  "line 2: there are no jobs"                                    },
        {HEAD "ada,1,0,5,9\nada,x,0,5,9\n",                     "line 3, column gpus: \"x\" is no number"                      },
        {HEAD "ada,0,0,5,9\n",                                  "line 2, column gpus: \"0\" is too small"                      },
        {HEAD "ada,1.5,0,5,9\n",                                "line 2, column gpus: \"1.5\" is no whole number"              },
        {HEAD "ada,65,0,5,9\n",                                 "line 2, column gpus: \"65\" is more than a job may ask for"   },
        {HEAD "ada,1,-1,5,9\n",                                 "line 2, column submit_min: \"-1\" is too small"               },
        {HEAD "ada,1,0,1e3,9\n",                                "line 2, column duration_min: \"1e3\" is no number"            },
        {HEAD "ada,1,0,,9\n",                                   "line 2, column duration_min: \"\" is no number"               },
        {HEAD ",1,0,5,9\n",                                     "line 2, column user: \"\" is no user"                         },
        {HEAD "ada,1,0,5\n",                                    "line 2, column deadline_min: the line ends before it"         },
        {HEAD "ada,1,0,5,9,7\n",                                "line 2, column beyond the last: \"7\" is one field"           },
        {HEAD "\"ada,1,0,5,9\n",                                "line 2: a"                                                    },
        {"user,gpus,submit_s,duration_s,priority\na,1,0,1,101", "line 2, column priority: \"101\" is too much"                 },
        {HEAD "ada,1,0,99999999999,9\n",                        "line 2, column duration_min: \"99999999999\" is too much"     },
        {PLAIN ",share_gib\nada,2,0,5,10\n",                    "line 2, column share_gib: is a part of one GPU, and gpus is 2"},
        {PLAIN ",share_gib\nada,1,0,5,x\n",                     "line 2, column share_gib: \"x\" is no number"                 },
        {PLAIN ",after\nada,1,0,5,1\n",                         "line 1: there is no column job"                               },
        {PLAIN ",job,after\nada,1,0,5,1,\nada,1,0,5,1,\n",      "line 3, column job: \"1\" is there twice"                     },
        {PLAIN ",job,after\nada,1,0,5,1,2;3\nada,1,0,5,2,\n",   "line 2, column after: there is no job \"3\""                  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t = {0};
        struct error e = {0};
        assert_true(trace_read_csv(&t, rows[i].text, strlen(rows[i].text), &e) < 0);
        if (strncmp(e.text, rows[i].want, strlen(rows[i].want)) != 0) fail_msg("%s, not %s", e.text, rows[i].want);
        trace_done(&t);
    }
}

static struct trace read_csv(const char *text) {
    struct trace t = {0};
    struct error e = {0};
    if (trace_read_csv(&t, text, strlen(text), &e) < 0) fail_msg("%s", e.text);
    return t;
}

static void taken(void **state) {
    struct trace t = read_csv("\xef\xbb\xbfid,duration_s,\"user\",submit_min,gpus,name,limit_min,priority\r\n"
                              "7,90.5,\"a \"\"b\"\", c\",12,2,x,,\r\n"
                              "\r\n"
                              "8,1,ada,10,1,y,2.5,-3\n");
    assert_int_equal(t.jobs, 2);
    assert_int_equal(t.users.count, 2);
    assert_string_equal(t.users.of[t.job[0].user], "ada"); /* who came first, at 0 */
    assert_string_equal(t.users.of[t.job[1].user], "a \"b\", c");
    assert_int_equal(t.job[0].submit_ns, 0);
    assert_int_equal(t.job[1].submit_ns, 2 * MINUTE);
    assert_int_equal(t.job[1].run_ns, 90500000000LL);
    assert_int_equal(t.job[1].limit_ns, 0);
    assert_int_equal(t.job[0].limit_ns, 150000000000LL);
    assert_int_equal(t.job[0].priority, -3);
    assert_int_equal(t.job[0].finish_by_ns, 0);
    assert_int_equal(t.zero_ns, 10 * MINUTE);
    assert_string_equal(t.unused.s, "id");
    trace_done(&t);
    t = read_csv(PLAIN
                 ",share_gib,memory_gib,job,after,note\na,1,9,5,,24,x,,\nb,1,0,5,10.5,,y,x z,\nc,1,1,5,0,,z,,why\n");
    assert_int_equal(t.shares, 1);
    assert_int_equal(t.job[0].share_bytes, (uint64_t)(10.5 * GIB));
    assert_int_equal(t.job[2].memory_bytes, 24 * (uint64_t)GIB);
    assert_int_equal(t.afters, 1);
    assert_int_equal(t.job[0].after_len, 2);
    assert_int_equal(t.list[t.job[0].after_at], 2); /* where it stands now that they are in order */
    assert_int_equal(t.list[t.job[0].after_at + 1], 1);
    assert_string_equal(t.unused.s, "note");
    trace_done(&t);
}

/* ---- how long the like took ---- */

static void likes(void **state) {
    struct likes l = {0};
    uint64_t own = likes_key("ada", "train"), user = likes_key("ada", NULL), other = likes_key("ada", "");
    assert_int_not_equal(user, other);
    assert_int_equal(likes_expect(&l, own, user, 0, 0), 0);
    assert_int_equal(likes_end(&l, own, user, 100, 0, 200), 0);    /* nobody knows */
    assert_int_equal(likes_end(&l, own, user, 100, 50, 120), 150); /* but its limit is known */
    static const int64_t took[] = {10, 30, 20, 100, 90};
    for (size_t i = 0; i < ARRAY_LEN(took); i++) likes_add(&l, own, took[i]);
    likes_add(&l, user, 500);
    assert_int_equal(likes_expect(&l, own, user, 0, 0), 46);    /* of 20, 30 and 90 */
    assert_int_equal(likes_expect(&l, own, user, 0, 30), 95);   /* of 90 and 100 */
    assert_int_equal(likes_expect(&l, own, user, 0, 100), 500); /* as whatever ada runs */
    assert_int_equal(likes_expect(&l, own, user, 0, 500), 0);
    assert_int_equal(likes_expect(&l, likes_key("ada", "eval"), user, 0, 0), 500);
    assert_int_equal(likes_expect(&l, likes_key("ada", "eval"), user, 60, 0), 60); /* its limit is somebody's word */
    assert_int_equal(likes_expect(&l, own, user, 60, 0), 46);
    assert_int_equal(likes_end(&l, own, user, 1000, 0, 1600), 1751);  /* overdue: a quarter more */
    assert_int_equal(likes_end(&l, own, user, 1000, 40, 1035), 1040); /* never beyond its limit */
    for (int i = 0; i < 40; i++) likes_add(&l, own, 7);               /* what people run changes */
    assert_int_equal(likes_expect(&l, own, user, 0, 0), 7);
    likes_done(&l);
}

/* ---- figures ---- */

static struct simulate_result play(const struct trace *t, const char *policy, uint32_t nodes, uint32_t each) {
    struct simulate_setup s = {
        .nodes = nodes, .gpus_per_node = each, .policy = plan_policy_find(policy), .is_known = true, .half_life_h = 24};
    struct simulate_result r;
    struct error e = {0};
    if (simulate(t, &s, &r, &e) < 0) fail_msg("%s", e.text);
    return r;
}

/* Two GPUs: a takes one for 10 min; b wants both for 10; c, which takes 5, may go past b only with backfill. */
static void by_hand(void **state) {
    struct trace t = read_csv(HEAD "a,1,0,10,10\nb,2,1,10,12\nc,1,2,5,0\nd,9,3,5,0\n");
    struct simulate_result f = play(&t, "fifo", 1, 2), b = play(&t, "backfill", 1, 2);
    assert_int_equal(f.jobs, 3);
    assert_int_equal(f.left_out, 1);
    assert_int_equal(f.start_ns[0], 0);
    assert_int_equal(f.start_ns[1], 10 * MINUTE);
    assert_int_equal(f.start_ns[2], 20 * MINUTE);
    assert_int_equal(f.start_ns[3], -1);
    assert_int_equal(b.start_ns[1], 10 * MINUTE); /* not later because of c */
    assert_int_equal(b.start_ns[2], 2 * MINUTE);
    assert_float_equal(f.wait_mean_s, (0 + 9 + 18) * 60 / 3.0, 1e-9);
    assert_float_equal(f.wait_median_s, 9 * 60, 1e-9);
    assert_float_equal(f.wait_max_s, 18 * 60, 1e-9);
    assert_float_equal(f.turnaround_mean_s, (10 + 19 + 23) * 60 / 3.0, 1e-9);
    assert_float_equal(f.makespan_s, 25 * 60, 1e-9);
    assert_float_equal(b.makespan_s, 20 * 60, 1e-9);
    assert_float_equal(f.utilisation, (10 + 20 + 5) / 50.0, 1e-9);
    assert_float_equal(f.gpu_hours, 35 / 60.0, 1e-9);
    assert_int_equal(f.deadlines, 2);
    assert_int_equal(f.deadlines_hit, 1);
    double curve[25];
    simulate_curve(&f, 25 * MINUTE, true, curve, 25);
    for (int i = 0; i < 25; i++) assert_float_equal(curve[i], i < 10 ? 1 : i < 20 ? 2 : 1, 1e-9);
    simulate_curve(&f, 25 * MINUTE, false, curve, 5);
    assert_float_equal(curve[0], (0 + 1 + 2 + 2 + 2) / 5.0, 1e-9);
    assert_float_equal(curve[4], 0, 1e-9);
    simulate_done(&f);
    simulate_done(&b);
    trace_done(&t);
}

/* One that takes longer than its limit is ended there, and has not kept its deadline. */
static void limits(void **state) {
    struct trace t =
        read_csv("user,gpus,submit_min,duration_min,limit_min,deadline_min\na,1,0,10,5,100\na,1,0,10,0,100\n");
    struct simulate_result r = play(&t, "fair", 1, 1);
    assert_float_equal(r.makespan_s, 15 * 60, 1e-9);
    assert_int_equal(r.deadlines_hit, 1);
    simulate_done(&r);
    trace_done(&t);
}

static void the_same_again(void **state) {
    char text[20000];
    uint64_t seed = 4711;
    int n = snprintf(text, sizeof text, HEAD);
    for (int i = 0; i < 400; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        unsigned x = (unsigned)(seed >> 33);
        n += snprintf(text + n, sizeof text - (size_t)n, "u%u,%u,%u,%u,%u\n", x % 5, 1u << (x / 5 % 4), x / 32 % 600,
                      1 + x / 64 % 90, x / 128 % 300);
    }
    struct trace t = read_csv(text);
    for (size_t p = 0; p < plan_policies_count; p++) {
        struct simulate_result a = play(&t, plan_policies[p].name, 3, 8), b = play(&t, plan_policies[p].name, 3, 8);
        assert_int_equal(a.jobs, 400);
        assert_memory_equal(a.start_ns, b.start_ns, t.jobs * sizeof *a.start_ns);
        assert_true(a.wait_mean_s == b.wait_mean_s && a.utilisation == b.utilisation && a.wait_mean_s > 0);
        simulate_done(&a);
        simulate_done(&b);
    }
    trace_done(&t);
}

/* ---- shares, limits, followers, reservations ---- */

static struct simulate_result play_with(const struct trace *t, const struct simulate_setup *s) {
    struct simulate_result r;
    struct error e = {0};
    if (simulate(t, s, &r, &e) < 0) fail_msg("%s", e.text);
    return r;
}

static void starts_are(const char *name, const struct trace *t, const struct simulate_setup *s,
                       const int64_t *minutes) {
    struct simulate_result r = play_with(t, s);
    for (uint32_t i = 0; i < t->jobs; i++)
        if (r.start_ns[i] != (minutes[i] < 0 ? -1 : minutes[i] * MINUTE))
            fail_msg("%s: job %u begins at %g min, not %lld", name, i, (double)r.start_ns[i] / MINUTE,
                     (long long)minutes[i]);
    simulate_done(&r);
}

/* One GPU of 80 GiB, or two: what each job begins at was worked out by hand. */
static void whole_rows(void **state) {
    static const struct {
        const char *name, *csv;
        uint32_t gpus;
        int user_gpus;
        double user_gpu_hours;
        int64_t start[6];
    } rows[] = {
        {"two shares beside each other, the third waits, a whole one for all of them",
         PLAIN ",share_gib\na,1,0,10,40\na,1,0,20,40\na,1,1,5,10\na,1,2,5,\n",
         1,                                                                                                                                   0,
         0,                                                                                                                                         {0, 0, 10, 20}     },
        {"a part of a GPU counts as a part",
         PLAIN ",share_gib\na,1,0,10,40\na,1,0,10,40\na,1,0,10,40\n",
         2,                                                                                                                                   1,
         0,                                                                                                                                         {0, 0, 10}         },
        {"one may have one",                                                                     PLAIN "\na,1,0,10\na,1,0,10\nb,1,0,10\n", 2, 1, 0, {0, 10, 0}         },
        {"who asks for more than he may have is left out",                                       PLAIN "\na,2,0,10\na,1,1,10\n",           2, 1, 0, {-1, 1}            },
        {"an hour a week: the second begins when the first is forgotten, after 168 whole hours",
         PLAIN "\na,1,0,60\na,1,1,10\nb,1,2,10\n",
         1,                                                                                                                                   0,
         1,                                                                                                                                         {0, 169 * 60, 60}  },
        {"who follows waits, though a GPU is free",
         PLAIN ",job,after\na,1,0,10,x,\nb,1,0,10,y,x\nc,1,5,10,z,\n",
         2,                                                                                                                                   0,
         0,                                                                                                                                         {0, 10, 5}         },
        {"who follows one that is left out is left out, and so are those in a circle",
         PLAIN ",job,after\na,3,0,10,x,\nb,1,0,10,y,x\nc,1,0,10,p,q\nc,1,0,10,q,p\nc,1,0,1,r,\n",
         2,                                                                                                                                   0,
         0,                                                                                                                                         {-1, -1, -1, -1, 0}},
        {"memory that no GPU has",
         PLAIN ",memory_gib,share_gib\na,1,0,10,81,\na,1,0,10,80,\na,1,0,1,,81\n",
         1,                                                                                                                                   0,
         0,                                                                                                                                         {-1, 0, -1}        },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t = read_csv(rows[i].csv);
        struct simulate_setup s = {.nodes = 1,
                                   .gpus_per_node = rows[i].gpus,
                                   .gpu_bytes = (uint64_t)(80 * GIB),
                                   .policy = plan_policy_find("fifo"),
                                   .is_known = true,
                                   .half_life_h = 24,
                                   .user_gpus = rows[i].user_gpus,
                                   .user_gpu_hours = rows[i].user_gpu_hours};
        starts_are(rows[i].name, &t, &s, rows[i].start);
        trace_done(&t);
    }
}

/* Ada has GPU 0 of two from minute 60 to 120. */
static void reserved_rows(void **state) {
    static const struct {
        const char *name, *csv;
        int64_t unused_s, made_s;
        int64_t start[4];
    } rows[] = {
        {"who would run into it has the other one, or waits",
         PLAIN "\nada,1,0,5\nb,1,0,90\nb,1,1,90\nb,1,10,50\n",
         0,                                                                                                                 0,
         {0, 0, 90, 10}                                                                                                                              },
        {"it is hers",                                        PLAIN "\nb,1,0,200\nada,1,61,5\nb,1,62,5\nada,1,63,9\n", 0,   0,       {0, 61, 120, 66}},
        {"nobody comes for a quarter of an hour",             PLAIN "\nada,1,0,5\nb,1,0,200\nb,1,1,90\n",              900, 0,       {0, 0, 75}      },
        {"she uses it for a while",                           PLAIN "\nb,1,0,200\nb,1,1,90\nada,1,60,15\n",            900, 0,       {0, 90, 60}     },
        {"she may come late",                                 PLAIN "\nb,1,0,200\nb,1,76,2\nada,1,77,15\nb,1,78,5\n",  900, 0,       {0, 76, 78, 108}},
        {"it was made when somebody ran already",             PLAIN "\nb,1,0,200\nb,1,0,90\nada,1,61,5\n",             0,   30 * 60, {0, 0, 90}      },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t = read_csv(rows[i].csv);
        uint32_t gpu = 0, ada = 0;
        while (strcmp(t.users.of[ada], "ada") != 0) ada++;
        struct simulate_window w = {3600, 7200, rows[i].made_s, &gpu, &ada, 1, 1};
        struct simulate_setup s = {.nodes = 1,
                                   .gpus_per_node = 2,
                                   .policy = plan_policy_find("backfill"),
                                   .is_known = true,
                                   .half_life_h = 24,
                                   .window = &w,
                                   .windows = 1,
                                   .unused_s = rows[i].unused_s,
                                   .ahead_s = 86400};
        starts_are(rows[i].name, &t, &s, rows[i].start);
        trace_done(&t);
    }
}

/* Of what was there are the same figures, and how far a play is from it. */
static void truth(void **state) {
    struct trace t = read_csv(HEAD "a,1,0,10,10\nb,2,1,10,12\nc,1,2,5,0\n");
    struct simulate_setup s = {
        .nodes = 1, .gpus_per_node = 2, .policy = plan_policy_find("fifo"), .is_known = true, .half_life_h = 24};
    struct simulate_result r = play_with(&t, &s), was, other;
    for (uint32_t i = 0; i < t.jobs; i++) t.job[i].start_ns = r.start_ns[i];
    simulate_truth(&t, &s, &was);
    assert_true(was.wait_mean_s == r.wait_mean_s && was.utilisation == r.utilisation && was.deadlines_hit == 1);
    assert_true(simulate_apart_s(&t, &r, &was, 1) == 0);
    double a[5], b[5];
    for (int k = 0; k < 2; k++) {
        simulate_curve(&r, 25 * MINUTE, k, a, 5);
        simulate_curve(&was, 25 * MINUTE, k, b, 5);
        for (int i = 0; i < 5; i++) assert_float_equal(a[i], b[i], 1e-9);
    }
    t.job[2].start_ns -= 3 * MINUTE;
    t.job[1].start_ns = -1;
    simulate_truth(&t, &s, &other);
    assert_int_equal(other.jobs, 2);
    assert_int_equal(other.left_out, 1);
    assert_float_equal(simulate_apart_s(&t, &r, &other, 1), 180, 1e-9);
    assert_float_equal(simulate_apart_s(&t, &r, &other, 0.5), 0, 1e-9);
    simulate_done(&r);
    simulate_done(&was);
    simulate_done(&other);
    trace_done(&t);
}

/* What simulate compares is what the setting offers, in the same order. */
static void as_the_setting(void **state) {
    char want[128] = "";
    const struct option *o = NULL;
    for (size_t i = 0; i < plan_policies_count; i++) {
        if (i) strcat(want, "|");
        strcat(want, plan_policies[i].name);
    }
    for (size_t i = 0; i < settings_count; i++)
        if (strcmp(settings_table[i].name, "jobs.policy") == 0) o = &settings_table[i];
    assert_non_null(o);
    assert_string_equal(o->choices, want);
    for (char *c = want; *c; c++)
        if (*c == '|') memmove(c + 2, c + 1, strlen(c)), c[0] = ',', c[1] = ' ';
    assert_string_equal(plan_policy_names(), want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),        cmocka_unit_test(taken),      cmocka_unit_test(likes),
        cmocka_unit_test(by_hand),        cmocka_unit_test(limits),     cmocka_unit_test(the_same_again),
        cmocka_unit_test(as_the_setting), cmocka_unit_test(whole_rows), cmocka_unit_test(reserved_rows),
        cmocka_unit_test(truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
