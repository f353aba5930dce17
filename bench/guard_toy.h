/* A card drawn at random, for the guard's bench: power capped by a limit or a clock, three poles of heat, work concave in
 * power, a sensor of whole degrees that comes late. Small on purpose: it shares no line with sim/, so that a guard
 * tuned on one meets another in the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOY_LATE 64 /* steps of 20 ms that a reading may lag */

struct toy_traits {
    bool has_clocks;  /* moved by its clock, not by a power limit */
    bool is_averaged; /* tells its power as a mean over a second only */
    double floor_w, full_w, idle_w;
    double fast_c, mid_c, slow_c; /* above air at full power */
    double fast_s, mid_s, slow_s;
    double delay_s, noise, noise_s, limit_s, fill, concave;
    double target_c, best; /* best: about the share of the range that it can keep up at the end */
    double cooling;        /* what the slow part is multiplied with when cooling fails */
    double period_s;       /* of a square wave; 0: steady */
    double air_rise_c;
};

struct toy {
    struct toy_traits is;
    uint64_t rng;
    double limit; /* watts, or MHz of TOY_MHZ */
    double held_w, power_w, jitter, fast, mid, slow, air_c, ceiling;
    double late[TOY_LATE], watts[50];
    unsigned at;
};

#define TOY_MHZ_LEAST 300.0
#define TOY_MHZ_MOST 2100.0
#define TOY_MHZ_STEP 15.0

/* The card that seed stands for, idle in its air. */
void toy_draw(struct toy *t, uint64_t seed);

void toy_step(struct toy *t, double demand, double cooling, double air_c, double dt_s);

double toy_core_c(const struct toy *t);
double toy_shown_c(const struct toy *t);
double toy_shown_w(const struct toy *t); /* instant, or the mean of a second */
double toy_speed(const struct toy *t);   /* of full speed */
double toy_clock_mhz(const struct toy *t);

/* One line that says from where traits are drawn. */
extern const char toy_ranges[];
