/* The energy counter without its price: reading it costs milliseconds, so it is read now and then and carried on with
 * measured power in between. The result never runs backwards: when the carried figure is ahead of the counter it
 * stands still until the counter has caught up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct energy {
    double joules;  /* what is shown */
    double carried; /* since the counter was last read */
    double counter; /* as last read */
    double last_w;
    int64_t last_ns; /* of the last power reading, 0: none yet */
    bool has_counter;
};

/* A power reading; returns the energy so far. A gap longer than max_gap_ns is not integrated over: nobody knows what
 * happened in it. */
double energy_step(struct energy *en, double power_w, int64_t now_ns, int64_t max_gap_ns);

/* The driver's own counter was read. */
double energy_correct(struct energy *en, double counter_j);
