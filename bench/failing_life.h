/* A simulated machine lived through with failing parts being looked for: what was said of it, and when. For the bench,
 * which judges months of many machines, and for the test, which judges a few weeks. */
#pragma once

#include <stdbool.h>

#include "model/failing.h"
#include "sim/month.h"

struct life_plan {
    struct month_plan month;
    double days;
    bool has_rpm; /* the driver tells what the fans turn */
    double hot_c; /* target temperature */
    enum failing_kind expect;
};

struct life {
    int wrong[FAILING_KINDS];      /* said of what is well */
    double wrong_day;              /* the first of them */
    double found_s[FAILING_KINDS]; /* after what broke had shown for so long; NaN: never */
    int raised[FAILING_KINDS], cleared[FAILING_KINDS];
};

/* Overuse is no fault of a part: it shows while the first card is above its target. */
void life_live(const struct life_plan *plan, struct life *ret);

bool life_is_healthy(const struct life_plan *plan);
