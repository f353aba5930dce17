/* The power budget: rows of how a total is shared, the order of lowers and raises, and random fleets that must never be
 * given more than there is. */
#include "model/budget.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "tests/test.h"

#define S 1000000000ll
#define STEP_NS (S / 4)

/* A machine as it really is: what is in force, beside what the budget gets to see. */
struct fleet {
    struct budget_card card[GPU_MAX];
    double real_w[GPU_MAX];     /* the limit in force */
    double appetite_w[GPU_MAX]; /* what the card would draw without one */
    size_t n;
    double total_w;
    int64_t now_ns;
    struct budget_state state;
    struct budget_plan plan;
    unsigned changes;
};

static double sum_real_w(const struct fleet *f) {
    double sum = 0;
    for (size_t i = 0; i < f->n; i++) sum += f->real_w[i];
    return sum;
}

static void look(struct fleet *f) {
    for (size_t i = 0; i < f->n; i++) {
        struct budget_card *c = &f->card[i];
        if (!c->is_there) continue;
        c->enforced_w = f->real_w[i];
        c->draw_w = fmin(f->appetite_w[i], f->real_w[i]);
        c->wants_more = f->appetite_w[i] > f->real_w[i];
    }
}

static void fleet_step(struct fleet *f) {
    look(f);
    budget_step(&f->state, f->card, f->n, f->total_w, f->now_ns, &f->plan);
    for (size_t k = 0; k < f->plan.changes; k++) f->real_w[f->plan.change[k].card] = f->plan.change[k].limit_w;
    f->changes += (unsigned)f->plan.changes;
    f->now_ns += STEP_NS;
}

static void fleet_run(struct fleet *f, double seconds) {
    for (int k = 0; k < seconds * 4; k++) fleet_step(f);
}

static void add(struct fleet *f, double appetite_w, int priority) {
    size_t i = f->n++;
    f->card[i] = (struct budget_card){
        .min_w = 200, .baseline_w = 700, .enforced_w = 700, .priority = priority, .can_set = true, .is_there = true};
    f->real_w[i] = 700;
    f->appetite_w[i] = appetite_w;
    if (!f->now_ns) f->now_ns = S;
}

static void checked(void **state) {
    static const struct {
        const char *name;
        double total;
        bool can_set;
        int want;
        const char *says;
    } rows[] = {
        {"enough",          1400,     true,  0,       ""                            },
        {"just enough",     800,      true,  0,       ""                            },
        {"too little",      799,      true,  -ERANGE, "800 W that the lowest limits"},
        {"one is as it is", 1299,     false, -ERANGE, "700 W of GPUs that cannot"   },
        {"and fits",        1300,     false, 0,       ""                            },
        {"nothing",         0,        true,  -EINVAL, "not a number above 0"        },
        {"no number",       NAN,      true,  -EINVAL, "not a number above 0"        },
        {"no limit",        INFINITY, true,  0,       ""                            },
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct fleet f = {0};
        for (int i = 0; i < 4; i++) add(&f, 0, 0);
        f.card[3].can_set = rows[k].can_set;
        struct error e = {0};
        int r = budget_check(f.card, f.n, rows[k].total, &e);
        if (r != rows[k].want || !strstr(e.text, rows[k].says)) fail_msg("%s: %d, %s", rows[k].name, r, e.text);
    }
}

static void shared(void **state) {
    static const struct {
        const char *name;
        double total;
        double appetite[4];
        int priority[4];
        double want[4];
        double within;
    } rows[] = {
        {"enough for all",         2800,     {700, 700, 700, 700}, {0},          {700, 700, 700, 700}, 0.1},
        {"no limit",               INFINITY, {700, 100, 700, 700}, {0},          {700, 700, 700, 700}, 0.1},
        {"equal wishes",           1600,     {700, 700, 700, 700}, {0},          {400, 400, 400, 400}, 1  },
        {"idle ones give",         2000,     {700, 700, 80, 80},   {0},          {700, 700, 300, 300}, 1  },
        {"idle ones give all",     1600,     {700, 700, 80, 80},   {0},          {600, 600, 200, 200}, 1  },
        {"a small wish is met",    1600,     {300, 700, 700, 80},  {0},          {335, 532, 532, 200}, 2  },
        {"priority first",         1600,     {700, 700, 700, 700}, {0, 9, 0, 0}, {300, 700, 300, 300}, 1  },
        {"down to the lowest",     1200,     {700, 700, 700, 700}, {1, 9, 0, 0}, {200, 600, 200, 200}, 1  },
        {"three ranks",            1700,     {700, 700, 700, 700}, {2, 1, 0, 0}, {700, 600, 200, 200}, 1  },
        {"an idle one has no say", 1300,     {80, 700, 700, 80},   {9, 0, 0, 0}, {200, 450, 450, 200}, 1  },
        {"nothing to share",       800,      {700, 700, 700, 700}, {5, 0, 0, 0}, {200, 200, 200, 200}, 0.1},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct fleet f = {.total_w = rows[k].total};
        for (int i = 0; i < 4; i++) add(&f, rows[k].appetite[i], rows[k].priority[i]);
        fleet_run(&f, 120);
        for (int i = 0; i < 4; i++)
            if (fabs(f.real_w[i] - rows[k].want[i]) > rows[k].within)
                fail_msg("%s: card %d has %.1f W, not %.0f", rows[k].name, i, f.real_w[i], rows[k].want[i]);
        f.changes = 0;
        fleet_run(&f, 600);
        if (f.changes) fail_msg("%s: %u changes after it had settled", rows[k].name, f.changes);
    }
}

static void a_halved_budget_is_kept_within_a_second(void **state) {
    struct fleet f = {.total_w = 5600};
    for (int i = 0; i < 8; i++) add(&f, 700, 0);
    fleet_run(&f, 30);
    assert_true(sum_real_w(&f) == 5600);
    f.total_w = 2800;
    fleet_run(&f, 0.5);
    assert_true(sum_real_w(&f) <= 2800 && sum_real_w(&f) > 2790);
}

/* A raise waits for the read-back of the lower that pays for it, however long that takes. */
static void a_raise_follows_its_lower(void **state) {
    struct fleet f = {.total_w = 900};
    add(&f, 700, 0);
    add(&f, 80, 0);
    fleet_run(&f, 60);
    assert_true(f.real_w[0] == 700 && f.real_w[1] == 200);
    f.appetite_w[0] = 80;
    f.appetite_w[1] = 700;
    bool is_lowered = false;
    for (int k = 0; k < 60 * 4; k++) {
        look(&f);
        budget_step(&f.state, f.card, f.n, f.total_w, f.now_ns, &f.plan);
        f.now_ns += STEP_NS;
        for (size_t c = 0; c < f.plan.changes; c++) {
            struct budget_change *change = &f.plan.change[c];
            assert_true(change->card == 0 && change->verb == BUDGET_LOWER);
            is_lowered = true; /* and the driver does nothing */
        }
        if (is_lowered) break;
    }
    assert_true(is_lowered);
    for (int k = 0; k < 8; k++) {
        look(&f);
        budget_step(&f.state, f.card, f.n, f.total_w, f.now_ns, &f.plan);
        f.now_ns += STEP_NS;
        for (size_t c = 0; c < f.plan.changes; c++) assert_true(f.plan.change[c].verb == BUDGET_LOWER);
    }
    f.real_w[0] = f.plan.limit_w[0]; /* now it has taken */
    fleet_run(&f, 0.5);
    assert_true(f.real_w[1] == 450); /* half, as card 0 has not been idle for long */
    fleet_run(&f, 60);
    assert_true(f.real_w[0] == 200 && f.real_w[1] == 700);
}

static void a_card_that_is_lost_keeps_its_watts(void **state) {
    struct fleet f = {.total_w = 1600};
    for (int i = 0; i < 4; i++) add(&f, 700, 0);
    fleet_run(&f, 30);
    f.card[0].is_there = false; /* at 400 W */
    f.total_w = 1200;
    fleet_run(&f, 1);
    assert_true(f.real_w[0] == 400 && sum_real_w(&f) <= 1200);
    assert_true(f.plan.limit_w[0] == 400 && !f.plan.is_short);
    f.total_w = 900;
    fleet_run(&f, 1);
    assert_true(f.plan.is_short && f.real_w[1] == 200 && f.real_w[2] == 200 && f.real_w[3] == 200);
    f.card[0].is_there = true; /* back, as a reloaded driver leaves it */
    f.real_w[0] = 700;
    f.total_w = 1200;
    fleet_run(&f, 1);
    assert_true(sum_real_w(&f) <= 1200);
    fleet_run(&f, 30);
    for (int i = 0; i < 4; i++) assert_true(fabs(f.real_w[i] - 300) <= 1);
}

static void a_limit_that_does_not_take_is_covered_by_others(void **state) {
    struct fleet f = {.total_w = 1600};
    for (int i = 0; i < 4; i++) add(&f, 700, 0);
    for (int k = 0; k < 6 * 4; k++) {
        f.real_w[2] = 700; /* whatever it is told */
        fleet_step(&f);
    }
    f.real_w[2] = 700;
    assert_true(sum_real_w(&f) <= 1600);
    unsigned before = f.changes;
    for (int k = 0; k < 60 * 4; k++) {
        f.real_w[2] = 700;
        fleet_step(&f);
    }
    assert_true(f.changes - before <= 8); /* tried again, not hammered */
    fleet_run(&f, 60);                    /* and at last it takes */
    for (int i = 0; i < 4; i++) assert_true(fabs(f.real_w[i] - 400) <= 1);
}

/* Another limiter keeps the card low: its watts are of use elsewhere. */
static void a_raise_that_does_not_take_is_given_to_others(void **state) {
    struct fleet f = {.total_w = 1000};
    add(&f, 700, 0);
    add(&f, 700, 0);
    for (int k = 0; k < 60 * 4; k++) {
        fleet_step(&f);
        f.real_w[0] = fmin(f.real_w[0], 350);
    }
    assert_true(f.real_w[0] <= 350 && f.real_w[1] >= 630);
}

static void a_limit_someone_raised_is_lowered_again(void **state) {
    struct fleet f = {.total_w = 1000};
    add(&f, 700, 0);
    add(&f, 700, 0);
    fleet_run(&f, 30);
    f.real_w[0] = 700;
    fleet_run(&f, 0.5);
    assert_true(sum_real_w(&f) <= 1000);
}

static void drivers_that_round_up_stay_under(void **state) {
    struct fleet f = {.total_w = 1001};
    add(&f, 700, 0);
    add(&f, 700, 0);
    for (int k = 0; k < 60 * 4; k++) {
        fleet_step(&f);
        for (int i = 0; i < 2; i++)
            f.real_w[i] = fmin(ceil(f.real_w[i] / 5) * 5 - 3.5, 700); /* 1.5 W above steps of 5 */
    }
    assert_true(sum_real_w(&f) <= 1001);
}

/* Loads that come and go, and draws that swing: watts move when it pays, and seldom. */
static void it_does_not_chatter(void **state) {
    static const struct {
        const char *name;
        double period_s, low_w, high_w;
        double most_a_minute; /* for each card */
    } rows[] = {
        {"swings",            2,   250, 330, 0.1},
        {"bursts",            20,  80,  700, 0.5},
        {"minutes on, off",   120, 80,  700, 6  },
        {"around its limit",  6,   380, 420, 1  },
        {"slow, small waves", 60,  300, 360, 2  },
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct fleet f = {.total_w = 1600};
        for (int i = 0; i < 4; i++) add(&f, 700, 0);
        for (int step = 0; step < 4 * 1200; step++) {
            if (step == 4 * 600) f.changes = 0;
            bool is_high = fmod(step / 4.0, rows[k].period_s) < rows[k].period_s / 2;
            f.appetite_w[0] = is_high ? rows[k].high_w : rows[k].low_w;
            fleet_step(&f);
            assert_true(step < 4 || sum_real_w(&f) <= 1600);
        }
        double a_minute = f.changes / 10.0 / 4;
        if (a_minute > rows[k].most_a_minute) fail_msg("%s: %.2f changes a minute", rows[k].name, a_minute);
    }
}

/* ---- random fleets ---- */

static uint64_t random_word(uint64_t *rng) {
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return *rng >> 16;
}

static double between(uint64_t *rng, double from, double to) {
    return from + (to - from) * (double)(random_word(rng) % 10001) / 10000;
}

static double least_w(const struct fleet *f) {
    double sum = 0;
    for (size_t i = 0; i < f->n; i++)
        sum += f->card[i].can_set && f->card[i].is_there ? f->card[i].min_w : f->real_w[i];
    return sum;
}

static void random_fleet(struct fleet *f, uint64_t *rng) {
    *f = (struct fleet){.now_ns = S};
    size_t n = 1 + random_word(rng) % 16;
    for (size_t i = 0; i < n; i++) {
        add(f, between(rng, 50, 800), (int)(random_word(rng) % 3));
        struct budget_card *c = &f->card[i];
        c->min_w = floor(between(rng, 50, 250));
        c->baseline_w = c->min_w + floor(between(rng, 0, 450));
        c->can_set = random_word(rng) % 8 != 0;
        f->real_w[i] = c->enforced_w = between(rng, c->min_w, c->baseline_w);
    }
    f->total_w = fmax(between(rng, 0.4, 1.2) * sum_real_w(f), least_w(f));
}

static void disturb(struct fleet *f, uint64_t *rng) {
    size_t i = random_word(rng) % f->n;
    struct budget_card *c = &f->card[i];
    switch (random_word(rng) % 8) {
    case 0: f->total_w = fmax(between(rng, 0.5, 1.5) * f->total_w, least_w(f)); break;
    case 1: c->is_there = !c->is_there; break;
    case 2: c->priority = (int)(random_word(rng) % 3); break;
    case 3: /* someone else; nobody reaches a card that is gone */
        if (c->is_there && c->baseline_w > c->min_w + 3) f->real_w[i] = between(rng, c->min_w + 3, c->baseline_w);
        break;
    default: f->appetite_w[i] = between(rng, 50, 800);
    }
    f->total_w = fmax(f->total_w, least_w(f));
}

static void in_bounds(const struct fleet *f, uint64_t seed) {
    double raised = 0;
    bool is_lower_over = false;
    for (size_t k = 0; k < f->plan.changes; k++) {
        const struct budget_change *change = &f->plan.change[k];
        const struct budget_card *c = &f->card[change->card];
        if (change->limit_w < c->min_w || change->limit_w > c->baseline_w || !c->can_set || !c->is_there)
            fail_msg("seed %llu: card %zu set to %g", (unsigned long long)seed, change->card, change->limit_w);
        if (change->verb == BUDGET_RAISE) {
            raised += fmax(change->limit_w - c->enforced_w, 0);
            is_lower_over = true;
        } else if (is_lower_over) {
            fail_msg("seed %llu: a raise before a lower", (unsigned long long)seed);
        }
    }
    double enforced = 0; /* lowers of this step pay for nothing yet */
    for (size_t i = 0; i < f->n; i++) enforced += f->card[i].enforced_w;
    if (raised > 0 && enforced + raised > f->total_w + 0.1)
        fail_msg("seed %llu: raises of %g W on %g W of %g", (unsigned long long)seed, raised, enforced, f->total_w);
}

static double band_w(const struct budget_card *c) { return fmax(BUDGET_BAND * c->baseline_w, BUDGET_BAND_LEAST_W); }

static bool is_held(const struct fleet *f, size_t i) {
    const struct budget_card *c = &f->card[i];
    return c->can_set && c->is_there && f->appetite_w[i] > f->real_w[i] && f->real_w[i] < c->baseline_w - band_w(c) - 1;
}

/* What card j may have while card i, which wants more, has what it has. */
static double due_w(const struct fleet *f, size_t i, size_t j) {
    const struct budget_card *c = &f->card[i], *d = &f->card[j];
    if (d->priority > c->priority) return d->baseline_w;
    if (d->priority < c->priority) return d->min_w;
    double use =
        f->appetite_w[j] > f->real_w[j] ? d->baseline_w : f->appetite_w[j] * (1 + BUDGET_SPARE) + BUDGET_SPARE_W;
    return fmax(fmin(use, f->real_w[i]), d->min_w);
}

/* At rest: nobody who wants goes without while there is something left, while one of lower rank has more than its lowest
 * limit, or while an equal has more; beyond the stated band of each that is held, and the watt that rounding costs. */
static void is_fair(const struct fleet *f, uint64_t seed) {
    double bands = (double)f->n, widest = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!is_held(f, i)) continue;
        bands += band_w(&f->card[i]);
        widest = fmax(widest, band_w(&f->card[i]));
    }
    for (size_t i = 0; i < f->n; i++) {
        if (!is_held(f, i)) continue;
        double left = f->total_w - f->plan.committed_w; /* a card that went away unread counts as last seen */
        if (left > widest + (double)f->n)
            fail_msg("seed %llu: %g W left while card %zu wants", (unsigned long long)seed, left, i);
        for (size_t j = 0; j < f->n; j++) {
            if (j == i || !f->card[j].can_set || !f->card[j].is_there) continue;
            double due = due_w(f, i, j);
            if (f->real_w[j] > due + bands)
                fail_msg("seed %llu: card %zu has %g W and is due %g while card %zu wants", (unsigned long long)seed, j,
                         f->real_w[j], due, i);
        }
    }
}

/* Trouble for 40 s, then 90 s of rest: longer than a raise that did not take is held against a card. */
enum { CYCLE = 4 * 130 };

static void random_fleets(void **state) {
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t rng = seed * 0x9e3779b97f4a7c15u | 1;
        struct fleet f;
        random_fleet(&f, &rng);
        int64_t changed_ns = f.now_ns;
        for (int step = 0; step < 4 * CYCLE; step++) {
            if (step % CYCLE == CYCLE - 1) is_fair(&f, seed);
            if (step % CYCLE == 0 || (step % CYCLE < 160 && random_word(&rng) % 16 == 0)) {
                disturb(&f, &rng);
                changed_ns = f.now_ns;
            }
            fleet_step(&f);
            in_bounds(&f, seed);
            if (f.now_ns - changed_ns > S && sum_real_w(&f) > f.total_w + 0.1)
                fail_msg("seed %llu: %g W of %g at step %d", (unsigned long long)seed, sum_real_w(&f), f.total_w, step);
        }
    }
}

static void same_input_same_output(void **state) {
    static struct fleet a, b;
    uint64_t x = 77, y = 77;
    random_fleet(&a, &x);
    random_fleet(&b, &y);
    for (int step = 0; step < 2000; step++) {
        if (step % 40 == 0) disturb(&a, &x);
        if (step % 40 == 0) disturb(&b, &y);
        fleet_step(&a);
        fleet_step(&b);
        assert_memory_equal(a.real_w, b.real_w, sizeof a.real_w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked),
        cmocka_unit_test(shared),
        cmocka_unit_test(a_halved_budget_is_kept_within_a_second),
        cmocka_unit_test(a_raise_follows_its_lower),
        cmocka_unit_test(a_card_that_is_lost_keeps_its_watts),
        cmocka_unit_test(a_limit_that_does_not_take_is_covered_by_others),
        cmocka_unit_test(a_raise_that_does_not_take_is_given_to_others),
        cmocka_unit_test(a_limit_someone_raised_is_lowered_again),
        cmocka_unit_test(drivers_that_round_up_stay_under),
        cmocka_unit_test(it_does_not_chatter),
        cmocka_unit_test(random_fleets),
        cmocka_unit_test(same_input_same_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
