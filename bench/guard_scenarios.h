/* What the guard is tried with, one row each. */
#pragma once

#include <stddef.h>

#include "bench/guard_rig.h"

extern const struct rig_scenario guard_scenarios[];
extern const size_t guard_scenario_count;

/* The random card that seed stands for, with its own troubles. */
struct rig_scenario guard_random_scenario(uint64_t seed);
