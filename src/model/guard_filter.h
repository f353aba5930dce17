/* The readings of one sensor, as the guard takes them in: smoothed, how far they swing around their mean under one and the
 * same work, the crests of work that comes and goes, and how the sensor follows the power (model/guard_heat.h). */
#pragma once

#include "model/guard.h"

#define GUARD_QUICK_S 10.0 /* work that comes and goes faster than this is always changing */
#define GUARD_LEARN_S 0.3  /* readings further apart tell power and temperature of different moments */
#define GUARD_GAP_S 10.0   /* after a silence of this length all starts anew */
#define GUARD_SMOOTH_S 0.536

void filter_begin(struct guard_filter *f);

/* One reading, hotter is more. */
void filter_take(struct guard_filter *f, const struct guard_load *l, double read_c, int64_t now_ns);

/* Work begins again after this time; 0: nobody knows after which, or it is too long ago to count. */
void filter_wave(struct guard_filter *f, double period_s);

/* How far readings of one and the same work are from their mean, and their peaks. */
double filter_shake_c(const struct guard_filter *f);
double filter_swing_c(const struct guard_filter *f);

/* How far crests lie beyond what is foretold of them. */
double filter_beyond_c(const struct guard_filter *f);

/* Degrees that the whole range makes within s seconds. */
double filter_reach_c(const struct guard_filter *f, double s);

/* The base drifts up, more than readings of a steady card seem to. */
bool filter_is_warming(const struct guard_filter *f);
