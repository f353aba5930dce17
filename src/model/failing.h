/* Finds parts that fail before they stop the work: cooling that no longer carries the heat away, a fan that stands, a
 * power supply that brakes, limits that do not take, a card that is always too hot. Pure, allocates nothing; called once
 * a second with the readings of all GPUs of a machine, because neighbours tell a clogged cooler from warm air.
 *
 * Cooling is judged by minutes of steady load: how much warmer is this card than it used to be under this load (its
 * history, learnt over days), and how much of that do its neighbours share? What all share is the room's. With fewer
 * than two neighbours the card's own idle hours tell the room.
 *
 * Verdicts have hysteresis: each is raised once and cleared once. The caller turns edges into events with the words of
 * failing_rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/inventory.h"
#include "model/sample.h"
#include "model/warmth.h"

enum failing_kind {
    FAILING_COOLING,
    FAILING_UNLIKE,
    FAILING_FAN,
    FAILING_SLOWDOWN,
    FAILING_BRAKE,
    FAILING_LIMIT,
    FAILING_DRAW,
    FAILING_OVERUSE,
    FAILING_ROOM, /* of the machine, not of a card */
    FAILING_KINDS
};

struct failing_row {
    const char *name;             /* kind of the event */
    enum event_severity severity; /* when it is raised */
    double raise_s, clear_s;      /* so long must it be bad, or good, in readings that can tell */
    const char *raised, *cleared; /* what is likely broken and what to do; what was seen to be well again */
};
extern const struct failing_row failing_rows[FAILING_KINDS];

struct failing_policy {       /* see failing_defaults */
    double factor;            /* this much of the rise above the expected one is too much */
    double least_c;           /* and never less than so many degrees */
    double room_c;            /* degrees by which all may drift together */
    double slow_minutes;      /* of ten, with a hardware slowdown or a power brake in them */
    double overuse_share;     /* of a week above the target */
    double limit_tolerance;   /* share of the limit by which asked and enforced may differ, and ... */
    double limit_tolerance_w; /* ... at least so many watts */
};
extern const struct failing_policy failing_defaults;

struct failing_input {
    const struct sample *s; /* readings of the last second or so; NULL: the card does not answer */
    double asked_w;         /* the power limit that should be in force; NaN: nobody asked */
    double hot_c;           /* its target temperature */
    uint32_t model;         /* equal for cards of one kind */
};

struct failing_mark { /* one verdict coming up or going down */
    float bad_s, good_s;
    bool is_up;
};

/* What is worth keeping over a restart, by the card's UUID. Plain and of fixed size; zero is a new card. Zeroing it is
 * also how an operator says that the cooling was changed for good. */
struct failing_history {
    struct warmth warmth;
    float rpm_full;  /* what the fans turn when all is asked of them; 0: not known */
    float full_w;    /* what the card may draw, or the most it was seen to */
    float over_s[7]; /* seconds above the target, today and the six days before */
    float day_s;     /* of today, gone by */
};

struct failing_minute {
    double seconds, power_w, temp_c, memory, fan;
    double low_w, high_w, fan_low, fan_high; /* of its readings, where there is a fan */
    bool has_fan;
};

struct failing_run { /* steady minutes of one load */
    struct warmth_load load;
    double low_c, low_own_c; /* the least warm of them, and the same beyond what the neighbours share */
    unsigned minutes;
};

struct failing_card {
    struct failing_history past;
    struct failing_mark mark[FAILING_KINDS];
    struct failing_minute now, block;
    struct failing_run run;
    double before_w[2]; /* mean power of the last two minutes; negative: none */
    unsigned block_minutes;
    uint16_t slow, brake;        /* a bit for each of the last minutes */
    bool was_slow, was_brake;    /* in the last reading */
    bool slow_now, brake_now;    /* in this minute, twice running */
    double off_c;                /* warmer than its history, at the last steady minute */
    double off_age_s;            /* since then */
    double idle_c, idle_age_s;   /* the same, of its idle hours */
    double excess_c, expected_c; /* for people: beyond what the neighbours share; expected rise */
    uint32_t up;                 /* verdicts in force: BIT(enum failing_kind) */
};

struct failing_room { /* history too: by the machine */
    float minutes[WARMTH_POWERS], off_c[WARMTH_POWERS];
};

struct failing {
    struct failing_card card[GPU_MAX];
    struct failing_room room;
    struct failing_mark room_mark;
    double room_off_c; /* what all share now, against their histories */
    double minute_s;
    int64_t last_ns;
    uint32_t room_up;
};

/* n at most GPU_MAX; card i the same card in every call. Looks at f->card[i].up and f->room_up before and after tell what
 * was raised and cleared. */
void failing_step(struct failing *f, const struct failing_policy *p, const struct failing_input *in, size_t n,
                  int64_t now_ns);
