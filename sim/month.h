/* A machine lived through for weeks in steps of seconds: cards of one model with the spread that boards have, jobs that
 * come and go as in a lab, air that is warmer by day and behind busy neighbours, and one thing that breaks. For judging
 * what finds failing parts; heat and clocks are the plants', the governor is only as quick as the step.
 *
 * Pure: the same seed gives the same weeks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/plant.h"

enum { MONTH_CARDS = 8 };
#define MONTH_STEP_S 5.0

enum month_fault {
    MONTH_HEALTHY,
    MONTH_CLOG,     /* the cooler's resistance grows to half again as much, over five days */
    MONTH_FAN_STOP, /* all fans stand; the driver goes on saying what it asks */
    MONTH_BRAKE,    /* power brake for ten seconds of every minute in which the card is busy */
    MONTH_ROOM,     /* air warmer by twelve degrees within an hour, for all */
    MONTH_MOUNTED,  /* a cooler that sits badly: its resistance is 1.7 times the usual */
    MONTH_SLOWED,   /* its hardware slows it for ten seconds of every minute in which the card is busy */
    MONTH_DEAF,     /* another limit than the one asked for is in force */
    MONTH_GREEDY,   /* draws a quarter more than its limit when work would bring it there */
};

struct month_plan {
    const char *model;
    size_t cards;
    double busy;                 /* share of the time in which a card has a job */
    double day_c, recirculation; /* swing of the day's air; kelvins by watt of the neighbours */
    enum month_fault fault;      /* of the first card */
    double fault_day;
    uint64_t seed;
};

struct month_job {
    enum wire_kind kind;
    double demand, period_s, until_s; /* period: of on and off, 0: always on */
    bool is_idle;
};

struct month_card {
    struct shm_card card;
    struct plant plant;
    struct month_job job;
    double cooling, slot_c; /* of this board; of this place */
    double power_w;         /* mean of the last step */
    bool flash;             /* a slowdown reason that a change of performance state shows for one reading */
};

struct month {
    struct month_plan plan;
    struct month_card card[MONTH_CARDS];
    double at_s, weather_c;
    double shown_s; /* for how long what broke has shown: in work, of bad cooling where the card is warm */
    uint64_t rng;
};

struct month_reading { /* as the driver would say it */
    double temp_c, power_w, memory, asked_w, enforced_w, fan, rpm;
    uint64_t reasons;
    bool has_fan;
};

void month_init(struct month *m, const struct month_plan *plan);
void month_step(struct month *m);
struct month_reading month_read(const struct month *m, size_t card);

/* Seconds since what was to break was fully broken; negative before. */
double month_broken_s(const struct month *m);
