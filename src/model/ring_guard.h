/* What the ring tells of a card's guard: plain words of fixed size. */
#pragma once

#include <stdint.h>

/* What the guard does with a card. Targets and readings in the order of enum guard_sensor; NaN: no such thing. */
struct ring_guard {
    int64_t since_real_ns; /* the limit in force is so since then */
    uint64_t mode;         /* enum ring_guard_mode */
    uint64_t lever;        /* enum gpu_lever_kind: what is moved */
    uint64_t reason;       /* enum guard_reason */
    uint64_t held_by;      /* enum ring_guard_hold: who it is that wants it lower than its baseline */
    double target[3], reading[3];
    double floor, baseline, limit; /* watts or MHz */
    double throttled_s, withheld_w;
    int64_t manual_until_ns; /* boot clock: someone set it by hand until then; 0: nobody did */
    int64_t confirm_by_ns;   /* and must confirm by then */
    char why[96];            /* this lever and no other, or why only observing */
};

enum ring_guard_mode { RING_GUARD_OFF, RING_GUARD_OBSERVES, RING_GUARD_ACTS };

enum ring_guard_hold { RING_HELD_BY_GUARD, RING_HELD_BY_HAND, RING_HELD_BY_BUDGET };

#define RING_GUARD_LEVERS 4  /* of enum gpu_lever_kind */
#define RING_GUARD_REASONS 6 /* of enum guard_reason */

/* Numbers that name a row of somebody's table stay within it, whoever wrote them; the text ends. */
static inline void ring_guard_bound(struct ring_guard *g) {
    if (g->mode > RING_GUARD_ACTS) g->mode = RING_GUARD_OFF;
    if (g->lever >= RING_GUARD_LEVERS) g->lever = 0;
    if (g->reason >= RING_GUARD_REASONS) g->reason = 0;
    if (g->held_by > RING_HELD_BY_BUDGET) g->held_by = RING_HELD_BY_GUARD;
    g->why[sizeof g->why - 1] = 0;
}
