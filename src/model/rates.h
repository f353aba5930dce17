/* How often each call to the driver is made. Cheap calls run at the rate asked for. The others share a budget of CPU
 * time: with costs c, weights w and a budget b (CPU seconds a second), the periods p that make the weighted age of what
 * a person sees smallest under sum(c/p) <= b are proportional to sqrt(c/w). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RATE_CHEAP_CPU_NS 60000    /* a call that costs less runs with the fast ones */
#define RATE_CHEAP_SHARE 5000      /* or one that takes less than this part of the period, if it is wanted every time */
#define RATE_CHEAP_WALL_NS 1000000 /* if it does not block either */
#define RATE_PERIOD_MAX_NS 300000000000ll

struct rate_call {
    int64_t cpu_ns, wall_ns; /* what it costs */
    double weight;           /* what its absence costs */
    int64_t least_ns;        /* more often than this is never of use */
    bool is_wanted;          /* supported, and there is a reason to make it */
    bool is_fast;            /* out: belongs to the fast round */
    int64_t period_ns;       /* out; 0: not made */
};

/* base_ns: the period of the fast round. budget: CPU seconds a second for all that is not fast. A call that blocks
 * for long gets a period of at least twenty times its wall time. */
void rates_plan(struct rate_call *calls, unsigned n, int64_t base_ns, double budget);
