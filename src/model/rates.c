#include "model/rates.h"

#include <math.h>

#define RATE_BLOCK_SHARE 20

static bool is_cheap(const struct rate_call *c, int64_t base_ns) {
    int64_t most_ns = RATE_CHEAP_CPU_NS;
    if (c->least_ns == 0 && base_ns / RATE_CHEAP_SHARE > most_ns) most_ns = base_ns / RATE_CHEAP_SHARE;
    if (c->least_ns > base_ns || c->cpu_ns >= most_ns) return false;
    return c->wall_ns < RATE_CHEAP_WALL_NS && c->wall_ns * RATE_BLOCK_SHARE < base_ns;
}

void rates_plan(struct rate_call *calls, unsigned n, int64_t base_ns, double budget) {
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        struct rate_call *c = &calls[i];
        c->is_fast = c->is_wanted && is_cheap(c, base_ns);
        c->period_ns = c->is_fast ? base_ns : 0;
        if (c->is_wanted && !c->is_fast) sum += sqrt((double)c->cpu_ns * 1e-9 * c->weight);
    }
    for (unsigned i = 0; i < n; i++) {
        struct rate_call *c = &calls[i];
        if (!c->is_wanted || c->is_fast) continue;
        double period_s = sqrt((double)c->cpu_ns * 1e-9 / c->weight) * sum / budget;
        int64_t period_ns =
            period_s * 1e9 > (double)RATE_PERIOD_MAX_NS ? RATE_PERIOD_MAX_NS : (int64_t)(period_s * 1e9);
        if (period_ns < c->wall_ns * RATE_BLOCK_SHARE) period_ns = c->wall_ns * RATE_BLOCK_SHARE;
        if (period_ns < c->least_ns) period_ns = c->least_ns;
        if (period_ns < base_ns) period_ns = base_ns;
        if (period_ns > RATE_PERIOD_MAX_NS) period_ns = RATE_PERIOD_MAX_NS;
        c->period_ns = period_ns;
    }
}
