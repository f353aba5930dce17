/* Who comes before whom, handed out one after the other. For plan*.c alone. */
#pragma once

#include "model/plan.h"

struct plan;

struct order_user {
    int64_t due_ns;                /* by which his first must have had its turn */
    double charge_s, step, past_s; /* past: of what went past his first, and is not counted before that had its turn */
    bool is_past;                  /* that was said of one that waits on */
    uint32_t first;                /* of his jobs of the class that had no turn */
};

struct order {
    int priority;             /* of the class that is walked */
    struct line_class *class; /* NULL: none yet */
    uint32_t *due;            /* users whose first has waited too long, the longest first */
    uint32_t dues, due_at;
    double even;      /* GPUs that each user would hold, if all held the same */
    uint32_t list_at; /* in its list */
    uint32_t *heap;   /* users with jobs in the class */
    uint32_t heap_len;
    struct order_user *user;
    uint32_t job;    /* that was handed out last */
    bool is_by_list; /* and from where */
    bool is_by_due;
    bool is_heap; /* not yet while urgent ones are handed out */
    size_t heap_cap, due_cap, users_cap;
};

void order_begin(struct plan *p);
uint32_t order_next(struct plan *p); /* PLAN_NONE: there are no more */
/* Whether the one that was handed out is his first, and not for its deadline. */
bool order_is_turn(const struct plan *p);
/* gpus: what the one that was handed out counts for; is_given: it has them now. */
void order_took(struct plan *p, double gpus, bool is_given);
void order_done(struct order *o);
