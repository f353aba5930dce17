/* What `gpumgr simulate` is made of: where the jobs come from, and what is shown of the result. For simulate*.c. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "client/output.h"
#include "model/simulate.h"

enum { SIMULATE_POLICIES_MAX = 16, SIMULATE_POINTS = 96 };

struct simulate_view {
    const char *source; /* "philly-slo.csv"; "this machine's history" */
    const struct trace *trace;
    struct simulate_setup setup; /* policy: of each result */
    const struct plan_policy *policy[SIMULATE_POLICIES_MAX];
    struct simulate_result result[SIMULATE_POLICIES_MAX];
    size_t results;
    uint32_t shares;       /* jobs of this machine that had a part of a GPU: they are not in the trace */
    uint32_t reservations; /* that this machine has: they are not played */
};

void simulate_json(const struct simulate_view *v, struct buf *b);
void simulate_table(const struct simulate_view *v, const struct screen *s, struct buf *b);
void simulate_chart(const struct simulate_view *v, const struct screen *s, struct buf *b);

/* The jobs that this machine's server remembers, and its machines where they are not given: 0 in the setup. */
int simulate_history(const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) MUST_CHECK;
