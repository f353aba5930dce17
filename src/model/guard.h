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

struct guard_policy { /* may change between steps */
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

enum guard_pace { GUARD_QUICK, GUARD_SLOW, GUARD_PACES }; /* within seconds, and within half a minute */

struct guard_gain {      /* degrees that the whole range makes, by least squares over what was seen to move */
    double base;         /* the temperature, smoothed over that time: what moves is measured against it */
    double moved, moves; /* sums of use times degrees, and of use squared */
};

struct guard_filter {     /* one sensor; hotter is more, a margin is turned round */
    double read;          /* the last reading */
    double peak;          /* the highest of the last seconds */
    double smooth, trail; /* over half a second, and a second behind that */
    double rest;          /* the slow part in degrees */
    double drift;         /* what changes it besides use, in degrees a second */
    struct guard_gain gain[GUARD_PACES];
    double spread; /* variance of readings around their mean, at full load */
    int64_t at_ns; /* when it was last read; 0: never */
};

struct guard_load {              /* how much of the range is used, as the die feels it */
    double now, smooth, top;     /* as read, over half a second, and the highest of the last seconds */
    double fast, mid;            /* as the two quick parts of the die follow it */
    double slow;                 /* and as a cooler follows it */
    double base[GUARD_PACES];    /* of the quick parts and of the slow one, over the time of each pace */
    bool is_begun, is_idle;      /* idle: well under the limit */
    int64_t begun_ns, before_ns; /* when work last began, and the time before that */
};

struct guard_window {   /* since the last change, or since it was last looked at */
    double sum;         /* of shares wanted in the present interval */
    double near, least; /* the share wanted, smoothed, and its least of the whole time */
    double hottest;     /* reading of the whole time, above its target */
    double peak, crest; /* the same of this interval; and of those before, slowly forgotten */
    bool is_full;       /* the card was at its limit at some time */
    unsigned count;
    int64_t begun_ns, whole_ns; /* of the interval and of the whole time */
};

struct guard_state {
    struct guard_filter filter[GUARD_SENSORS];
    struct guard_load load;
    struct guard_window window;
    double u, limit;        /* share in force, and the limit last told */
    double floor, baseline; /* what it is a share of */
    int64_t begun_ns, change_ns, now_ns;
    int64_t slow_ns; /* when readings were last far apart */
    bool is_begun;
};

/* Takes over a card whose limit is `limit` now. Without it the first step takes it over at its baseline. */
void guard_begin(struct guard_state *g, const struct guard_policy *p, double limit, int64_t now_ns);

/* s: the readings of this round (absent ones are absent). */
struct guard_action guard_step(struct guard_state *g, const struct guard_policy *p, const struct sample *s,
                               int64_t now_ns);

/* How far the worst sensor has lain below its target in the last seconds, for the choice of the reading rate; NaN before the
 * first reading. */
double guard_headroom_c(const struct guard_state *g, const struct guard_policy *p);

const char *guard_reason_words(enum guard_reason r);
