/* Plants as a whole: what an H200 was seen to do, limits that hold, and invariants under loads nobody thought of. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "sim/plant.h"

static struct shm_card card;

static void make(struct plant *p, const char *key) {
    const struct model *m = model_by_key(key);
    assert_non_null(m);
    model_card(m, 1, 0, 0, &card);
    plant_init(p, m, &card, 1, 27);
}

static struct load load_of(int contexts, enum wire_kind k, double share) {
    struct load l = {.contexts = contexts};
    load_add(&l, k, share);
    return l;
}

static void run(struct plant *p, const struct load *l, double for_s) {
    for (double t = 0; t < for_s; t += PLANT_STEP_S) plant_step(p, l, PLANT_STEP_S);
}

static void in_range(const char *name, const char *what, double got, double lo, double hi) {
    if (got < lo || got > hi) print_error("%s: %s is %g, not %g to %g\n", name, what, got, lo, hi);
    assert_true(got >= lo && got <= hi);
}

static void as_measured_on_the_h200(void **state) {
    static const struct {
        const char *name;
        int contexts;
        enum wire_kind kind;
        double share;
        double watts[2], core_c[2], mem_c[2], mhz[2], margin[2];
        uint64_t reasons;
    } rows[] = {
        {"idle",           0, KIND_IDLE,   0, {76, 80},   {29, 35}, {33, 38}, {345, 345},   {53, 60}, 0x1},
        {"context",        1, KIND_IDLE,   0, {116, 121}, {30, 35}, {33, 38}, {1980, 1980}, {52, 59}, 0  },
        {"matrix product", 1, KIND_MATMUL, 1, {685, 698}, {54, 58}, {46, 51}, {1440, 1560}, {22, 28}, 0x4},
        {"copy",           1, KIND_COPY,   1, {455, 475}, {37, 44}, {50, 57}, {1980, 1980}, {42, 50}, 0  },
    };
    struct plant p;
    make(&p, "h200");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct load l = load_of(rows[i].contexts, rows[i].kind, rows[i].share);
        run(&p, &l, 20);
        double from_j = p.energy_j, from_s = p.at_s;
        run(&p, &l, 20);
        in_range(rows[i].name, "power", (p.energy_j - from_j) / (p.at_s - from_s), rows[i].watts[0], rows[i].watts[1]);
        in_range(rows[i].name, "core", plant_core_c(&p), rows[i].core_c[0], rows[i].core_c[1]);
        in_range(rows[i].name, "memory", plant_mem_c(&p), rows[i].mem_c[0], rows[i].mem_c[1]);
        in_range(rows[i].name, "clock", p.gr_mhz, rows[i].mhz[0], rows[i].mhz[1]);
        in_range(rows[i].name, "margin", plant_margin_c(&p), rows[i].margin[0], rows[i].margin[1]);
        assert_int_equal(p.reasons, rows[i].reasons);
    }
}

static void caps_are_obeyed(void **state) {
    static const char *const keys[] = {"h200", "a100", "rtx4090", "p100"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        struct plant p;
        make(&p, keys[k]);
        struct load l = load_of(1, KIND_MATMUL, 1);
        for (double w = p.model->limit_max_w; w >= p.model->limit_min_w; w -= 25) {
            p.set.limit_w = w;
            run(&p, &l, 3);
            for (int i = 0; i < 200; i++) {
                plant_step(&p, &l, PLANT_STEP_S);
                in_range(keys[k], "power under its cap", plant_average(&p, 1).energy_j, 0, w * 1.02);
            }
            if (p.gr_mhz < card.gr_max_mhz) assert_true(p.reasons & REASON_POWER);
        }
    }
}

static void locks_hold(void **state) {
    struct plant p;
    make(&p, "h200");
    struct load l = load_of(1, KIND_MATMUL, 1), idle = {0};
    p.set.lock_gr_min_mhz = 900;
    p.set.lock_gr_max_mhz = 1000;
    run(&p, &l, 2);
    assert_int_equal(p.gr_mhz, 990); /* the highest on the list */
    assert_true(p.reasons & REASON_APP);
    assert_false(p.reasons & REASON_POWER);
    run(&p, &idle, 2);
    assert_int_equal(p.gr_mhz, 900);
    p.set.lock_gr_min_mhz = p.set.lock_gr_max_mhz = 0;
    run(&p, &idle, 2);
    assert_int_equal(p.gr_mhz, 345);
}

static void heat_slows(void **state) {
    struct plant p;
    make(&p, "h200");
    struct load l = load_of(1, KIND_MATMUL, 1);
    p.world.cooling = 3;
    run(&p, &l, 180);
    in_range("three times the resistance", "core", plant_core_c(&p), 83, 88.9);
    assert_true(p.reasons & REASON_SW_THERMAL);
    assert_true(p.reason_s[5] > 10);
    assert_false(p.burnt);

    p.world.cooling = 1;
    run(&p, &l, 120);
    assert_false(p.reasons & REASON_SW_THERMAL);
    in_range("cooled again", "clock", p.gr_mhz, 1440, 1560);
}

static void hardware_slowdown_and_shutdown(void **state) {
    struct plant p;
    make(&p, "h200");
    struct load l = load_of(1, KIND_MATMUL, 1);
    p.world.air_c = 67;
    plant_step(&p, &l, PLANT_STEP_S);
    run(&p, &l, 2);
    assert_true(p.hw_slow);
    assert_int_equal(p.reasons & (REASON_HW | REASON_HW_THERMAL), REASON_HW | REASON_HW_THERMAL);
    assert_true(p.gr_mhz <= card.gr_max_mhz / 2);
    p.world.air_c = 95;
    run(&p, &l, 5);
    assert_true(p.burnt);
}

static void fans_matter(void **state) {
    struct plant p;
    make(&p, "rtx4090");
    struct load l = load_of(1, KIND_MATMUL, 1);
    run(&p, &l, 120);
    double with = plant_core_c(&p);
    in_range("both fans", "core", with, 55, 78);
    in_range("both fans", "speed", p.fan_pct[0], 40, 90);
    p.world.fans_dead = 3;
    run(&p, &l, 120);
    assert_true(plant_core_c(&p) > with + 8);
    assert_true(p.fan_pct[0] > 90);
    assert_true(p.reasons & REASON_SW_THERMAL);
}

static bool on_list(const struct plant *p) {
    const struct shm_clocks *c = card_clocks(p->card, p->mem_mhz);
    if (p->gr_mhz == p->model->idle_gr_mhz) return true;
    for (uint32_t i = 0; c && i < c->count; i++)
        if (c->gr_mhz[i] == p->gr_mhz) return true;
    return false;
}

static uint64_t random_word(uint64_t *rng) {
    *rng ^= *rng << 13;
    *rng ^= *rng >> 7;
    *rng ^= *rng << 17;
    return *rng >> 16;
}

static void shake_up(struct plant *p, struct load *l, uint64_t *rng) {
    *l = (struct load){.contexts = (int)(random_word(rng) % 3)};
    if (l->contexts) load_add(l, random_word(rng) % KIND_COUNT, (double)(random_word(rng) % 101) / 100);
    uint64_t what = random_word(rng) % 6;
    if (what == 0) p->set.limit_w = p->model->limit_min_w + (double)(random_word(rng) % 100);
    if (p->set.limit_w > p->model->limit_max_w) p->set.limit_w = p->model->limit_max_w;
    if (what == 1) p->set.lock_gr_max_mhz = 200 + (uint32_t)(random_word(rng) % 3000);
    if (what == 2) p->set.lock_gr_max_mhz = p->set.lock_gr_min_mhz = 0;
    if (what == 3) p->world.cooling = 0.7 + (double)(random_word(rng) % 300) / 100;
    if (what == 4) p->world.cooling = 1;
}

static void invariants(void **state) {
    for (size_t k = 0; k < model_count; k++) {
        struct plant p;
        make(&p, models[k].key);
        uint64_t rng = 12345 + k;
        struct load l = {0};
        double energy = 0, highest = fmax(models[k].limit_max_w, models[k].context_w) * 1.35;
        for (int i = 0; i < 40000; i++) {
            if (i % 40 == 0) shake_up(&p, &l, &rng);
            plant_step(&p, &l, PLANT_STEP_S * (double)(1 + random_word(&rng) % 100) / 100);
            in_range(models[k].key, "core", plant_core_c(&p), 20, p.card->shutdown_c);
            in_range(models[k].key, "memory", plant_mem_c(&p), 20, 130);
            in_range(models[k].key, "instant power", plant_power_w(&p), 0.4, highest);
            assert_true(p.energy_j > energy);
            energy = p.energy_j;
            assert_true(on_list(&p));
            assert_true(p.gr_mhz <= p.card->gr_max_mhz);
            struct plant_point a = plant_average(&p, 1.0 / 6);
            in_range(models[k].key, "utilisation", a.busy_s, 0, 1.0000001);
        }
        assert_true(fabs(p.energy_j) < highest * p.at_s);
    }
}

static void same_seed_same_numbers(void **state) {
    struct plant a, b;
    make(&a, "h200");
    make(&b, "h200");
    struct load l = load_of(1, KIND_MATMUL, 0.7);
    run(&a, &l, 10);
    run(&b, &l, 10);
    assert_true(a.energy_j == b.energy_j && a.gr_mhz == b.gr_mhz);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_measured_on_the_h200),
        cmocka_unit_test(caps_are_obeyed),
        cmocka_unit_test(locks_hold),
        cmocka_unit_test(heat_slows),
        cmocka_unit_test(hardware_slowdown_and_shutdown),
        cmocka_unit_test(fans_matter),
        cmocka_unit_test(invariants),
        cmocka_unit_test(same_seed_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
