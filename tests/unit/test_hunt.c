/* How often a process list is looked at, as simulated minutes: what is found, how late, and what it costs. */
#include <stdio.h>

#include "base/auto.h"
#include "model/hunt.h"
#include "tests/test.h"

#define MS 1000000ll
#define S (1000 * MS)

struct run {
    int64_t looks, late_most_ns;
};

/* A device is opened every open_ns; every one of these shows up as a process after delay_ns, or never (-1). */
static struct run play(bool is_opening, int64_t base_ns, int64_t open_ns, int64_t delay_ns, int64_t cost_ns,
                       int64_t total_ns) {
    struct hunt h = {.base_ns = base_ns};
    struct run r = {0};
    int64_t now = 0, opened = 0, shown = -1;
    hunt_begin(&h, 0);
    while (now < total_ns) {
        if (open_ns && now >= opened) {
            hunt_arm(&h, is_opening, now, 3 * S);
            if (delay_ns >= 0) shown = now + delay_ns;
            opened += open_ns;
        }
        int64_t next = hunt_next_ns(&h, now), until = open_ns ? opened : total_ns;
        if (next > until) {
            now = until;
            continue;
        }
        if (next > now) now = next;
        bool has_found = shown >= 0 && now >= shown;
        if (has_found && now - shown > r.late_most_ns) r.late_most_ns = now - shown;
        if (has_found) shown = -1;
        r.looks++;
        hunt_looked(&h, now, cost_ns, has_found);
    }
    return r;
}

static void rows_(void **state) {
    static const struct {
        const char *name;
        int64_t base, open, delay, cost;
        double cpu_most; /* percent of a core, for one GPU */
        int64_t late_most;
    } rows[] = {
        {"nobody comes",                    0,        0,       -1,       25000,  0,    0      },
        {"a base rate",                     100 * MS, 0,       -1,       10000,  0.02, 0      },
        {"a task a minute, 300 ms to show", 0,        60 * S,  300 * MS, 25000,  0.02, 5 * MS },
        {"a hundred a second",              0,        10 * MS, 5 * MS,   25000,  1,    21 * MS},
        {"a monitor opens it every second", 0,        S,       -1,       25000,  0.2,  0      },
        {"a monitor, and the call is dear", 0,        S,       -1,       500000, 0.2,  0      },
        {"a task a second, 900 ms to show", 0,        S,       900 * MS, 25000,  0.7,  21 * MS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r = play(true, rows[i].base, rows[i].open, rows[i].delay, rows[i].cost, 600 * S);
        double cpu = (double)r.looks * (double)rows[i].cost / (600.0 * S) * 100;
        if (cpu > rows[i].cpu_most || r.late_most_ns > rows[i].late_most)
            fail_msg("%s: %.3f %% of a core, at most %.1f ms late", rows[i].name, cpu, (double)r.late_most_ns / MS);
    }
}

/* A container starts every half second and its process shows at once: what was found before does not slow the looks down. */
static void containers_one_after_the_other(void **state) {
    struct run r = play(false, 0, 513 * MS, 30 * MS, 25000, 60 * S);
    if (r.late_most_ns > 5 * MS) fail_msg("%.1f ms late", (double)r.late_most_ns / MS);
    r = play(true, 0, 513 * MS, 30 * MS, 25000, 60 * S);
    assert_true(r.late_most_ns > 5 * MS); /* an opening alone may be of the one before */
}

/* ---- those whose pid is told ---- */

/* What is true of the card: an opener is listed after delay, and between the two a look waits for the driver's lock. */
struct card {
    int64_t delay_ns, wobble_ns; /* it takes delay, and up to so much more */
    int64_t quiet_ns, locked_ns; /* CPU of a look */
};

struct start {
    int64_t late_ns, cpu_ns;
    int looks;
};

/* One process opens the file at `at`, and others after it. */
static struct start one_start(struct hunt *h, const struct card *card, uint32_t pid, int64_t at, int64_t delay) {
    struct start r = {.late_ns = -1};
    int64_t now = at;
    hunt_expect(h, pid, at, 3 * S);
    hunt_expect(h, pid, at + MS, 3 * S);
    for (int64_t until = at + 5 * S, round = at + 700 * MS; now < until;) {
        int64_t next = hunt_next_ns(h, now);
        bool is_round = next >= round; /* which reads the list anyway */
        now = is_round ? round : next > now ? next : now;
        if (is_round) round += S;
        bool is_locked = now < at + delay, is_found = !is_locked && r.late_ns < 0;
        if (is_round && !is_found) continue;
        int64_t cost = is_round ? 0 : is_locked ? card->locked_ns : card->quiet_ns;
        now += cost; /* it waits busily */
        if (is_locked && now > at + delay) now = at + delay;
        if (is_found) r.late_ns = now - at - delay;
        if (is_found) hunt_found(h, pid, now);
        r.looks += !is_round;
        r.cpu_ns += cost;
        hunt_looked(h, now, cost, is_found);
    }
    return r;
}

static void it_learns_when_they_come(void **state) {
    static const struct {
        const char *name;
        struct card card;
        int64_t late_most, cpu_most; /* from the fourth on */
        int64_t first_late_most;
    } rows[] = {
        {"an H200: 290 ms under a lock", {290 * MS, 0, 20000, 9 * MS},       6 * MS,  70 * MS,  21 * MS},
        {"it varies by a tenth",         {270 * MS, 30 * MS, 20000, 9 * MS}, 11 * MS, 110 * MS, 21 * MS},
        {"one that takes two seconds",   {2 * S, 0, 20000, 9 * MS},          30 * MS, 250 * MS, S      },
        {"listed at once, as simulated", {2 * MS, 0, 25000, 25000},          6 * MS,  MS,       6 * MS },
        {"quick, and it varies",         {2 * MS, 60 * MS, 25000, 25000},    6 * MS,  MS,       6 * MS },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hunt h = {0};
        const struct card *card = &rows[i].card;
        hunt_begin(&h, 0);
        for (uint32_t n = 0; n < 40; n++) {
            int64_t delay = card->delay_ns + card->wobble_ns * (n * 7 % 10) / 10;
            struct start r = one_start(&h, card, 100 + n, 10 * S * (n + 1), delay);
            if (r.late_ns < 0 || (n >= 4 && r.late_ns > rows[i].late_most) ||
                (n == 0 && r.late_ns > rows[i].first_late_most) || (n >= 4 && r.cpu_ns > rows[i].cpu_most))
                fail_msg("%s, start %u: %.1f ms late, %.1f ms of CPU, %d looks", rows[i].name, n,
                         (double)r.late_ns / MS, (double)r.cpu_ns / MS, r.looks);
        }
    }
}

/* One that is much quicker than those before it is late once, by no more than a quiet look; the next is not. */
static void it_unlearns(void **state) {
    struct hunt h = {0};
    const struct card card = {290 * MS, 0, 20000, 9 * MS};
    hunt_begin(&h, 0);
    for (uint32_t n = 0; n < 10; n++) (void)one_start(&h, &card, 100 + n, 10 * S * (n + 1), 290 * MS);
    struct start surprise = one_start(&h, &card, 200, 200 * S, 30 * MS),
                 next = one_start(&h, &card, 201, 210 * S, 30 * MS);
    if (surprise.late_ns > 101 * MS) fail_msg("%.1f ms late", (double)surprise.late_ns / MS);
    if (next.late_ns > surprise.late_ns) fail_msg("%.1f ms late again", (double)next.late_ns / MS);
    for (uint32_t n = 0; n < 6; n++) next = one_start(&h, &card, 300 + n, (220 + 10 * n) * S, 30 * MS);
    if (next.late_ns > 21 * MS) fail_msg("%.1f ms late in the end", (double)next.late_ns / MS);
}

/* Fifty containers start and use no GPU; then one does. */
static void the_idle_make_nobody_poor(void **state) {
    struct hunt h = {0};
    const struct card card = {2 * MS, 0, 60000, 60000};
    int64_t now = 0;
    hunt_begin(&h, 0);
    for (int n = 0; n < 50; n++) {
        hunt_arm(&h, false, now, 3 * S);
        for (int64_t until = now + S / 2; now < until;) {
            int64_t next = hunt_next_ns(&h, now);
            now = next > now ? next : now;
            hunt_looked(&h, now, card.quiet_ns, false);
        }
    }
    struct start r = one_start(&h, &card, 100, now + S, card.delay_ns);
    if (r.late_ns > 6 * MS) fail_msg("%.1f ms late", (double)r.late_ns / MS);
}

/* More of them than there is room for: the newest are known, and nothing is looked for twice. */
static void many_come(void **state) {
    struct hunt h = {0};
    hunt_begin(&h, 0);
    for (uint32_t n = 1; n <= 3 * HUNT_COMERS; n++) hunt_expect(&h, n, S + n, 3 * S);
    assert_true(hunt_next_ns(&h, 2 * S) <= 2 * S);
    for (uint32_t n = 1; n <= 3 * HUNT_COMERS; n++) hunt_found(&h, n, 2 * S);
    hunt_looked(&h, 2 * S, 25000, true);
    assert_int_equal(h.learnt, HUNT_COMERS);
    assert_int_equal(hunt_next_ns(&h, 2 * S), INT64_MAX);
    hunt_expect(&h, 7, 3 * S, S);
    hunt_looked(&h, 3 * S, 25000, false);
    assert_true(hunt_next_ns(&h, 3 * S) < 4 * S);
    assert_int_equal(hunt_next_ns(&h, 4 * S), INT64_MAX); /* it never came */
    hunt_found(&h, 7, 9 * S);
    assert_int_equal(h.learnt, HUNT_COMERS); /* too late to learn from */
}

/* A monitor that opens the file and ends: nobody looks for it any longer, and another one is still looked for. */
static void one_ends_unlisted(void **state) {
    struct hunt h = {0};
    hunt_begin(&h, 0);
    hunt_expect(&h, 7, S, 3 * S);
    hunt_expect(&h, 8, S, 3 * S);
    hunt_gone(&h, 7);
    assert_true(hunt_next_ns(&h, S + MS) < 2 * S);
    hunt_gone(&h, 8);
    hunt_gone(&h, 9);
    hunt_gone(&h, 0);
    assert_int_equal(hunt_next_ns(&h, S + MS), INT64_MAX);
    assert_int_equal(h.learnt, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_),
                                       cmocka_unit_test(containers_one_after_the_other),
                                       cmocka_unit_test(it_learns_when_they_come),
                                       cmocka_unit_test(it_unlearns),
                                       cmocka_unit_test(many_come),
                                       cmocka_unit_test(one_ends_unlisted),
                                       cmocka_unit_test(the_idle_make_nobody_poor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
