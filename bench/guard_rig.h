/* Cards in a world of troubles, and who limits them: the guard, the simple rule, nobody, or one constant limit. One run
 * gives what was reached, measured on the true temperature and not on what the sensor shows. */
#pragma once

#include <stdbool.h>

#include "bench/guard_toy.h"
#include "model/guard.h"
#include "sim/plant.h"

#define RIG_CARDS 8
#define RIG_SECONDS 600
#define RIG_GRACE_S 3.0
#define RIG_BLIND_S 1.0   /* beyond the grace */
#define RIG_SETTLE_S 60.0 /* from here on changes are counted */

struct rig_world { /* what a scenario does to its cards at a moment */
    double demand, cooling, air_c;
    unsigned fans_dead; /* bit per fan */
    bool is_blind;
    double budget_w; /* for all cards together; 0: none */
};

struct rig_scenario {
    const char *name, *model; /* model NULL: a toy */
    double target_c;
    int cards;
    void (*at)(const struct rig_scenario *sc, double t, struct rig_world *w);
    double allowed_c; /* overshoot */
    double trouble_s; /* when the last disturbance has come to its end; the first is the load at RIG_LOAD_S */
    enum wire_kind work;
    enum guard_control control; /* GUARD_BY_NONE: what the card can do */
    double period_s;            /* of its load; 0: steady */
    bool is_averaged;           /* power as a mean of a second only */
    bool is_blind, has_budget;
    bool has_margin; /* the driver's margin counts, too */
    uint64_t seed;   /* of a toy */
    struct toy_traits toy;
};

#define RIG_LOAD_S 10.0

enum rig_who { RIG_GUARD, RIG_RULE, RIG_NOBODY, RIG_CONSTANT };

struct rig_outcome {
    double over_c;                 /* peak above the target, of the worst sensor and card */
    double work;                   /* seconds of full speed */
    double changes_a_min;          /* once settled, the busiest card */
    double floor_s;                /* from blindness to the floor; NaN: never */
    double budget_s;               /* until the limits fit a new budget; NaN: never */
    double floor, baseline, final; /* final: mean limit of the last minute */
    float temp[RIG_CARDS][RIG_SECONDS], limit[RIG_CARDS][RIG_SECONDS]; /* means of a second */
};

/* by: of RIG_CONSTANT the limit, of RIG_RULE how far above the target its threshold lies. */
void rig_run(const struct rig_scenario *sc, enum rig_who who, double by, struct rig_outcome *o);

/* How long after a disturbance it was settled, the slowest card; counted from when the card passes its target with nobody
 * to hold it, where that is later: until then there is nothing to do. */
double rig_settled_s(const struct rig_scenario *sc, const struct rig_outcome *o, const struct rig_outcome *nobody);

/* The highest constant limit under which the target is kept, found by bisection, and what is reached with it. */
double rig_best_constant(const struct rig_scenario *sc, struct rig_outcome *o);

/* The simple rule with its threshold lowered by whole degrees until it is no hotter than over_c; how far. */
double rig_rule_as_cool(const struct rig_scenario *sc, double over_c, struct rig_outcome *o);
