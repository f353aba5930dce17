/* Hundreds of simulated hours of loads and faults that nobody thought of: never a limit outside its range, the floor when
 * blind, and nothing left low once all is cool. The card is two lags and a sensor, so that hours take milliseconds. */
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "model/guard.h"
#include "tests/test.h"

#define S 1000000000ll
#define ROUND_NS (S / 10)

struct random_card {
    uint64_t rng;
    double full_w, idle_w, fast_c, slow_c, slow_s; /* its make */
    double fast, slow, power_w;                    /* its state */
    double demand, cooling, air_c;                 /* its world */
    int64_t now_ns, blind_ns, blind_until_ns;      /* blind_ns: since when; 0: it sees */
    struct guard_policy policy;
    struct guard_state guard;
    double limit;
    double hot_s, run_s; /* above the target by more than 3 where the floor would do; and all in all */
};

static double uniform(struct random_card *c) {
    c->rng ^= c->rng << 13;
    c->rng ^= c->rng >> 7;
    c->rng ^= c->rng << 17;
    return (double)(c->rng >> 11) * 0x1p-53;
}

static double between(struct random_card *c, double low, double high) { return low + (high - low) * uniform(c); }

static double warm_c(const struct random_card *c, double w) {
    return c->air_c + (c->fast_c + c->slow_c * c->cooling) * w / c->full_w;
}

static void card_init(struct random_card *c, uint64_t seed) {
    *c = (struct random_card){.rng = seed * 0x9e3779b97f4a7c15u | 1, .cooling = 1, .air_c = 27, .now_ns = S};
    c->full_w = between(c, 60, 800);
    c->idle_w = 0.1 * c->full_w;
    c->fast_c = between(c, 10, 35);
    c->slow_c = between(c, 10, 45);
    c->slow_s = between(c, 8, 60);
    struct guard_policy *p = &c->policy;
    p->control = uniform(c) < 0.7 ? GUARD_BY_POWER : GUARD_BY_CLOCKS;
    p->uses[GUARD_CORE] = true;
    p->target[GUARD_CORE] = round(between(c, 70, 90));
    p->grace_ns = 3 * S;
    p->baseline = p->control == GUARD_BY_POWER ? c->full_w : 2100;
    p->floor = p->control == GUARD_BY_POWER ? 0.3 * c->full_w : 300;
    c->limit = p->baseline;
    guard_begin(&c->guard, p, c->limit, c->now_ns);
}

static double power_w(const struct random_card *c) {
    if (c->policy.control == GUARD_BY_POWER)
        return fmin(c->idle_w + c->demand * (c->full_w - c->idle_w), fmax(c->limit, c->idle_w));
    return c->idle_w + c->demand * (c->full_w - c->idle_w) * pow(c->limit / 2100, 1.4);
}

static double lowest_w(const struct random_card *c) {
    return c->policy.control == GUARD_BY_POWER ? c->policy.floor : c->idle_w + 0.08 * c->full_w;
}

/* Something happens: to the load, the room, the cooling, the sensor, the clock, or the policy. */
static void fate(struct random_card *c) {
    struct guard_policy *p = &c->policy;
    switch ((int)between(c, 0, 9)) {
    case 0: c->demand = 1; break;
    case 1: c->demand = 0; break;
    case 2: c->demand = uniform(c); break;
    case 3: c->air_c = between(c, 15, 45); break;
    case 4: c->cooling = between(c, 0.8, 2.5); break;
    case 5: c->blind_until_ns = c->now_ns + (int64_t)(between(c, 0.1, 30) * 1e9); break;
    case 6: c->now_ns += (int64_t)(between(c, 0.2, 60) * 1e9); break; /* the round came late */
    case 7: p->target[GUARD_CORE] = round(between(c, 65, 95)); break;
    default: p->baseline = (p->control == GUARD_BY_POWER ? c->full_w : 2100) * between(c, 0.5, 1); break;
    }
}

static void check(const struct random_card *c, const struct guard_action *a, double before) {
    const struct guard_policy *p = &c->policy;
    if (!(a->limit >= p->floor && a->limit <= p->baseline))
        fail_msg("limit %g is not within %g to %g", a->limit, p->floor, p->baseline);
    if (c->blind_ns && c->now_ns - c->blind_ns > p->grace_ns + ROUND_NS && a->limit != p->floor)
        fail_msg("blind, but at %g", a->limit);
    bool is_told = (a->verb == GUARD_LOWER && a->limit < before) || (a->verb == GUARD_RAISE && a->limit > before) ||
                   (a->verb == GUARD_HOLD && a->limit == before);
    if (!is_told) fail_msg("verb %d for %g after %g", (int)a->verb, a->limit, before);
}

static void round_of(struct random_card *c) {
    struct sample s = {0};
    double share = c->power_w / c->full_w;
    c->now_ns += ROUND_NS;
    c->power_w = power_w(c) * between(c, 0.97, 1.03);
    c->fast += (c->fast_c * share - c->fast) * 0.4;
    c->slow += (c->slow_c * c->cooling * share - c->slow) * 0.1 / c->slow_s;
    double core = c->air_c + c->fast + c->slow;
    bool is_blind = c->now_ns < c->blind_until_ns;
    if (!is_blind) sample_put(&s, METRIC_TEMP_CORE, round(core));
    if (is_blind && !c->blind_ns) c->blind_ns = c->now_ns - ROUND_NS;
    if (!is_blind) c->blind_ns = 0;
    if (uniform(c) < 0.99) sample_put(&s, METRIC_POWER_INSTANT, c->power_w);
    sample_put(&s, METRIC_UTIL_GPU, c->demand);
    struct guard_action a = guard_step(&c->guard, &c->policy, &s, c->now_ns);
    check(c, &a, c->limit);
    c->limit = a.limit;
    c->run_s += 0.1;
    if (core > c->policy.target[GUARD_CORE] + 3 && warm_c(c, lowest_w(c)) < c->policy.target[GUARD_CORE] - 5)
        c->hot_s += 0.1;
}

static void nothing_is_outside_and_nothing_is_left(void **state) {
    double hours = 0, hot_s = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct random_card c;
        card_init(&c, seed);
        for (int n = 0; n < 100 * 36; n++) { /* an hour and a half of troubles, one a minute or so */
            double quiet = between(&c, 1, 30);
            if (uniform(&c) < 0.3) fate(&c);
            for (int k = 0; k < (int)quiet; k++) round_of(&c);
        }
        c.demand = 0;
        c.air_c = 20;
        c.cooling = 1;
        c.policy.target[GUARD_CORE] = 90;
        c.blind_until_ns = 0;
        for (int n = 0; n < 20 * 600; n++) round_of(&c); /* twenty minutes of peace */
        if (c.limit != c.policy.baseline)
            fail_msg("seed %u: left at %g of %g", (unsigned)seed, c.limit, c.policy.baseline);
        hours += c.run_s / 3600;
        hot_s += c.hot_s;
    }
    print_message("# %.0f hours, %.0f s of them more than 3 C above a target that could be held\n", hours, hot_s);
    assert_true(hours > 200);
    assert_true(hot_s < 0.005 * hours * 3600);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_outside_and_nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
