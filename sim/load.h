/* What runs on a card over one step, summed over its tasks: how busy each unit is. And what each kind of task asks. */
#pragma once

#include "sim/shm_state.h"
#include "sim/wire.h"

struct load {
    int contexts;    /* processes that hold the card open */
    int graphics;    /* of them, with graphics contexts */
    double busy;     /* share of the time that any kernel runs: 0 to 1 */
    double core;     /* activity of the cores, as power sees it: 1 is matrix products without a pause */
    double swing;    /* how much the power of this work jitters, weighted by core */
    double mem_util; /* as GetUtilizationRates counts it */
    double unit[UNIT_COUNT];
    double pcie_tx, pcie_rx, nvlink_tx, nvlink_rx; /* bytes a second */
};

struct kind {
    const char *name, *help;
    double util; /* share of its time that a kernel runs, as GetUtilizationRates counts it */
    double core, swing, mem_util;
    double clock_bound; /* 1: speed follows the core clock; 0: it does not care */
    double unit[UNIT_COUNT];
    double pcie_tx, pcie_rx, nvlink_tx, nvlink_rx;
    int graphics;
};

extern const struct kind kinds[KIND_COUNT];

/* The kind called `name`, or -1. */
int kind_by_name(const char *name);

/* Adds `share` (0 to 1) of a card spent on kind k. */
void load_add(struct load *l, enum wire_kind k, double share);
