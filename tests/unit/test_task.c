/* Tasks and their deadlines as stories in seconds, prediction from their own past, and how deadlines are kept in all. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/slack.h"
#include "model/task.h"
#include "tests/test.h"

#define S 1000000000ll
#define MS 1000000ll

static struct task_past past_of(const int *seconds) {
    struct task_past p = {0};
    for (; *seconds; seconds++) task_past_add(&p, *seconds * S);
    return p;
}

static void verdicts(void **state) {
    static const struct {
        const char *name;
        int deadline_s, end_s;
        enum task_verdict want;
        int float_s;
        bool is_overdue_first;
    } rows[] = {
        {"no deadline",          0,  50, TASK_NO_DEADLINE, 0,   false},
        {"in time",              30, 20, TASK_HIT,         10,  false},
        {"just in time",         30, 30, TASK_HIT,         0,   false},
        {"too late",             30, 45, TASK_MISS,        -15, true },
        {"over before it began", 30, -5, TASK_HIT,         30,  false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct task t;
        struct task_past none = {0};
        bool is_new;
        task_begin(&t, (struct task_key){7, 1}, 99 * S, 100 * S, rows[i].deadline_s * S, TASK_BY_OPEN, &none);
        if (rows[i].is_overdue_first) {
            assert_int_equal(task_wake_ns(&t, &none), 130 * S);
            assert_int_equal(task_tick(&t, &none, 130 * S), TASK_MISSED);
            assert_int_equal(t.state, TASK_OVERDUE);
            assert_int_equal(task_tick(&t, &none, 131 * S), TASK_NOTHING);
        }
        enum task_verdict got = task_end(&t, (100 + rows[i].end_s) * S, &is_new);
        if (got != rows[i].want || t.float_ns != rows[i].float_s * S || is_new == rows[i].is_overdue_first)
            fail_msg("%s: verdict %d, float %lld s, new %d", rows[i].name, got, (long long)(t.float_ns / S), is_new);
        assert_int_equal(task_end(&t, 999 * S, &is_new), got); /* an end is final */
        assert_false(is_new);
        assert_int_equal(task_wake_ns(&t, &none), INT64_MAX);
    }
}

static void expected(void **state) {
    static const struct {
        const char *name;
        int past[8], elapsed_s, want_s;
    } rows[] = {
        {"no past",                   {0},                  0,  0 },
        {"two are no past",           {10, 12},             0,  0 },
        {"the median",                {10, 12, 11},         0,  11},
        {"of those that took longer", {10, 12, 11, 40, 41}, 13, 41},
        {"outlasted them all",        {10, 12, 11},         20, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct task_past p = past_of(rows[i].past);
        int64_t got = task_past_expect(&p, rows[i].elapsed_s * S);
        if (got != rows[i].want_s * S) fail_msg("%s: %lld s", rows[i].name, (long long)(got / S));
    }
}

/* When the warning comes, in seconds after the start; -1: none before the deadline. */
static void warned(void **state) {
    static const struct {
        const char *name;
        int past[8], deadline_s, want_s;
    } rows[] = {
        {"no past, no warning",                                          {0},                  30, -1},
        {"always too slow: at once",                                     {40, 41, 42},         30, 0 },
        {"usually in time: when most is used",                           {10, 11, 12},         30, 24},
        {"the slow ones all miss: once it has outlasted the quick ones", {10, 11, 10, 50, 51}, 30, 10},
        {"its like took nearly all of it",                               {28, 28, 29},         30, 29},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct task_past p = past_of(rows[i].past);
        struct task t;
        int got = -1;
        task_begin(&t, (struct task_key){7, 1}, 0, 100 * S, rows[i].deadline_s * S, TASK_BY_LIST, &p);
        for (int guard = 0; guard < 10; guard++) {
            int64_t at = task_wake_ns(&t, &p);
            enum task_news news = task_tick(&t, &p, at);
            if (news == TASK_WILL_MISS) got = (int)(at / S - 100);
            if (news == TASK_MISSED) break;
            assert_int_not_equal(news, TASK_NOTHING); /* a wake-up is for something */
        }
        assert_int_equal(t.state, TASK_OVERDUE);
        if (got != rows[i].want_s) fail_msg("%s: %d s", rows[i].name, got);
    }
}

static void a_deadline_comes_late(void **state) {
    struct task t;
    struct task_past none = {0};
    bool is_new;
    task_begin(&t, (struct task_key){7, 1}, 0, 100 * S, 0, TASK_BY_LIST, &none);
    assert_int_equal(task_wake_ns(&t, &none), INT64_MAX);
    task_set_deadline(&t, 5 * S, 110 * S);
    assert_int_equal(task_tick(&t, &none, 110 * S), TASK_MISSED);
    assert_int_equal(task_end(&t, 111 * S, &is_new), TASK_MISS);
    assert_false(is_new);
}

/* Milliseconds; a period of one second. What happens, in order: +n one begins, -n time passes, 0 ends the row. */
static void periods(void **state) {
    static const struct {
        const char *name;
        int story[8];
        uint32_t judged, kept;
        int said;    /* how often */
        int wake_ms; /* -1: never */
    } rows[] = {
        {"nothing began",               {-9000},                        0, 0, 0, -1  },
        {"one",                         {1000},                         0, 0, 0, 2100},
        {"on the beat",                 {1000, 2000, 3000},             2, 2, 0, 4100},
        {"a little late each time",     {1000, 2090, 3180},             2, 2, 0, 4280},
        {"twice as often",              {1000, 1500, 2000},             2, 2, 0, 3100},
        {"two processes, one task",     {1000, 1040, 1499, 2000, 2020}, 1, 1, 0, 3100},
        {"nobody comes",                {1000, -2099, -2100, -2500},    1, 0, 1, 3100},
        {"for three periods: once",     {1000, -2100, -3100, -4100},    3, 0, 1, 5100},
        {"asleep for three periods",    {1000, -4100},                  3, 0, 1, 5100},
        {"one is left out",             {1000, -2100, 2900},            2, 1, 1, 4000},
        {"again, and said again",       {1000, -2100, 2900, -4000},     3, 1, 2, 5000},
        {"late, and nobody had looked", {1000, 2900},                   2, 1, 0, 4000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct task_period p = {0};
        int said = 0;
        task_period_set(&p, S);
        for (const int *at = rows[i].story; *at; at++) {
            if (*at > 0)
                task_period_begin(&p, *at * MS);
            else
                said += task_period_tick(&p, -*at * MS);
        }
        int64_t wake = task_period_wake_ns(&p);
        if (p.judged != rows[i].judged || p.kept != rows[i].kept || said != rows[i].said ||
            wake != (rows[i].wake_ms < 0 ? INT64_MAX : rows[i].wake_ms * MS))
            fail_msg("%s: %u judged, %u kept, said %d times, next at %lld ms", rows[i].name, p.judged, p.kept, said,
                     (long long)(wake / MS));
        task_period_stop(&p);
        assert_int_equal(task_period_wake_ns(&p), INT64_MAX);
    }
}

/* A label that becomes known late counts from the last beginning; none at all is never judged; a short one has 50 ms. */
static void periods_that_come_late(void **state) {
    struct task_period p = {0};
    task_period_begin(&p, 10 * S);
    task_period_begin(&p, 20 * S);
    assert_false(task_period_tick(&p, 99 * S));
    assert_int_equal(p.judged, 0);
    task_period_set(&p, 2 * S);
    assert_int_equal(task_period_wake_ns(&p), 22 * S + 200 * MS);
    task_period_set(&p, 100 * MS);
    assert_int_equal(task_period_wake_ns(&p), 20 * S + 150 * MS);
    assert_true(task_period_tick(&p, 20 * S + 150 * MS));
    task_period_stop(&p); /* the container is paused ... */
    assert_false(task_period_tick(&p, 90 * S));
    task_period_begin(&p, 95 * S); /* ... and goes on: nothing to judge yet */
    assert_int_equal(p.judged, 1);
}

static void slack_counts(void **state) {
    struct slack s;
    slack_init(&s);
    assert_true(isnan(slack_hit_rate(&s)));
    slack_end(&s, 0, 0, false, S);                /* no deadline */
    slack_end(&s, 10 * S, 5 * S, false, 2 * S);   /* hit with half to spare */
    slack_end(&s, 10 * S, 0, false, 3 * S);       /* just */
    slack_miss(&s, 4 * S);                        /* overdue ... */
    slack_end(&s, 10 * S, -3 * S, true, 5 * S);   /* ... and ended */
    slack_end(&s, 10 * S, -30 * S, false, 6 * S); /* seen only after its end */
    assert_int_equal(s.tasks, 5);
    assert_int_equal(s.hits, 2);
    assert_int_equal(s.misses, 2);
    assert_int_equal(s.float_ns, (5 + 0 - 3 - 30) * S);
    assert_int_equal(s.least_ns, -30 * S);
    assert_int_equal(s.last_miss_ns, 6 * S);
    uint64_t sum = 0;
    for (int i = 0; i < SLACK_BANDS; i++) sum += s.band[i];
    assert_int_equal(sum, 4);
    assert_int_equal(s.band[0], 1); /* missed by more than the deadline itself */
    assert_true(slack_hit_rate(&s) == 0.5);
}

static void node_rows(void **state) {
    const struct node_rules rules = {.miss_window_ns = 60 * S, .busy_ratio = 0.95, .full_ratio = 0.9};
    static const struct {
        const char *name;
        struct node_gpu gpus[2];
        int miss_s; /* ago; 0: never */
        int want;
    } rows[] = {
        {"idle",            {{0, 70ull << 30, 80ull << 30, true}, {1, 1ull << 30, 80ull << 30, true}}, 0,  0                                 },
        {"a miss just now", {{0, 70ull << 30, 80ull << 30, true}},                                     5,  NODE_MISSED                       },
        {"a miss long ago", {{0, 70ull << 30, 80ull << 30, true}},                                     61, 0                                 },
        {"cores full",
         {{1, 70ull << 30, 80ull << 30, true}, {0.99, 70ull << 30, 80ull << 30, true}},
         0,                                                                                                NODE_CORES_FULL                   },
        {"memory full",     {{0, 1ull << 30, 80ull << 30, true}},                                      0,  NODE_MEMORY_FULL                  },
        {"unknown is busy", {{NAN, 70ull << 30, 80ull << 30, true}},                                   0,  NODE_CORES_FULL                   },
        {"lost",            {{0, 70ull << 30, 80ull << 30, false}},                                    0,  NODE_NO_GPU                       },
        {"both full",       {{1, 1ull << 30, 80ull << 30, true}},                                      0,  NODE_CORES_FULL | NODE_MEMORY_FULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slack s;
        uint8_t wire[NODE_STATE_BYTES];
        struct node_state back;
        char words[160];
        slack_init(&s);
        if (rows[i].miss_s) slack_miss(&s, (1000 - rows[i].miss_s) * S);
        struct node_state got = node_judge(&rules, &s, rows[i].gpus, 2, 3, 1000 * S);
        if (got.reasons != rows[i].want) fail_msg("%s: %d", rows[i].name, got.reasons);
        node_state_put(&got, wire);
        node_state_get(wire, &back);
        assert_true(back.reasons == got.reasons && back.gpus == got.gpus && back.tasks == 3 &&
                    back.free_mib == got.free_mib && back.largest_mib == got.largest_mib &&
                    back.float_ms == got.float_ms);
        node_state_words(&got, words, sizeof words);
        assert_true(!*words == !got.reasons);
    }
    struct node_state far = {.float_ms = 1ll << 40}, back;
    uint8_t wire[NODE_STATE_BYTES];
    node_state_put(&far, wire);
    node_state_get(wire, &back);
    assert_int_equal(back.float_ms, INT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts),     cmocka_unit_test(expected),
                                       cmocka_unit_test(warned),       cmocka_unit_test(a_deadline_comes_late),
                                       cmocka_unit_test(periods),      cmocka_unit_test(periods_that_come_late),
                                       cmocka_unit_test(slack_counts), cmocka_unit_test(node_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
