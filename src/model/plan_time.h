/* What each GPU is taken for, and when. For plan*.c alone. */
#pragma once

#include "model/plan.h"

enum slot_kind { SLOT_RUN, SLOT_GIVEN, SLOT_KEPT, SLOT_WINDOW }; /* given: in this pass */

struct slot {
    int64_t from, to; /* to: PLAN_NEVER where nobody knows */
    uint64_t bytes;   /* 0: all of it */
    uint32_t who;     /* a run, or the job that has it or that it is kept for */
    uint32_t user, next;
    uint8_t kind;
};

/* A list of slots for each GPU, in no order. */
struct timeline {
    uint32_t *first; /* by GPU; PLAN_NONE: nothing */
    struct slot *slot;
    size_t count, cap, gpus_cap;
};

void *plan_grow(void *array, size_t *cap, size_t need, size_t size);
void timeline_done(struct timeline *t);
void timeline_clear(struct timeline *t, uint32_t gpus);
void timeline_copy(struct timeline *to, const struct timeline *from, uint32_t gpus);
void timeline_add(struct timeline *t, uint32_t gpu, struct slot s);
void timeline_drop_kept(struct timeline *t, uint32_t gpus);
/* a + b, where either may be PLAN_NEVER */
int64_t plan_sum(int64_t a, int64_t b);
