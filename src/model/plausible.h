/* Drivers answer with sentinels, underflows and garbage now and then; a figure that no card can have is absent, not
 * shown. The bounds are by unit, so that a new metric has them at once. */
#pragma once

#include <stdbool.h>

#include "model/metrics.h"

bool value_is_plausible(enum metric_unit unit, double value);
