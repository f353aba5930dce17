/* Baselines that guards recorded and did not put back: what tells that a card may have been left throttled. */
#pragma once

#include <stdbool.h>

/* Whether any lies in the directory of this instance. */
bool records_are_left(const char *dir);
