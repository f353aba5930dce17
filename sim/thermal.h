/* How a card warms: two heat sources, a fast and a slow part each. Pure; the constants are fitted to a recorded H200 by
 * script/fit-plant, and other models scale them.
 */
#pragma once

struct thermal { /* kelvins above the air that comes in */
    double core_fast, core_slow;
    double mem_fast, mem_slow;
    double sink; /* what a worse cooler than the fitted one adds, to both */
};

/* Advances by dt_s with core_w and mem_w of heat. `resistance`: of this model's cooler relative to the H200's. `cooling`:
 * 1 as fitted, 2 for twice the resistance to air, below 1 for more air than usual. Exact for constant heat. */
void thermal_step(struct thermal *t, double core_w, double mem_w, double resistance, double cooling, double dt_s);

/* Where thermal_step() would end with this heat for ever. */
void thermal_settle(struct thermal *t, double core_w, double mem_w, double resistance, double cooling);

double thermal_core_c(const struct thermal *t, double air_c);
double thermal_mem_c(const struct thermal *t, double air_c);

/* The hottest spot, which the margin to the limit is counted from. */
double thermal_hot_spot_c(const struct thermal *t, double air_c, double core_w, double resistance);
