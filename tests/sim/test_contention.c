/* How tasks share a card: the curves, and that their ends are exact. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "sim/machine.h"

static struct machine m;

static void build(const char *key, uint32_t gpus, bool mig) {
    memset(&m, 0, sizeof m);
    m.seed = 1;
    m.air_c = 27;
    m.generation = 1;
    for (uint32_t i = 0; i < gpus; i++) machine_add(&m, model_by_key(key), mig);
}

static struct task *start(struct wire_task ask) {
    struct task *t = NULL;
    char why[MACHINE_WHY_MAX];
    if (!ask.gpus) ask.gpus = 1;
    int code = machine_start(&m, &ask, 100, 0, &t, why);
    if (code) print_error("%s\n", why);
    assert_int_equal(code, 0);
    return t;
}

static struct wire_task work(double demand, double work_s) {
    return (struct wire_task){.demand = demand, .work_s = work_s, .memory_bytes = 1 << 20, .mig = UINT32_MAX};
}

static bool all_done(void) {
    for (unsigned i = 0; i < m.tasks.high; i++)
        if (m.tasks.slot[i].used && !m.tasks.slot[i].done) return false;
    return true;
}

/* Steps of an odd length, so that an end on a step's edge would be luck. */
static void finish_all(void) {
    for (int i = 0; i < 100000 && !all_done(); i++) machine_advance(&m, 0.0371);
    assert_true(all_done());
}

static double took(const struct task *t) { return t->ended_s - t->began_s; }

static void curves(void **state) {
    static const struct {
        const char *name;
        int tasks;
        double demand, want; /* times as long as alone */
    } rows[] = {
        {"one full",        1,  1.00, 1   },
        {"two full",        2,  1.00, 2   },
        {"four full",       4,  1.00, 4   },
        {"eight full",      8,  1.00, 8   },
        {"sixteen full",    16, 1.00, 16  },
        {"one of 14 %",     1,  0.14, 1   },
        {"five of 14 %",    5,  0.14, 1   },
        {"seven of 14 %",   7,  0.14, 1   },
        {"eight of 14 %",   8,  0.14, 1.12},
        {"ten of 14 %",     10, 0.14, 1.40},
        {"three of a half", 3,  0.50, 1.5 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        build("h200", 1, false);
        struct task *t[16];
        for (int k = 0; k < rows[i].tasks; k++) t[k] = start(work(rows[i].demand, 3));
        finish_all();
        for (int k = 0; k < rows[i].tasks; k++) {
            double times = took(t[k]) / 3;
            if (fabs(times / rows[i].want - 1) > 0.01) print_error("%s: %.4f times\n", rows[i].name, times);
            assert_true(fabs(times / rows[i].want - 1) <= 0.01);
        }
    }
}

/* Three seconds and one second together: the short one ends at 2 s, the long one at 4 s. */
static void ends_are_exact(void **state) {
    build("h200", 1, false);
    struct wire_task a = work(1, 3), b = work(1, 1);
    a.kind = b.kind = KIND_COPY; /* no clock in it */
    struct task *t = start(a), *u = start(b);
    finish_all();
    assert_true(fabs(took(u) - 2) < 1e-6);
    assert_true(fabs(took(t) - 4) < 1e-6);
}

static void clocks_slow(void **state) {
    build("h200", 1, false);
    struct task *t = start(work(1, 2));
    m.plant[0].set.lock_gr_min_mhz = m.plant[0].set.lock_gr_max_mhz = 720;
    machine_advance(&m, 0.001);
    finish_all();
    double want = 2 * m.reference_mhz[0][KIND_MATMUL] / 720;
    assert_true(fabs(took(t) / want - 1) < 0.01);

    build("h200", 1, false);
    m.plant[0].set.limit_w = 350;
    t = start(work(1, 2));
    finish_all();
    assert_true(took(t) > 3.5);
}

static void several_cards_go_at_the_pace_of_the_slowest(void **state) {
    build("h200", 2, false);
    struct wire_task both = work(1, 2), other = work(1, 100);
    both.gpus = 3;
    other.gpus = 2;
    struct task *t = start(both);
    start(other);
    while (!t->done) machine_advance(&m, 0.0371);
    assert_true(fabs(took(t) / 4 - 1) < 0.01);
    assert_true(fabs(plant_average(&m.plant[0], 1.0 / 6).busy_s - 0.49) < 0.03);
}

static void instances_do_not_disturb_each_other(void **state) {
    build("a100", 1, true);
    struct wire_task a = work(1, 2), b = work(1, 2), c = work(1, 2);
    a.mig = 0;
    b.mig = c.mig = 1;
    struct task *t = start(a), *u = start(b);
    start(c);
    finish_all();
    assert_true(fabs(took(t) / 2 - 1) < 0.01);
    assert_true(fabs(took(u) / 4 - 1) < 0.01);
}

static void refusals(void **state) {
    build("h200", 1, false);
    struct task *t;
    char why[MACHINE_WHY_MAX];
    struct wire_task big = work(1, 1), where = work(1, 1), wild = work(2, 1), nan_work = work(1, NAN), mig = work(1, 1);
    big.memory_bytes = UINT64_C(1) << 40;
    big.gpus = wild.gpus = nan_work.gpus = mig.gpus = 1;
    where.gpus = 4;
    mig.mig = 0;
    assert_int_equal(machine_start(&m, &big, 1, 0, &t, why), CODE_MEMORY);
    assert_non_null(strstr(why, "out of memory on GPU 0"));
    assert_int_equal(machine_start(&m, &where, 1, 0, &t, why), CODE_NOT_FOUND);
    assert_int_equal(machine_start(&m, &wild, 1, 0, &t, why), CODE_INVALID);
    assert_int_equal(machine_start(&m, &nan_work, 1, 0, &t, why), CODE_INVALID);
    assert_int_equal(machine_start(&m, &mig, 1, 0, &t, why), CODE_NOT_FOUND);
    machine_driver_down(&m, 1);
    big.memory_bytes = 1;
    assert_int_equal(machine_start(&m, &big, 1, 0, &t, why), CODE_DRIVER_DOWN);
    machine_advance(&m, 1.1);
    assert_int_equal(m.generation, 2);
    assert_int_equal(machine_start(&m, &big, 1, 0, &t, why), CODE_OK);
    machine_lose(&m, 0);
    assert_int_equal(machine_start(&m, &big, 1, 0, &t, why), CODE_LOST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves),
        cmocka_unit_test(ends_are_exact),
        cmocka_unit_test(clocks_slow),
        cmocka_unit_test(several_cards_go_at_the_pace_of_the_slowest),
        cmocka_unit_test(instances_do_not_disturb_each_other),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
