/* The thermal guard as a pure step: readings in, at most one change of a limit out. It lowers fast and before the target
 * is reached, raises slowly, stays between floor and baseline, acts on the worst of its inputs, and counts a sensor that
 * cannot be read as hot after a short grace. It knows no driver, allocates nothing, and asks no clock.
 *
 * The limit it moves is a power limit in watts or a clock in MHz; inside it is a share u of the way from floor to
 * baseline, and `use` is how much of that range the card takes up now. A die warms by tens of degrees within tenths of a
 * second when work starts, faster than anyone reads it; what is slow is everything below it. How each sensor follows the
 * power is learnt while it runs (model/guard_heat.h), and from that comes what may be used: so that the aim is kept if all
 * of it is used this instant; if it goes on like this for some seconds; and, once that is known well enough, for ever. Work
 * that comes and goes gets one constant limit, at which its peaks end at the target. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/guard_heat.h"
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

struct guard_filter {    /* one sensor; hotter is more, a margin is turned round */
    double read;         /* the last reading */
    double peak;         /* the highest of the last seconds */
    double smooth, even; /* over half a second, and as power is */
    double mean, late;   /* over a second, and that a second later */
    struct heat heat;    /* how it follows the power */
    double spread;       /* variance of readings around their line, at full load, ... */
    double steady_s;     /* ... and how long that was looked at */
    double beyond;       /* how far the peaks of work that comes and goes lie beyond what is foretold of them */
    double waves;        /* how long they were looked at, in seconds */
    double crest, told;  /* the highest reading since work last began, and the highest foretold */
    double top, rise;    /* the height of such crests, and how it changes in a second */
    double rough;        /* their variance around that */
    int crests;          /* how many were seen */
    int64_t at_ns;       /* when it was last read; 0: never */
};

struct guard_cycle { /* from one beginning of work to the next: what was used of the limit at first, and at most */
    struct heat_use begin, top;
};

struct guard_load {                /* how much of the range is used, as the die feels it */
    double now, smooth, top;       /* as read, over half a second, and the highest of the last seconds */
    double late;                   /* half a second behind */
    double idle;                   /* the least that was ever seen */
    struct heat_use use, act;      /* of the range; and of what the limit allows, from 0 to 1 */
    struct heat_use before, mark;  /* the latter at two beginnings of work, some seconds apart or more, ... */
    double gap_s;                  /* ... and how many; 0: unknown */
    struct guard_cycle cycle[2];   /* this time, and the last */
    bool is_begun, is_on, is_late; /* late: power is told as a mean of a second */
    int64_t on_ns, off_ns;         /* when work last began and ended */
    int64_t mark_ns;               /* when `mark` was */
    double on_s, off_s, period_s;  /* how long it worked and paused, and from one beginning to the next; 0: unknown */
};

enum guard_habit { GUARD_IDLE, GUARD_STEADY, GUARD_WAVES }; /* what work does, of late */

struct guard_window { /* since the last change, or since it was last looked at */
    double sum;       /* of shares wanted in the present interval */
    unsigned count;
    int64_t begun_ns, whole_ns; /* of the interval and of the whole time */
};

struct guard_state {
    struct guard_filter filter[GUARD_SENSORS];
    struct guard_load load;
    enum guard_habit habit;
    struct guard_window window;
    double u, limit;        /* share in force, and the limit last told */
    double floor, baseline; /* what it is a share of */
    double ease_c;          /* what clocks are rounded down by makes */
    double raises;          /* of the last minute or so */
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
