/* Whether a GPU is there, judged from when it last answered. Pure: the sampler asks after every round, and once a
 * second from a thread that no driver call can block. */
#pragma once

#include <stdint.h>

#include "model/ring.h"

struct health {
    int64_t asked_ns; /* a round is under way since then; 0: none */
    int64_t good_ns;  /* the last round that brought anything; 0: never */
    int64_t first_ns; /* when watching began */
    bool has_failed;  /* the last round brought nothing */
    bool says_lost;   /* the driver said so in the last round */
    bool is_fenced;   /* not ours to ask */
    bool is_forbidden;
};

enum device_state health_state(const struct health *h, int64_t now_ns, int64_t answer_ns, int64_t lost_ns);
