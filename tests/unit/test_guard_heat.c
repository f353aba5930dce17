/* What the guard learns of a card: terms of a plant that is known here, from readings of whole degrees. */
#include "model/guard_heat.h"

#include <math.h>

#include "base/auto.h"
#include "tests/test.h"

#define DT 0.1

struct plant {
    double air, fast, mid, slow, slow_s; /* its make: degrees of the whole range */
    double f, m, s;                      /* as warm as it is */
};

static double plant_step(struct plant *p, double use) {
    p->f += (p->fast * use - p->f) * -expm1(-DT / 0.2);
    p->m += (p->mid * use - p->m) * -expm1(-DT / 2.0);
    p->s += (p->slow * use - p->s) * -expm1(-DT / p->slow_s);
    return p->air + p->f + p->m + p->s;
}

static double use_at(double t) { return t < 20 ? -0.2 : t < 60 ? 1 : t < 100 ? 0.5 : fmod(t, 30) < 15 ? 0.8 : 0; }

/* Two minutes of work of all kinds; the last reading in *ret_c. */
static void learn(struct heat *h, struct heat_use *u, struct plant *p, double seconds, double *ret_c) {
    p->f = p->fast * use_at(0);
    p->m = p->mid * use_at(0);
    p->s = p->slow * use_at(0);
    heat_begin(h);
    heat_use_set(u, use_at(0));
    heat_settle(h, u, round(p->air + p->f + p->m + p->s));
    for (double t = 0; t < seconds; t += DT) {
        heat_use_take(u, use_at(t), DT);
        *ret_c = plant_step(p, use_at(t));
        heat_take(h, u, round(*ret_c), 0.8, 0, DT);
    }
}

static double mean(const struct heat *h, enum heat_term term) {
    double v = 0;
    for (int i = 0; i < HEAT_GUESSES; i++) v += h->guess[i].weight * h->guess[i].x[term];
    return v;
}

static void finds_what_the_plant_is(void **state) {
    static const struct plant rows[] = {
        {27, 16, 5, 22, 15, 0, 0, 0}, /* as expected */
        {27, 28, 4, 12, 15, 0, 0, 0}, /* a hot die on a good cooler */
        {35, 8,  2, 40, 22, 0, 0, 0}, /* the other way round, in warm air */
        {20, 12, 4, 30, 9,  0, 0, 0},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct plant p = rows[k];
        struct heat h;
        struct heat_use u;
        double c, jump = p.fast + p.mid;
        learn(&h, &u, &p, 160, &c);
        double found = mean(&h, HEAT_FAST) + mean(&h, HEAT_MID), slow = mean(&h, HEAT_SLOW);
        if (fabs(found - jump) > 0.15 * jump + 1) fail_msg("row %zu: jump %.1f of %.1f", k, found, jump);
        if (fabs(slow - p.slow) > 0.3 * p.slow) fail_msg("row %zu: slow %.1f of %.1f", k, slow, p.slow);
        if (fabs(heat_now_c(&h, &u) - c) > 0.8) fail_msg("row %zu: %.2f for %.2f", k, heat_now_c(&h, &u), c);
    }
}

static void follows_air_that_warms(void **state) {
    struct plant p = {27, 16, 5, 22, 15, 0, 0, 0};
    struct heat h;
    struct heat_use u;
    double c;
    learn(&h, &u, &p, 160, &c);
    for (int n = 0; n < 300; n++) { /* a quarter of a degree a second */
        p.air += 0.25 * DT;
        heat_use_take(&u, 0.8, DT);
        c = plant_step(&p, 0.8);
        heat_take(&h, &u, round(c), 0.8, 0, DT);
    }
    assert_true(fabs(heat_now_c(&h, &u) - c) < 1);
    assert_true(mean(&h, HEAT_DRIFT) > 0.1 && mean(&h, HEAT_DRIFT) < 0.4);
}

static void another_range_changes_nothing_that_is_told(void **state) {
    struct plant p = {27, 16, 5, 22, 15, 0, 0, 0};
    struct heat h;
    struct heat_use u;
    double c;
    learn(&h, &u, &p, 160, &c);
    double before = heat_now_c(&h, &u), scale = 0.7, shift = 0.2;
    heat_rescale(&h, scale, shift);
    u.fast = u.fast / scale + shift;
    u.mid = u.mid / scale + shift;
    for (int i = 0; i < HEAT_GUESSES; i++) u.slow[i] = u.slow[i] / scale + shift;
    assert_true(fabs(heat_now_c(&h, &u) - before) < 1e-6);
}

static void stays_sane_whatever_comes(void **state) {
    struct heat h;
    struct heat_use u;
    heat_begin(&h);
    heat_use_set(&u, 0);
    heat_settle(&h, &u, 40);
    uint64_t rng = 7;
    for (int n = 0; n < 200000; n++) {
        rng = rng * 6364136223846793005u + 1442695040888963407u;
        double dt = rng >> 60 == 0 ? 9 : 0.1, wild = (double)(rng >> 40 & 0xff) - 64;
        heat_use_take(&u, (double)(rng >> 33 & 0xff) / 85 - 1, dt);
        heat_take(&h, &u, wild, 0.5 + (double)(rng >> 50 & 7), 0.1, dt);
        double sum = 0;
        for (int i = 0; i < HEAT_GUESSES; i++) {
            sum += h.guess[i].weight;
            for (int k = 0; k < HEAT_TERMS; k++) {
                assert_true(isfinite(h.guess[i].x[k]));
                assert_true(h.guess[i].p[k][k] >= 0 && h.guess[i].p[k][k] < 1e6);
            }
        }
        assert_true(fabs(sum - 1) < 1e-9);
    }
    heat_take(&h, &u, NAN, 1, 0, 0.1); /* cannot be: forgotten, not believed */
    for (int i = 0; i < HEAT_GUESSES; i++) assert_true(isfinite(h.guess[i].x[HEAT_FAST]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_the_plant_is), cmocka_unit_test(follows_air_that_warms),
        cmocka_unit_test(another_range_changes_nothing_that_is_told), cmocka_unit_test(stays_sane_whatever_comes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
