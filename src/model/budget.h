/* The node's power budget as a pure step: one total in watts, shared among the GPUs by priority and demand. Called a few
 * times a second with what was last read back; answers with the limits to set now. It lowers at once and raises only from
 * watts that read-backs have shown to be free, so that the limits in force never add up to more than the total, once they
 * did not. It knows no driver and asks no clock.
 *
 * Every card keeps its lowest limit, so that it can start. The rest goes to those that want it, higher priority first and
 * in equal shares within one; what nobody wants is spread, so that nobody has to ask first.
 *
 * What it may withhold from a card that wants more: BUDGET_BAND of its baseline for good, and the rest for as long as it
 * takes another card to be idle (BUDGET_IDLE_NS, at most twice) and the next sharing to come (BUDGET_SHARE_NS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/inventory.h"

#define BUDGET_BAND 0.02 /* of the baseline: differences below this are not worth a change */
#define BUDGET_BAND_LEAST_W 3.0
#define BUDGET_SHARE_NS 10000000000ll /* watts are taken from one card for another at most this often */
#define BUDGET_IDLE_NS 15000000000ll  /* a card that drew less for this long gives the difference away */
#define BUDGET_SPARE 0.1              /* a card that is not held keeps this much above what it draws, and ... */
#define BUDGET_SPARE_W 5.0            /* ... this */

struct budget_card {
    double min_w,
        baseline_w;    /* never outside; where a guard holds the card lower, the caller passes that as baseline */
    double enforced_w; /* as last read back, also of a card that is gone; NaN: never, counts at its baseline */
    double draw_w;     /* recent; NaN: not known */
    bool wants_more;   /* held by its limit */
    int priority;      /* of what runs there; more goes first */
    bool can_set;
    bool is_there; /* not hung, not lost */
};

enum budget_verb { BUDGET_LOWER, BUDGET_RAISE };

struct budget_change {
    size_t card;
    enum budget_verb verb;
    double limit_w;
};

struct budget_plan {
    struct budget_change change[GPU_MAX]; /* to be set now, in this order: lowers first */
    size_t changes;
    double limit_w[GPU_MAX]; /* what each is to end at */
    double committed_w;      /* what is in force or may come to be: the sum the total is held against */
    bool is_short;           /* even the lowest limits do not fit now: cards that cannot be lowered take too much */
};

struct budget_line { /* what is known of one card */
    double asked_w, target_w;
    double ceiling_w;             /* a raise beyond this did not take; counts until ceiling_ns */
    double peak_w[2];             /* highest draw of the present and of the last window */
    int64_t window_ns;            /* when the present one began */
    int64_t asked_ns, ceiling_ns; /* when the limit was last set; until when the ceiling counts */
    int64_t off_ns;               /* since when what is in force is not what was asked; 0: it is */
    int64_t want_ns;              /* since when it has wanted more than the plan gives it; 0: it does not */
    int64_t seen_ns;              /* when it could last be set */
    bool is_begun, is_ours;       /* is_ours: can be set now */
    bool is_stuck;                /* takes no lower limit */
};

struct budget_state { /* zero is a fresh one */
    struct budget_line line[GPU_MAX];
    int64_t share_ns;
    bool is_begun;
};

/* Whether such a total can be kept: refuses one below the sum of the lowest limits. Cards that cannot be set count at
 * the limit they have. */
int budget_check(const struct budget_card *cards, size_t n, double total_w, struct error *e) MUST_CHECK;

/* n at most GPU_MAX, and card i the same card in every call. total_w: INFINITY gives everyone the baseline back. A limit
 * that does not take within seconds is asked for again, and the card counts at what it was last read back with. */
void budget_step(struct budget_state *b, const struct budget_card *cards, size_t n, double total_w, int64_t now_ns,
                 struct budget_plan *out);
