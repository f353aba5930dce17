/* How one sensor of a card follows the power of that card, learnt while it runs:
 *
 *   temperature = base + fast * (use, at once) + mid * (use, within seconds) + slow * (use, within half a minute)
 *
 * and base drifts: air warms, coolers fail. The terms come from a Kalman filter over readings of whole degrees. How slow
 * the slow part is cannot be learnt that way, so a few guesses run side by side, weighed by how well each foretells. */
#pragma once

#include <stdbool.h>

#define HEAT_GUESSES 3

enum heat_term { HEAT_BASE, HEAT_DRIFT, HEAT_FAST, HEAT_MID, HEAT_SLOW, HEAT_TERMS };

struct heat_use { /* the share of its range that a card uses, as each part of it feels it */
    double fast, mid, slow[HEAT_GUESSES];
};

struct heat_guess {
    double x[HEAT_TERMS], p[HEAT_TERMS][HEAT_TERMS]; /* the terms, and how little they are known */
    double misfit;                                   /* squared, of late */
    double weight;                                   /* all weights add up to 1 */
};

struct heat {
    struct heat_guess guess[HEAT_GUESSES];
    double surprise; /* how far readings were from what was foretold, of late */
};

struct heat_ahead {                 /* what the base and shares of the present come to after some seconds */
    double s;                       /* how many */
    double drift;                   /* of which the drift counts so many */
    double mid, slow[HEAT_GUESSES]; /* shares of the way to a new use */
};

/* Advances use by dt_s with `share` drawn in that time. */
void heat_use_take(struct heat_use *u, double share, double dt_s);
void heat_use_set(struct heat_use *u, double share);
void heat_use_top(struct heat_use *top, const struct heat_use *u); /* the higher of each */

/* Nothing seen yet: what is usual for cards. */
void heat_begin(struct heat *h);

/* A first reading, or one after a long silence: what is known of the terms stays, the base is new. */
void heat_settle(struct heat *h, const struct heat_use *u, double read_c);

/* One reading, dt_s after the last. noise: how much of it is not to be learnt from; shake: how far readings of one and the
 * same work are from their mean. */
void heat_take(struct heat *h, const struct heat_use *u, double read_c, double noise_c, double shake_c, double dt_s);

/* The range that `use` is a share of becomes `scale` times as large, and begins `shift` of the new one lower. */
void heat_rescale(struct heat *h, double scale, double shift);

double heat_now_c(const struct heat *h, const struct heat_use *u);

struct heat_ahead heat_ahead(double s);

double heat_slow_s(int guess);

/* Variance of what guess g says for these shares. */
double heat_variance(const struct heat_guess *g, double drift, double fast, double mid, double slow);
