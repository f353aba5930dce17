/* Settings held against the cards there are: what no table can know. Refused with one sentence that names where the
 * value stands, the key and what is allowed. */
#pragma once

#include "base/error.h"
#include "client/settings_load.h"
#include "client/view.h"

#define CARDS_LEAST_C 30.0

/* The highest target that makes sense: where the card slows down by itself, else its maximum, else 110. */
double cards_hottest_c(const struct inventory *i);

/* Against these cards; those that `gpus` leaves out do not count. */
int cards_check(const struct loaded *l, const struct view *v, struct error *e) MUST_CHECK;

/* Before a start: against the simulated cards there will be, or what the driver says. Where no driver answers there is
 * nothing to check against, and the sampler will say so when one comes: that is no error. Asks in a child, so a hung
 * driver costs seconds only. */
int cards_check_start(const struct loaded *l, struct error *e) MUST_CHECK;

/* For a reload: against what the running instance has in its rings. No driver is asked. */
int cards_check_running(const struct loaded *l, struct error *e) MUST_CHECK;
