/* What the ring says of a guard, in words and in order of concern. */
#pragma once

#include <stdbool.h>

#include "model/guard.h"
#include "model/ring.h"

const char *guard_mode_word(const struct ring_guard *g);   /* "acts", "observes", "off" */
const char *guard_lever_words(const struct ring_guard *g); /* "power limit", "locked clocks", ..., "none" */
const char *guard_unit(const struct ring_guard *g);        /* "W", "MHz", "" */
const char *guard_sensor_word(enum guard_sensor s);        /* "core" */

/* The reason in a word or two, for a column: heat, or whoever else holds it lower. */
const char *guard_short_reason(const struct ring_guard *g);

/* Degrees between a reading and its target, less than 0 beyond it; NaN where one of them is not known. */
double guard_room_c(const struct ring_guard *g, enum guard_sensor s);

/* The sensor that decides: the one that the reason names, else the one with the least room; false when none has both. */
bool guard_worst(const struct ring_guard *g, enum guard_sensor *ret);

bool guard_is_low(const struct ring_guard *g);
