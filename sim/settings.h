/* What NVML's set calls change, checked as a driver checks. */
#pragma once

#include "sim/machine.h"

/* Applies one request; returns NVML's code. Permission is the caller's matter. */
int settings_apply(struct machine *m, uint32_t gpu, const struct wire_set *set);

/* Whether anyone may ask for this: application clocks, once an administrator has opened them. */
bool settings_are_free(const struct machine *m, uint32_t gpu, const struct wire_set *set);
