#include "model/guard_heat.h"

#include <math.h>
#include <string.h>

/* Fitted on an H200: 0.18 s and 1.95 s. */
#define FAST_S 0.204
#define MID_S 1.96
static const double slow_s[HEAT_GUESSES] = {8, 15, 28};

/* Degrees that the whole range makes before anything was seen, and how far that may be off. */
#define JUMP_C 20.0 /* fast and mid together */
#define JUMP_OFF_C 8.0
#define MID_SHARE 0.209
#define MID_OFF_C 1.33
#define SLOW_C 25.7
#define SLOW_OFF_C 10.0

/* How fast each may change, in a second. */
#define BASE_WALK 0.03
#define DRIFT_WALK 0.02
#define FAST_WALK 0.02
#define MID_WALK 0.01
#define SLOW_WALK 0.1
#define DRIFT_S 15.0 /* a drift dies away in this time unless it is seen again */

/* Readings that stay away from what was foretold: the cooling fails, and then a drift may change so many times faster. */
#define SURPRISE_S 1.35
#define SURPRISE_C 0.636
#define SURPRISE_NOISE_C 2.0 /* nothing is strange while readings are as uncertain as this */
#define SHAKEN 1.0           /* of the swing that is not strange either */
#define SURPRISE_MOST 36.8

#define ROUNDED_C 0.5     /* a reading of whole degrees is as good for anything so near to it ... */
#define ROUNDED_SHARE 0.2 /* ... or nearly so */
#define SHAKEN_SHARE 0.5  /* a swing makes whole degrees as good as finer ones: this more, for each degree of it */

/* Guesses are weighed by how far they missed, in standard deviations, over this time. */
#define MISFIT_S 60.0
#define MISFIT_SCALE 65.5

static double clamp(double v, double least, double most) { return v > most ? most : v > least ? v : least; }

static double share(double dt_s, double tau_s) { return -expm1(-dt_s / tau_s); }

double heat_slow_s(int guess) { return slow_s[guess]; }

void heat_use_set(struct heat_use *u, double s) {
    u->fast = u->mid = s;
    for (int i = 0; i < HEAT_GUESSES; i++) u->slow[i] = s;
}

void heat_use_top(struct heat_use *top, const struct heat_use *u) {
    top->fast = fmax(top->fast, u->fast);
    top->mid = fmax(top->mid, u->mid);
    for (int i = 0; i < HEAT_GUESSES; i++) top->slow[i] = fmax(top->slow[i], u->slow[i]);
}

void heat_use_take(struct heat_use *u, double s, double dt_s) {
    u->fast += (s - u->fast) * share(dt_s, FAST_S);
    u->mid += (s - u->mid) * share(dt_s, MID_S);
    for (int i = 0; i < HEAT_GUESSES; i++) u->slow[i] += (s - u->slow[i]) * share(dt_s, slow_s[i]);
}

void heat_begin(struct heat *h) {
    double jump = JUMP_OFF_C * JUMP_OFF_C, off = MID_OFF_C * MID_OFF_C, mid = MID_SHARE, fast = 1 - mid;
    memset(h, 0, sizeof *h);
    for (int i = 0; i < HEAT_GUESSES; i++) {
        struct heat_guess *g = &h->guess[i];
        g->weight = 1.0 / HEAT_GUESSES;
        g->x[HEAT_FAST] = fast * JUMP_C;
        g->x[HEAT_MID] = mid * JUMP_C;
        g->x[HEAT_SLOW] = SLOW_C;
        g->p[HEAT_FAST][HEAT_FAST] = fast * fast * jump + off;
        g->p[HEAT_MID][HEAT_MID] = mid * mid * jump + off;
        g->p[HEAT_FAST][HEAT_MID] = g->p[HEAT_MID][HEAT_FAST] = fast * mid * jump - off;
        g->p[HEAT_SLOW][HEAT_SLOW] = SLOW_OFF_C * SLOW_OFF_C;
    }
}

static double foretold(const struct heat_guess *g, const struct heat_use *u, int i) {
    return g->x[HEAT_BASE] + g->x[HEAT_FAST] * u->fast + g->x[HEAT_MID] * u->mid + g->x[HEAT_SLOW] * u->slow[i];
}

/* The base takes up what the reading leaves; whatever is wrong with the other terms is wrong with it. */
void heat_settle(struct heat *h, const struct heat_use *u, double read_c) {
    for (int i = 0; i < HEAT_GUESSES; i++) {
        struct heat_guess *g = &h->guess[i];
        double by[HEAT_TERMS] = {[HEAT_FAST] = -u->fast, [HEAT_MID] = -u->mid, [HEAT_SLOW] = -u->slow[i]};
        double own = 0.3;
        g->x[HEAT_DRIFT] = 0;
        g->x[HEAT_BASE] += read_c - foretold(g, u, i);
        for (int k = 0; k < HEAT_TERMS; k++)
            g->p[k][HEAT_BASE] = g->p[HEAT_BASE][k] = g->p[k][HEAT_DRIFT] = g->p[HEAT_DRIFT][k] = 0;
        g->p[HEAT_DRIFT][HEAT_DRIFT] = 0.01;
        double var[HEAT_TERMS] = {0};
        for (int k = HEAT_FAST; k < HEAT_TERMS; k++)
            for (int n = HEAT_FAST; n < HEAT_TERMS; n++) {
                var[k] += g->p[k][n] * by[n];
                own += by[k] * g->p[k][n] * by[n];
            }
        for (int k = HEAT_FAST; k < HEAT_TERMS; k++) g->p[k][HEAT_BASE] = g->p[HEAT_BASE][k] = var[k];
        g->p[HEAT_BASE][HEAT_BASE] = own;
    }
}

/* Time passes: the base goes on as it drifts, the drift dies away, and all is known a little less. */
static void guess_pass(struct heat_guess *g, double dt, double restless) {
    double keep = exp(-dt / DRIFT_S);
    g->x[HEAT_BASE] += g->x[HEAT_DRIFT] * dt;
    g->x[HEAT_DRIFT] *= keep;
    for (int k = 0; k < HEAT_TERMS; k++) g->p[HEAT_BASE][k] += dt * g->p[HEAT_DRIFT][k];
    for (int k = 0; k < HEAT_TERMS; k++) g->p[k][HEAT_BASE] += dt * g->p[k][HEAT_DRIFT];
    for (int k = 0; k < HEAT_TERMS; k++) g->p[HEAT_DRIFT][k] *= keep;
    for (int k = 0; k < HEAT_TERMS; k++) g->p[k][HEAT_DRIFT] *= keep;
    double walk[HEAT_TERMS] = {BASE_WALK, DRIFT_WALK * restless, FAST_WALK, MID_WALK, SLOW_WALK};
    double most[HEAT_TERMS] = {400, 4, 400, 100, 900};
    for (int k = 0; k < HEAT_TERMS; k++)
        if (g->p[k][k] < most[k]) g->p[k][k] += walk[k] * walk[k] * dt;
}

/* A reading of whole degrees says little about anything within half a degree of it. */
static double rounded(double e, double shake_c) {
    double beyond = e - clamp(e, -ROUNDED_C, ROUNDED_C);
    return beyond + fmin(ROUNDED_SHARE + SHAKEN_SHARE * shake_c, 1) * (e - beyond);
}

/* The Kalman filter's step for one reading; what it missed by. */
static double guess_correct(struct heat_guess *g, const struct heat_use *u, int i, double read_c, double r,
                            double shake_c, double dt) {
    double by[HEAT_TERMS] = {1, 0, u->fast, u->mid, u->slow[i]}, pby[HEAT_TERMS] = {0}, s = r;
    double e = rounded(read_c - foretold(g, u, i), shake_c);
    for (int k = 0; k < HEAT_TERMS; k++)
        for (int n = 0; n < HEAT_TERMS; n++) pby[k] += g->p[k][n] * by[n];
    for (int k = 0; k < HEAT_TERMS; k++) s += by[k] * pby[k];
    for (int k = 0; k < HEAT_TERMS; k++) {
        g->x[k] += pby[k] / s * e;
        for (int n = 0; n < HEAT_TERMS; n++) g->p[k][n] -= pby[k] * pby[n] / s;
    }
    g->misfit += (e * e / s - g->misfit) * share(dt, MISFIT_S);
    static const double least[HEAT_TERMS] = {-300, -5, 3, 0.3, 1}, most[HEAT_TERMS] = {300, 5, 60, 30, 90};
    for (int k = 0; k < HEAT_TERMS; k++) g->x[k] = clamp(g->x[k], least[k], most[k]);
    return e;
}

static void weigh(struct heat *h) {
    double least = INFINITY, sum = 0;
    for (int i = 0; i < HEAT_GUESSES; i++) least = fmin(least, h->guess[i].misfit);
    for (int i = 0; i < HEAT_GUESSES; i++) {
        struct heat_guess *g = &h->guess[i];
        g->weight = exp(-(g->misfit - least) * MISFIT_SCALE);
        sum += g->weight;
    }
    for (int i = 0; i < HEAT_GUESSES; i++) h->guess[i].weight /= sum;
}

void heat_take(struct heat *h, const struct heat_use *u, double read_c, double noise_c, double shake_c, double dt_s) {
    double strange = h->surprise / (SURPRISE_C + SHAKEN * shake_c), missed = 0;
    double restless = 1 + fmin(strange * strange, 1) * SURPRISE_MOST;
    for (int i = 0; i < HEAT_GUESSES; i++) {
        struct heat_guess *g = &h->guess[i];
        guess_pass(g, dt_s, restless);
        missed += g->weight * guess_correct(g, u, i, read_c, noise_c * noise_c, shake_c, dt_s);
    }
    if (!isfinite(missed)) { /* cannot be; but a guard that knows nothing is better than one that believes nonsense */
        heat_begin(h);
        heat_settle(h, u, read_c);
        return;
    }
    if (noise_c < SURPRISE_NOISE_C) h->surprise += (missed - h->surprise) * share(dt_s, SURPRISE_S);
    weigh(h);
}

void heat_rescale(struct heat *h, double scale, double shift) {
    for (int i = 0; i < HEAT_GUESSES; i++) {
        struct heat_guess *g = &h->guess[i];
        for (int k = HEAT_FAST; k < HEAT_TERMS; k++) {
            g->x[k] *= scale;
            g->x[HEAT_BASE] -= g->x[k] * shift;
            for (int n = 0; n < HEAT_TERMS; n++) g->p[k][n] *= scale;
            for (int n = 0; n < HEAT_TERMS; n++) g->p[n][k] *= scale;
        }
    }
}

double heat_now_c(const struct heat *h, const struct heat_use *u) {
    double c = 0;
    for (int i = 0; i < HEAT_GUESSES; i++) c += h->guess[i].weight * foretold(&h->guess[i], u, i);
    return c;
}

struct heat_ahead heat_ahead(double s) {
    struct heat_ahead a = {.s = s, .drift = DRIFT_S * share(s, DRIFT_S), .mid = share(s, MID_S)};
    for (int i = 0; i < HEAT_GUESSES; i++) a.slow[i] = share(s, slow_s[i]);
    return a;
}

double heat_variance(const struct heat_guess *g, double drift, double fast, double mid, double slow) {
    double by[HEAT_TERMS] = {1, drift, fast, mid, slow}, v = 0;
    for (int k = 0; k < HEAT_TERMS; k++)
        for (int n = 0; n < HEAT_TERMS; n++) v += by[k] * g->p[k][n] * by[n];
    return fmax(v, 0);
}
