/* Who used a GPU, and for how much: a stretch of time and its energy divided among the processes that were on it. By the
 * measured share of the SMs; of those without one, what the others left of the measured use, by memory. The power a card draws
 * with nothing to do is split evenly among those who hold it, and is nobody's when nobody does. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct share_holder {
    double sm;             /* 0 to 1; NaN: not measured */
    uint64_t memory_bytes; /* UINT64_MAX: not known */
    /* what comes out */
    double gpu_seconds, energy_joules;
};

struct share_gpu {
    double seconds;   /* how long this stretch was */
    double energy_j;  /* that the card took in it; NaN: not known */
    double idle_w;    /* drawn with nothing to do; NaN: not known, which counts as 0 */
    double busy;      /* 0 to 1: time in which a kernel ran; NaN: not known */
    double unowned_j; /* comes out: energy of nobody */
};

void share_split(struct share_gpu *g, struct share_holder *holders, size_t n);
