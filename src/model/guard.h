/* The thermal guard as a pure step: readings in, at most one change of a limit out. It lowers fast and before the target
 * is reached, raises slowly, stays between floor and baseline, acts on the worst of its inputs, and counts a sensor that
 * cannot be read as hot after a short grace. It knows no driver, allocates nothing, and asks no clock.
 *
 * The limit it moves is a power limit in watts or a clock in MHz; inside it is a share u of the way from floor to
 * baseline, and `use` is how much of that range the card takes up now. A die warms by tens of degrees within tenths of a
 * second when work starts, faster than anyone reads it; what is slow is everything below it. So the guard takes the quick
 * part out (rest = temperature - jump * use, where jump is learnt from what it sees), watches the slow rest and its slope,
 * and keeps u where rest + jump * u ends at the target: safe if the work comes back this instant, right when it stays. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/sample.h"

enum guard_control { GUARD_BY_NONE, GUARD_BY_POWER, GUARD_BY_CLOCKS, GUARD_BY_APP_CLOCKS };

enum guard_sensor { GUARD_CORE, GUARD_MEMORY, GUARD_MARGIN, GUARD_SENSORS };

struct guard_policy {
    enum guard_control control;
    bool uses[GUARD_SENSORS];     /* sensors that this card has */
    double target[GUARD_SENSORS]; /* degrees not to be exceeded; for the margin: not to be fallen below */
    double floor, baseline;       /* of the limit: watts or MHz */
    int64_t grace_ns;             /* a sensor silent for longer counts as hot */
};

enum guard_reason { GUARD_CALM, GUARD_HOT_CORE, GUARD_HOT_MEMORY, GUARD_LOW_MARGIN, GUARD_BLIND, GUARD_COOLED };

enum guard_verb { GUARD_HOLD, GUARD_LOWER, GUARD_RAISE };

struct guard_action {
    enum guard_verb verb;
    double limit; /* what should be in force after this step */
    enum guard_reason reason;
};

#define GUARD_PAST 16

struct guard_filter {
    double rest, slope; /* smoothed: the slow part in degrees, its change in degrees a second */
    double noise;       /* how far readings swing above what was expected */
    double read;        /* the last reading */
    int64_t at_ns;      /* when; 0: none yet */
};

struct guard_state {
    struct guard_filter filter[GUARD_SENSORS];
    double u;                                /* share in force */
    double jump_c;                           /* learnt: degrees by which the worst sensor jumps with the whole range */
    double use[GUARD_PAST], hot[GUARD_PAST]; /* the last rounds, to learn it from */
    int64_t past_ns[GUARD_PAST];
    unsigned past;
    double want_sum, want_least; /* shares wanted since the last change */
    unsigned want_count;
    int64_t begun_ns, change_ns;
    bool is_begun;
};

/* s: the readings of this round (absent ones are absent). */
struct guard_action guard_step(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                               int64_t now_ns);

/* How far the worst sensor lies below its target, for the choice of the reading rate; NaN before the first reading. */
double guard_headroom_c(const struct guard_state *g, const struct guard_policy *p);

const char *guard_reason_words(enum guard_reason r);
