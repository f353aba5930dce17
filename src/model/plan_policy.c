#include "model/plan_policy.h"

#include <string.h>

#include "base/auto.h"

const struct plan_policy plan_policies[] = {
    {"fair",     "who waits too long, deadlines that can only just be kept, then users by what they had lately; backfill",
     PLAN_FAIR,                                                                                                                           true },
    {"fifo",     "first come, first served; nobody goes past",                                                             PLAN_ARRIVAL,  false},
    {"backfill", "first come, first served; others go past where they delay nobody",                                       PLAN_ARRIVAL,  true },
    {"edf",      "the earliest deadline first, those without one last; backfill",                                          PLAN_DEADLINE, true },
    {"sjf",      "the shortest expected time first, those of unknown time last; backfill",                                 PLAN_SHORTEST, true },
};
const size_t plan_policies_count = ARRAY_LEN(plan_policies);

const struct plan_policy *plan_policy_find(const char *name) {
    for (size_t i = 0; i < plan_policies_count; i++)
        if (strcmp(plan_policies[i].name, name) == 0) return &plan_policies[i];
    return NULL;
}

const char *plan_policy_names(void) { return "fair, fifo, backfill, edf, sjf"; }
