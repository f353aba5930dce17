/* When to look at a GPU's process list again, between the rounds: often for a moment after something announced a new
 * process (its device file was opened, a container started), at a base rate that the node may raise while it has no other
 * way to learn of containers, else not at all. Looks that find nothing are paid from a purse that fills slowly, so that
 * somebody who opens the device all day (a monitor in a loop) costs next to nothing. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hunt {
    int64_t until_ns;  /* looks often until then */
    int64_t armed_ns;  /* when something was last announced */
    int64_t found_ns;  /* when one was last found; 0: never */
    int64_t looked_ns; /* when it last looked */
    int64_t purse_ns;  /* CPU time that looks may cost */
    int64_t filled_ns;
    int64_t cost_ns; /* of one look, about */
    int64_t base_ns; /* looks at least so often; 0: the rounds are enough */
};

void hunt_begin(struct hunt *h, int64_t now_ns);

/* Something is coming, within for_ns. */
void hunt_arm(struct hunt *h, int64_t now_ns, int64_t for_ns);

/* When to look next; INT64_MAX: no need. */
int64_t hunt_next_ns(const struct hunt *h, int64_t now_ns);

/* It looked, that took so long, and there was a process that had not been there. */
void hunt_looked(struct hunt *h, int64_t now_ns, int64_t took_ns, bool has_found);
