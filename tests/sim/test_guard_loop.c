/* The guard closes the loop on a few plants, with bounds a little wider than the bench's: bench/guard measures, this
 * notices when it breaks. */
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "model/guard.h"
#include "sim/plant.h"
#include "tests/test.h"

#define DT 0.02
#define S 1000000000ll

struct loop_row {
    const char *name, *model;
    enum guard_control control;
    double target_c, cooling, later; /* later: what the cooling is from 150 s on */
    double period_s, blind_s;        /* of a square-wave load; when the sensor is lost. 0: not */
    double over_c, work;             /* at most, and at least: of the work without a guard */
    int changes;                     /* in the last three minutes, at most */
    bool is_copying;                 /* heats the memory, which then counts, too */
};

struct loop {
    const struct loop_row *row;
    struct shm_card card;
    struct plant plant;
    struct guard_policy policy;
    struct guard_state guard;
    double limit, peak_c, work;
    int changes;
    bool is_guarded;
};

static void loop_open(struct loop *l, const struct loop_row *row, bool is_guarded) {
    const struct model *m = model_by_key(row->model);
    assert_non_null(m);
    memset(l, 0, sizeof *l);
    l->row = row;
    l->is_guarded = is_guarded;
    model_card(m, 3, 0, false, &l->card);
    plant_init(&l->plant, m, &l->card, 5, 27);
    struct guard_policy *p = &l->policy;
    p->control = row->control;
    p->uses[GUARD_CORE] = true;
    p->target[GUARD_CORE] = row->target_c;
    p->uses[GUARD_MEMORY] = row->is_copying;
    p->target[GUARD_MEMORY] = 92;
    p->grace_ns = 3 * S;
    p->floor = row->control == GUARD_BY_POWER ? m->limit_min_w : m->clocks[0].min_mhz;
    p->baseline = row->control == GUARD_BY_POWER ? m->limit_default_w : m->clocks[0].max_mhz;
    l->limit = p->baseline;
}

static void limit_set(struct loop *l, double limit) {
    struct plant_settings *s = &l->plant.set;
    bool is_whole = limit >= l->policy.baseline;
    uint32_t mhz = is_whole ? 0 : card_clock_at_most(&l->card, l->card.mem_max_mhz, limit);
    l->limit = limit;
    if (l->policy.control == GUARD_BY_POWER) s->limit_w = limit;
    if (l->policy.control == GUARD_BY_CLOCKS) s->lock_gr_max_mhz = mhz;
    if (l->policy.control == GUARD_BY_APP_CLOCKS) s->app_gr_mhz = mhz;
}

static void control(struct loop *l, double t, bool is_second, bool is_blind) {
    const struct plant *p = &l->plant;
    struct sample s = {0};
    if (!l->is_guarded || (guard_headroom_c(&l->guard, &l->policy) > 20 && !is_second)) return;
    if (!is_blind) sample_put(&s, METRIC_TEMP_CORE, p->sensor[0]);
    if (l->row->is_copying) sample_put(&s, METRIC_TEMP_MEMORY, p->sensor[1]);
    sample_put(&s, METRIC_POWER, plant_average(p, 1).energy_j);
    sample_put(&s, METRIC_UTIL_GPU, fmin(1, plant_average(p, 0.5).busy_s));
    sample_put(&s, METRIC_CLOCK_GRAPHICS, p->gr_mhz * 1e6);
    struct guard_action a = guard_step(&l->guard, &l->policy, &s, (int64_t)((t + 1) * 1e9));
    assert_true(a.limit >= l->policy.floor && a.limit <= l->policy.baseline);
    assert_int_equal(a.verb == GUARD_HOLD, a.limit == l->limit);
    if (a.limit == l->limit) return;
    limit_set(l, a.limit);
    if (t > 240) l->changes++;
}

static void loop_run(struct loop *l, double seconds) {
    const struct loop_row *row = l->row;
    enum wire_kind kind = row->is_copying ? KIND_COPY : KIND_MATMUL;
    double reference = plant_reference_mhz(&l->plant, kind);
    l->peak_c = -INFINITY;
    for (int n = 0; n * DT < seconds; n++) {
        double t = n * DT, demand = t < 10 ? 0 : 1;
        if (row->period_s > 0 && fmod(t - 10, row->period_s) >= row->period_s / 2) demand = 0;
        if (n % 5 == 0) control(l, t, n % 50 == 0, row->blind_s > 0 && t >= row->blind_s);
        struct load load = {.contexts = 1};
        if (demand > 0) load_add(&load, kind, demand);
        l->plant.world.cooling = t < 150 ? row->cooling : row->later;
        plant_step(&l->plant, &load, DT);
        double memory_over = plant_mem_c(&l->plant) - l->policy.target[GUARD_MEMORY];
        l->peak_c = fmax(l->peak_c, plant_core_c(&l->plant));
        if (row->is_copying) l->peak_c = fmax(l->peak_c, row->target_c + memory_over);
        l->work += demand * plant_speed(&l->plant, kind, reference);
    }
}

static void holds_its_target(void **state) {
    static const struct loop_row rows[] = {
        {"cool card is left alone",  "h200",  GUARD_BY_POWER,      84, 1,   1,   0,  0, -20, 0.999, 0,  false},
        {"weak cooling",             "h200",  GUARD_BY_POWER,      84, 2.4, 2.4, 0,  0, 1.5, 0.93,  20, false},
        {"cooling fails",            "h200",  GUARD_BY_POWER,      84, 1.3, 2.6, 0,  0, 2.5, 0.90,  20, false},
        {"work that comes and goes", "h200",  GUARD_BY_POWER,      84, 2.6, 2.6, 10, 0, 1.5, 0.88,  20, false},
        {"a card that wants much",   "a100",  GUARD_BY_POWER,      82, 1.6, 1.6, 0,  0, 1.5, 0.80,  20, false},
        {"clocks",                   "t1000", GUARD_BY_CLOCKS,     80, 1.8, 1.8, 0,  0, 2.5, 0.70,  25, false},
        {"application clocks",       "p100",  GUARD_BY_APP_CLOCKS, 77, 1.4, 1.4, 0,  0, 2.0, 0.85,  25, false},
        {"hot memory",               "h200",  GUARD_BY_POWER,      84, 3.2, 3.2, 0,  0, 1.5, 0.97,  25, true },
    };
    static struct loop l, alone;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        loop_open(&l, &rows[i], true);
        loop_run(&l, 420);
        loop_open(&alone, &rows[i], false);
        loop_run(&alone, 420);
        double over = l.peak_c - rows[i].target_c, work = l.work / alone.work;
        if (over > rows[i].over_c || work < rows[i].work || l.changes > rows[i].changes)
            fail_msg("%s: %+.2f C, work %.3f, %d changes", rows[i].name, over, work, l.changes);
    }
}

static void goes_to_the_floor_when_blind(void **state) {
    static const struct loop_row row = {"blind", "h200", GUARD_BY_POWER, 84, 1, 1, 0, 60, 0, 0, 0, false};
    static struct loop l;
    loop_open(&l, &row, true);
    loop_run(&l, 62);
    assert_true(l.limit == 700);
    loop_open(&l, &row, true);
    loop_run(&l, 64.5);
    assert_true(l.limit == 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(holds_its_target),
                                       cmocka_unit_test(goes_to_the_floor_when_blind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
