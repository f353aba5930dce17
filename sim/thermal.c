/* First-order lags, advanced exactly. See script/fit-plant for how the constants came about and docs/simulator.md for
 * how well they hold. */
#include "sim/thermal.h"

#include <math.h>

/* K/W and seconds, as script/fit-plant prints them. */
static const double core_fast_kw = 0.03354, core_fast_s = 0.183;
static const double core_slow_kw = 0.01048, core_slow_s = 1.95;
static const double mem_fast_kw = 0.07105, mem_fast_s = 0.148;
static const double mem_slow_kw = 0.01708, mem_slow_s = 2.26;

/* The memory sensor of an idle card stands this far above the core's intercept. */
static const double mem_offset_c = 6.8;

/* A cooler that lost its air warms as a block of metal does: much slower than the parts that were fitted. */
static const double sink_kw = 0.044, sink_s = 18;

/* Measured: core and margin add up to 87 C, the card's own maximum, idle and up to 400 W; to 3.7 C less at 550 W and to 5.4
 * and 7 C less at 690 and 660 W. So the hottest spot stands apart from the rest only under heavy work. */
static const double hot_spot_kw = 0.021, hot_spot_from_w = 370;

static double share(double dt_s, double tau_s) { return -expm1(-dt_s / tau_s); }

static void advance(struct thermal *t, const struct thermal *to, double dt_s) {
    t->core_fast += (to->core_fast - t->core_fast) * share(dt_s, core_fast_s);
    t->core_slow += (to->core_slow - t->core_slow) * share(dt_s, core_slow_s);
    t->mem_fast += (to->mem_fast - t->mem_fast) * share(dt_s, mem_fast_s);
    t->mem_slow += (to->mem_slow - t->mem_slow) * share(dt_s, mem_slow_s);
    t->sink += (to->sink - t->sink) * share(dt_s, sink_s);
}

void thermal_settle(struct thermal *t, double core_w, double mem_w, double resistance, double cooling) {
    double board_w = core_w + mem_w;
    *t = (struct thermal){
        .core_fast = resistance * core_fast_kw * core_w,
        .core_slow = resistance * core_slow_kw * board_w,
        .mem_fast = resistance * mem_fast_kw * mem_w,
        .mem_slow = resistance * mem_slow_kw * board_w,
        .sink = resistance * sink_kw * (cooling - 1) * board_w,
    };
}

void thermal_step(struct thermal *t, double core_w, double mem_w, double resistance, double cooling, double dt_s) {
    struct thermal to;
    thermal_settle(&to, core_w, mem_w, resistance, cooling);
    advance(t, &to, dt_s);
}

double thermal_core_c(const struct thermal *t, double air_c) { return air_c + t->core_fast + t->core_slow + t->sink; }

double thermal_mem_c(const struct thermal *t, double air_c) {
    return air_c + mem_offset_c + t->mem_fast + t->mem_slow + t->sink;
}

double thermal_hot_spot_c(const struct thermal *t, double air_c, double core_w, double resistance) {
    return thermal_core_c(t, air_c) + hot_spot_kw * fmax(resistance * core_w - hot_spot_from_w, 0);
}
