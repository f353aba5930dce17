/* What each NVML call costs on a real H200, for simulated cards that shall cost as much (shm_root.costs_on).
 *
 * The library burns cpu_ns of its thread's CPU time and sleeps until wall_ns have passed. Calls that are not in the
 * table are free. The figures were measured on one card, read-only; see docs/simulator.md.
 */
#pragma once

#include <stdint.h>

struct cost {
    const char *call; /* NVML function, or "field N" for one field of nvmlDeviceGetFieldValues */
    uint32_t wall_ns, cpu_ns;
};

/* The row of `call`, or NULL. A search by name: look it up once and keep the pointer, which is good for ever. */
const struct cost *cost_of(const char *call);

/* The row of one field id, or NULL. */
const struct cost *cost_of_field(unsigned field);

/* Spends it: burns cpu_ns of this thread's CPU time, then sleeps the rest of wall_ns. NULL is free. */
void cost_pay(const struct cost *c);
