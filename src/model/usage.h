/* What a user had of the GPUs: decayed, for whose turn it is, and by the hour, for what he may have in seven days. The queue and
 * what plays one through (model/simulate) count alike. Pure. Times are wall clock. */
#pragma once

#include <stdint.h>

#define USAGE_WEEK_H 168

struct usage {
    double usage_s; /* GPU seconds, decayed to usage_ns */
    int64_t usage_ns;
    struct usage_hour {
        int64_t hour; /* unix hours */
        double held_s;
    } week[USAGE_WEEK_H]; /* of runs that have ended */
};

/* GPU seconds, of which half count after so many hours. */
double usage_at(const struct usage *u, double half_life_h, int64_t now_ns);
/* then_ns: when it was held; now or before. */
void usage_add(struct usage *u, double half_life_h, double held_s, int64_t then_ns, int64_t now_ns);
/* GPU seconds of the seven days up to this hour. */
double usage_week_s(const struct usage *u, int64_t hour);
