#include "bench/guard_toy.h"

#include <math.h>

#define AIR_C 27.0
#define MARGIN_C 5.0       /* that a cold card keeps when work starts: none is built worse */
#define CLOCK_EXPONENT 1.4 /* of power over clock */

const char toy_ranges[] =
    "power limit (2 of 3) or clocks; 60-800 W, floor at 25-50 %, idle at 8-15 %; at full power the die is 10-35 C "
    "warmer within 0.1-0.35 s, 10-40 % of that more within 1-3 s, and the cooler 10-60 C within 8-30 s; sensor of "
    "whole "
    "degrees, 0-0.5 s late; power noise 0-5 %, power told at once or as a mean of 1 s; limits act within 0.1-0.5 s; "
    "work "
    "as power^(0.6-0.9); targets of 70-90 C, at least 5 C above what a cold card jumps to, where about 15-110 % of the "
    "range can be kept up; a load step alone, and then: cooling 1.3-2 times worse within 10 s, or air 15 C warmer "
    "within a minute, "
    "or a square wave of 2-60 s";

static double uniform(struct toy *t) {
    t->rng ^= t->rng << 13;
    t->rng ^= t->rng >> 7;
    t->rng ^= t->rng << 17;
    return (double)(t->rng >> 11) * 0x1p-53;
}

static double between(struct toy *t, double low, double high) { return low + (high - low) * uniform(t); }

static double normal(struct toy *t) { return (uniform(t) + uniform(t) + uniform(t) + uniform(t) - 2) * 1.7320508; }

static void choose_trouble(struct toy *t) {
    struct toy_traits *is = &t->is;
    double which = uniform(t);
    is->cooling = 1;
    if (which < 0.25) is->cooling = between(t, 1.3, 2);
    if (which >= 0.25 && which < 0.5) is->air_rise_c = 15;
    if (which >= 0.5 && which < 0.75) is->period_s = exp(between(t, log(2), log(60)));
}

/* Chooses the cooler such that about the share `best` of the range can be kept up at the end; false when no cooler of the
 * usual size does that. */
static bool choose_cooler(struct toy_traits *is) {
    double w = is->floor_w + is->best * (is->full_w - is->floor_w), duty = is->period_s > 0 ? 0.5 : 1;
    double quick_c = (is->fast_c + is->mid_c) / is->full_w, mean_w = is->idle_w + duty * (w - is->idle_w);
    is->slow_c = (is->target_c - AIR_C - is->air_rise_c - quick_c * w) / is->cooling * is->full_w / mean_w;
    double cold_c = AIR_C + (is->slow_c / is->full_w) * is->idle_w + quick_c * is->full_w;
    return is->slow_c >= 10 && is->slow_c <= 60 && cold_c <= is->target_c - MARGIN_C;
}

static void choose(struct toy *t) {
    struct toy_traits *is = &t->is;
    *is = (struct toy_traits){.has_clocks = uniform(t) < 1.0 / 3, .is_averaged = uniform(t) < 0.5};
    is->full_w = exp(between(t, log(60), log(800)));
    is->floor_w = is->full_w * between(t, 0.25, 0.5);
    is->idle_w = is->full_w * between(t, 0.08, 0.15);
    is->fast_c = between(t, 10, 35);
    is->mid_c = is->fast_c * between(t, 0.1, 0.4);
    is->fast_s = between(t, 0.1, 0.35);
    is->mid_s = between(t, 1, 3);
    is->slow_s = between(t, 8, 30);
    is->delay_s = between(t, 0, 0.5);
    is->noise = between(t, 0, 0.05);
    is->noise_s = between(t, 0.05, 0.15);
    is->limit_s = between(t, 0.1, 0.5);
    is->fill = between(t, 0.97, 1);
    is->concave = between(t, 0.6, 0.9);
    is->target_c = round(between(t, 70, 90));
    is->best = between(t, 0.15, 1.1);
    choose_trouble(t);
}

void toy_draw(struct toy *t, uint64_t seed) {
    *t = (struct toy){.rng = seed * 0x9e3779b97f4a7c15u | 1, .air_c = AIR_C, .ceiling = 1};
    const struct toy_traits *is = &t->is;
    for (int k = 0; k < 8; k++) uniform(t);
    do choose(t);
    while (!choose_cooler(&t->is));
    t->limit = is->has_clocks ? TOY_MHZ_MOST : is->full_w;
    t->held_w = t->power_w = is->idle_w;
    t->fast = is->fast_c * is->idle_w / is->full_w;
    t->mid = is->mid_c * is->idle_w / is->full_w;
    t->slow = is->slow_c * is->idle_w / is->full_w;
    for (int k = 0; k < TOY_LATE; k++) t->late[k] = toy_core_c(t);
    for (int k = 0; k < 50; k++) t->watts[k] = t->power_w;
}

/* What heat makes of the clocks, three degrees above the target: the card's own slowdown. */
static void slow_down(struct toy *t, double dt_s) {
    double over = toy_core_c(t) - t->is.target_c - 3;
    if (over >= 0) t->ceiling -= 0.15 * (1 + over) * dt_s;
    if (over < -2) t->ceiling += 0.045 * dt_s;
    t->ceiling = fmin(fmax(t->ceiling, 0.15), 1);
}

/* Full power is what the work draws at the highest clock; clocks of cards with a power limit follow from it. */
static double power_allowed(const struct toy *t) {
    const struct toy_traits *is = &t->is;
    double clock = is->has_clocks ? fmin(t->limit / TOY_MHZ_MOST, t->ceiling) : t->ceiling;
    double w = is->idle_w + (is->full_w - is->idle_w) * pow(clock, CLOCK_EXPONENT);
    return is->has_clocks ? w : fmin(w, t->limit * is->fill);
}

void toy_step(struct toy *t, double demand, double cooling, double air_c, double dt_s) {
    const struct toy_traits *is = &t->is;
    double keep = exp(-dt_s / is->noise_s);
    t->jitter = t->jitter * keep + is->noise * sqrt(1 - keep * keep) * normal(t);
    slow_down(t, dt_s);
    t->held_w += (power_allowed(t) - t->held_w) * -expm1(-dt_s / is->limit_s);
    t->power_w = is->idle_w + demand * (t->held_w - is->idle_w) * (1 + t->jitter);
    double share = t->power_w / is->full_w;
    t->fast += (is->fast_c * share - t->fast) * -expm1(-dt_s / is->fast_s);
    t->mid += (is->mid_c * share - t->mid) * -expm1(-dt_s / is->mid_s);
    t->slow += (is->slow_c * cooling * share - t->slow) * -expm1(-dt_s / is->slow_s);
    t->air_c = air_c;
    t->at++;
    t->late[t->at % TOY_LATE] = toy_core_c(t);
    t->watts[t->at % 50] = t->power_w;
}

double toy_core_c(const struct toy *t) { return t->air_c + t->fast + t->mid + t->slow; }

double toy_shown_c(const struct toy *t) {
    unsigned late = (unsigned)lround(t->is.delay_s / 0.02);
    return round(t->late[(t->at - late) % TOY_LATE]);
}

double toy_shown_w(const struct toy *t) {
    double sum = 0;
    if (!t->is.is_averaged) return t->power_w;
    for (int k = 0; k < 50; k++) sum += t->watts[k];
    return sum / 50;
}

double toy_speed(const struct toy *t) {
    double share = (t->held_w - t->is.idle_w) / (t->is.full_w - t->is.idle_w);
    return pow(fmax(share, 0), t->is.has_clocks ? 1 / CLOCK_EXPONENT : t->is.concave);
}

double toy_clock_mhz(const struct toy *t) {
    return fmin(t->is.has_clocks ? t->limit : TOY_MHZ_MOST, t->ceiling * TOY_MHZ_MOST);
}
