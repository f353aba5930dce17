#include "model/share.h"

#include <math.h>
#include <stdbool.h>

static double positive(double v) { return v > 0 ? v : 0; } /* NaN is 0 */

static bool is_measured(const struct share_holder *h) { return h->sm >= 0; }

static double memory_of(const struct share_holder *h) {
    return h->memory_bytes == UINT64_MAX ? 0 : (double)h->memory_bytes;
}

/* What each had of the time, into gpu_seconds as a share for now; returns their sum. Measured shares stand, and together
 * they are at most the whole card. */
static double shares(const struct share_gpu *g, struct share_holder *h, size_t n) {
    double measured = 0, memory = 0, sum = 0;
    size_t unmeasured = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_measured(&h[i]))
            measured += h[i].sm;
        else {
            memory += memory_of(&h[i]);
            unmeasured++;
        }
    }
    double scale = measured > 1 ? 1 / measured : 1;
    double left = positive(positive(g->busy) - measured * scale);
    for (size_t i = 0; i < n; i++) {
        double part;
        if (is_measured(&h[i]))
            part = h[i].sm * scale;
        else
            part = left * (memory > 0 ? memory_of(&h[i]) / memory : 1 / (double)unmeasured);
        h[i].gpu_seconds = part;
        sum += part;
    }
    return sum;
}

void share_split(struct share_gpu *g, struct share_holder *holders, size_t n) {
    double energy = positive(g->energy_j), idle = positive(g->idle_w) * g->seconds;
    double sum = shares(g, holders, n);
    if (idle > energy) idle = energy;
    double active = energy - idle;
    g->unowned_j = n ? 0 : energy;
    if (n && sum <= 0) { /* nobody did anything: all of it is the price of holding the card */
        idle += active;
        active = 0;
    }
    for (size_t i = 0; i < n; i++) {
        double part = holders[i].gpu_seconds;
        holders[i].energy_joules = idle / (double)n + (sum > 0 ? active * part / sum : 0);
        holders[i].gpu_seconds = part * g->seconds;
    }
}
