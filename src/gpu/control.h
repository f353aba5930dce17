/* Changing a card: the only functions of this program that set anything in a driver. The guard calls them; nothing else
 * includes this header. Each GPU has at most one kind of limit that is moved, chosen from what the card can do.
 *
 * None of these is called in observe mode: the caller sees to it by not having a struct gpu_lever at all. */
#pragma once

#include "gpu/device.h"

enum gpu_lever_kind { LEVER_NONE, LEVER_POWER, LEVER_CLOCKS, LEVER_APP_CLOCKS };

struct gpu_lever {
    enum gpu_lever_kind kind;
    double floor, top; /* what may be set: watts or MHz */
    double usual;      /* after a reset: the default limit, the highest clock, the default application clock */
    double memory_mhz; /* application clocks come in pairs: the memory's, which stays as it is */
    unsigned steps;    /* clocks that exist, highest first; 0: any value */
    uint16_t step_mhz[GRAPHICS_CLOCKS_MAX];
    char why[96]; /* why this kind and no better one */
};

/* What the card can do, by reading only: power limit, else locked clocks, else application clocks, else nothing. */
void gpu_lever_find(struct gpu *g, struct gpu_lever *ret);

/* What is asked for now. Locked clocks cannot be read: -ENOTSUP. */
int gpu_lever_get(struct gpu *g, const struct gpu_lever *l, double *ret) MUST_CHECK;

/* The value that setting v would really ask for: within floor and top, and on the list of clocks. */
double gpu_lever_fit(const struct gpu_lever *l, double v);

/* Sets the limit; top or more of a clock takes the lock away. -EACCES where this process may not. */
int gpu_lever_set(struct gpu *g, const struct gpu_lever *l, double v) MUST_CHECK;

/* Back to what a freshly loaded driver has. */
int gpu_lever_reset(struct gpu *g, const struct gpu_lever *l) MUST_CHECK;

const char *gpu_lever_name(enum gpu_lever_kind kind); /* "power limit" */
const char *gpu_lever_unit(enum gpu_lever_kind kind); /* "W" */
