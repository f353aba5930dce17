/* How warm a card is under a given load, learnt from what it was: a table of means over power and memory activity, and a
 * plane laid through the entries near the load that is asked about. Plain, of fixed size, fit to be kept on disk as it
 * is; zero is a card nothing is known of. */
#pragma once

#include <stdbool.h>

enum { WARMTH_POWERS = 10, WARMTH_MEMORIES = 3, WARMTH_BINS = WARMTH_POWERS * WARMTH_MEMORIES };

/* A load: power as a share of what the card may draw, and how busy its memory is. Heat goes where the power goes, and a
 * watt of the memory warms the core less than one of its own. */
struct warmth_load {
    double power, memory;
};

struct warmth {
    struct {
        float minutes, power, memory, warm_c; /* how much was seen, and the means of it */
    } bin[WARMTH_BINS];
};

struct warmth_guess {
    double warm_c;  /* expected */
    double rise_c;  /* of that, what the load makes: power times the slope */
    double slope_c; /* of the whole table: degrees over the whole range of power */
    double minutes; /* seen near this load: below WARMTH_NEAR it is drawn from afar */
    double total;   /* minutes seen in all */
    double spread;  /* of the power seen: without some, the slope is a guess */
};

#define WARMTH_NEAR 60

/* Takes what was seen for some minutes into the table. What is known well moves slowly upwards (a slow decay must not be
 * learnt as normal) and quicker downwards (a card that was cleaned). */
void warmth_learn(struct warmth *w, struct warmth_load l, double warm_c, double minutes);

struct warmth_guess warmth_guess(const struct warmth *w, struct warmth_load l);
