/* When to look at a GPU's process list again, between the rounds: often for a moment after something announced a new
 * process (its device file was opened, a container started), at a base rate that the node may raise while it has no other
 * way to learn of containers, else not at all. Looks that find nothing are paid from a purse that fills slowly, so that
 * somebody who opens the device all day (a monitor in a loop) costs next to nothing.
 *
 * While a process initialises CUDA the driver holds a lock that every look waits for, busily (docs/tested-hardware.md). How
 * long that takes is much the same each time, so it is learnt, a card at a time, from those whose opening was told with their
 * pid: from one's first opening until shortly before its like were listed there is hardly a look, and around that moment there
 * are many. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HUNT_COMERS 16
#define HUNT_PAST 8

/* One that opened the device file and is not listed yet. */
struct hunt_comer {
    uint32_t pid; /* 0: a free place */
    int64_t opened_ns, until_ns;
};

struct hunt {
    int64_t until_ns;    /* looks often until then */
    int64_t armed_ns;    /* when somebody without a pid was last announced */
    int64_t found_ns;    /* when one was last found; 0: never */
    int64_t looked_ns;   /* when it last looked */
    int64_t purse_ns[2]; /* CPU time that looks may cost: for whoever may come, and for those who opened the file */
    int64_t filled_ns;
    int64_t cost_ns; /* of one look, about */
    int64_t base_ns; /* looks at least so often; 0: the rounds are enough */
    bool is_opening; /* it was armed by nothing better */
    struct hunt_comer comer[HUNT_COMERS];
    uint32_t learnt;            /* ever */
    int64_t took_ns[HUNT_PAST]; /* from the opening until it was listed, the newest of them */
};

void hunt_begin(struct hunt *h, int64_t now_ns);

/* Somebody is coming, within for_ns. is_opening: all that is known is that a device file was opened, which a listed process may
 * have done as well. */
void hunt_arm(struct hunt *h, bool is_opening, int64_t now_ns, int64_t for_ns);

/* This process opened the device file and is not in the list. */
void hunt_expect(struct hunt *h, uint32_t pid, int64_t now_ns, int64_t for_ns);

/* It has ended without having been listed: a program that only asks the driver something, as monitors do all day. */
void hunt_gone(struct hunt *h, uint32_t pid);

/* When to look next; INT64_MAX: no need. */
int64_t hunt_next_ns(const struct hunt *h, int64_t now_ns);

/* A look showed a process that had not been there: before hunt_looked. */
void hunt_found(struct hunt *h, uint32_t pid, int64_t now_ns);

/* It looked, that took so long, and there was a process that had not been there. */
void hunt_looked(struct hunt *h, int64_t now_ns, int64_t took_ns, bool has_found);
