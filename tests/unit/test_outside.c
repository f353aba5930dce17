/* Who uses a GPU outside the queue is warned, and waited for, before anything happens to him. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "model/outside.h"

#define S 1000000000LL

static const struct outside_policy ends = {OUTSIDE_END, 60 * S, 1800 * S, 10 * S};
static const struct outside_policy warns = {OUTSIDE_WARN, 60 * S, 1800 * S, 10 * S};
static const struct outside_policy shows = {OUTSIDE_SHOW, 60 * S, 1800 * S, 10 * S};

/* A story is told as what is so from a second on: w wanted, n not wanted, u unknown, s spared; and when what must be done. */
struct moment {
    int at_s;
    char so;
};

struct deed {
    int at_s;
    enum outside_act act;
};

static const struct {
    const char *name;
    const struct outside_policy *policy, *later; /* later: from second 1000 on */
    struct moment m[6];
    struct deed d[6];
} stories[] = {
    {"wanted, warned, waited for, ended",
     &ends,
     NULL,                                                       {{1, 'w'}},
     {{61, OUTSIDE_DO_WARN}, {1861, OUTSIDE_DO_TERM}, {1871, OUTSIDE_DO_KILL}}                                                                              },
    {"nobody wants it",                          &ends,  NULL,   {{1, 'n'}},                           {{0}}                                                },
    {"shown only",                               &shows, NULL,   {{1, 'w'}},                           {{0}}                                                },
    {"warned only",                              &warns, NULL,   {{1, 'w'}},                           {{61, OUTSIDE_DO_WARN}}                              },
    {"spared",                                   &ends,  NULL,   {{1, 's'}},                           {{0}}                                                },
    {"was there long before it was wanted",
     &ends,
     NULL,                                                       {{1, 'n'}, {3000, 'w'}},
     {{3060, OUTSIDE_DO_WARN}, {4860, OUTSIDE_DO_TERM}, {4870, OUTSIDE_DO_KILL}}                                                                            },
    {"a short wish is none",
     &ends,
     NULL,                                                       {{1, 'w'}, {50, 'n'}, {60, 'w'}},
     {{120, OUTSIDE_DO_WARN}, {1920, OUTSIDE_DO_TERM}, {1930, OUTSIDE_DO_KILL}}                                                                             },
    {"taken back where nobody waits any more",
     &ends,
     NULL,                                                       {{1, 'w'}, {100, 'n'}},
     {{61, OUTSIDE_DO_WARN}, {160, OUTSIDE_DO_TAKE_BACK}}                                                                                                   },
    {"and the next warning begins anew",
     &ends,
     NULL,                                                       {{1, 'w'}, {100, 'n'}, {200, 'w'}},
     {{61, OUTSIDE_DO_WARN},
      {160, OUTSIDE_DO_TAKE_BACK},
      {260, OUTSIDE_DO_WARN},
      {2060, OUTSIDE_DO_TERM},
      {2070, OUTSIDE_DO_KILL}}                                                                                                                              },
    {"a gap does not take it back",
     &ends,
     NULL,                                                       {{1, 'w'}, {100, 'n'}, {130, 'w'}},
     {{61, OUTSIDE_DO_WARN}, {1861, OUTSIDE_DO_TERM}, {1871, OUTSIDE_DO_KILL}}                                                                              },
    {"not ended in the moment nobody waits",
     &ends,
     NULL,                                                       {{1, 'w'}, {1850, 'n'}, {1880, 'w'}},
     {{61, OUTSIDE_DO_WARN}, {1880, OUTSIDE_DO_TERM}, {1890, OUTSIDE_DO_KILL}}                                                                              },
    {"nothing happens while nothing is known",
     &ends,
     NULL,                                                       {{1, 'w'}, {100, 'u'}, {4000, 'w'}},
     {{61, OUTSIDE_DO_WARN}, {4000, OUTSIDE_DO_TERM}, {4010, OUTSIDE_DO_KILL}}                                                                              },
    {"unknown from the start",                   &ends,  NULL,   {{1, 'u'}},                           {{0}}                                                },
    {"excepted after the warning",
     &ends,
     NULL,                                                       {{1, 'w'}, {100, 's'}},
     {{61, OUTSIDE_DO_WARN}, {100, OUTSIDE_DO_TAKE_BACK}}                                                                                                   },
    {"excepted after TERM",
     &ends,
     NULL,                                                       {{1, 'w'}, {1865, 's'}},
     {{61, OUTSIDE_DO_WARN}, {1861, OUTSIDE_DO_TERM}, {1865, OUTSIDE_DO_TAKE_BACK}}                                                                         },
    {"told to end is ended though nobody waits",
     &ends,
     NULL,                                                       {{1, 'w'}, {1863, 'n'}},
     {{61, OUTSIDE_DO_WARN}, {1861, OUTSIDE_DO_TERM}, {1871, OUTSIDE_DO_KILL}}                                                                              },
    {"an end that no warning spoke of",
     &warns,
     &ends,
     {{1, 'w'}},
     {{61, OUTSIDE_DO_WARN}, {1000, OUTSIDE_DO_WARN}, {2800, OUTSIDE_DO_TERM}, {2810, OUTSIDE_DO_KILL}}                                                     },
    {"the operator does not end any more",       &ends,  &warns, {{1, 'w'}},                           {{61, OUTSIDE_DO_WARN}}                              },
    {"the operator only looks now",              &ends,  &shows, {{1, 'w'}},                           {{61, OUTSIDE_DO_WARN}, {1000, OUTSIDE_DO_TAKE_BACK}}},
};

static void told(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct outside o = {0};
        size_t next = 0, at = 0;
        for (int t = 1; t < 6000; t++) {
            const struct moment *m = stories[i].m;
            while (at + 1 < ARRAY_LEN(stories[i].m) && m[at + 1].at_s && m[at + 1].at_s <= t) at++;
            const struct outside_policy *p = t >= 1000 && stories[i].later ? stories[i].later : stories[i].policy;
            struct outside_facts f = {.now_ns = t * S,
                                      .is_known = m[at].so != 'u',
                                      .is_wanted = m[at].so == 'w' || m[at].so == 's',
                                      .is_spared = m[at].so == 's'};
            enum outside_act act = outside_step(&o, p, &f);
            if (act == OUTSIDE_DO_NOTHING) continue;
            const struct deed *want = &stories[i].d[next++];
            if (want->at_s != t || want->act != act)
                fail_msg("%s: did %d at %d, and not %d at %d", stories[i].name, act, t, want->act, want->at_s);
        }
        if (stories[i].d[next].at_s) fail_msg("%s: %zu deeds only", stories[i].name, next);
    }
}

/* Whatever happens in whatever order: no end without a warning that spoke of it, and never before that time. */
static void random_histories(void **state) {
    srand(20261115);
    unsigned terms = 0, kills = 0;
    for (int run = 0; run < 3000; run++) {
        struct outside o = {0};
        struct outside_policy p = ends;
        int64_t now_ns = S, promised_ns = 0, term_ns = 0;
        struct outside_facts f = {0};
        for (int i = 0; i < 200; i++) {
            now_ns += (int64_t)(rand() % 300) * S / 2;
            if (rand() % 10 == 0) p.mode = (enum outside_mode)(rand() % 3);
            if (rand() % 20 == 0) p.end_ns = (int64_t)(rand() % 3600) * S;
            if (rand() % 4 == 0) f.is_known = rand() % 4 != 0;
            if (rand() % 4 == 0) f.is_wanted = rand() % 4 != 0;
            if (rand() % 10 == 0) f.is_spared = rand() % 8 == 0;
            f.now_ns = now_ns;
            enum outside_act act = outside_step(&o, &p, &f);
            if (act != OUTSIDE_DO_NOTHING && act != OUTSIDE_DO_TAKE_BACK)
                assert_true(!f.is_spared && p.mode != OUTSIDE_SHOW);
            if (act == OUTSIDE_DO_TAKE_BACK) promised_ns = term_ns = 0;
            if (act == OUTSIDE_DO_WARN) promised_ns = o.is_promised ? outside_ends_ns(&o, &p) : 0;
            if (act == OUTSIDE_DO_WARN && o.is_promised) assert_true(promised_ns >= now_ns + p.end_ns);
            if (act == OUTSIDE_DO_TERM) {
                assert_true(promised_ns && now_ns >= promised_ns && p.mode == OUTSIDE_END);
                assert_true(f.is_known && f.is_wanted);
                term_ns = now_ns;
                terms++;
            }
            if (act == OUTSIDE_DO_KILL) {
                assert_true(term_ns && now_ns - term_ns >= p.grace_ns);
                term_ns = 0;
                kills++;
            }
        }
    }
    assert_true(terms > 100 && kills > 50);
}

static void exceptions(void **state) {
    static const struct {
        const char *list, *user, *path;
        bool want;
    } rows[] = {
        {"",                    "alice", "/usr/bin/python3", false},
        {"alice",               "alice", "",                 true },
        {"bob,alice",           "alice", "",                 true },
        {"bob, alice",          "alice", "",                 true },
        {"alic",                "alice", "",                 false},
        {"alicee",              "alice", "",                 false},
        {"/usr/bin/Xorg",       "alice", "/usr/bin/Xorg",    true },
        {"Xorg",                "alice", "/usr/bin/Xorg",    false},
        {"/usr/bin/X",          "alice", "/usr/bin/Xorg",    false},
        {"/home/alice/Xorg",    "root",  "/usr/bin/Xorg",    false},
        {",,bob,/usr/bin/Xorg", "alice", "/usr/bin/Xorg",    true },
        {",",                   "",      "",                 false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (outside_is_excepted(rows[i].list, rows[i].user, rows[i].path) != rows[i].want) fail_msg("%s", rows[i].list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told),
        cmocka_unit_test(random_histories),
        cmocka_unit_test(exceptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
