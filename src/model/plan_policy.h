/* How a queue may be run: which order, and whether anybody goes past. One table for the server and for `gpumgr simulate`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum plan_order { PLAN_FAIR, PLAN_ARRIVAL, PLAN_DEADLINE, PLAN_SHORTEST };

struct plan_policy {
    const char *name, *meaning;
    enum plan_order order; /* within a priority */
    bool is_backfill;      /* a job behind one that waits may start where it is in nobody's way */
};

extern const struct plan_policy plan_policies[]; /* the first is the usual one */
extern const size_t plan_policies_count;

const struct plan_policy *plan_policy_find(const char *name); /* NULL: there is none of that name */
/* Their names, for a sentence: "fair, fifo, ..." */
const char *plan_policy_names(void);
