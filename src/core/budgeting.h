/* The power budget in the sampler: its main thread only shares it out (model/budget), the cards' own threads set. How
 * urgent a card's work is its processes say: by the least nice of them, as the kernel has it. */
#pragma once

#include "core/watch.h"
#include "model/budget.h"

struct budgeting { /* zero is a fresh one */
    struct budget_state state;
    struct budget_plan plan;
    int priority[GPU_MAX];
    int64_t priority_ns; /* when they were last looked at */
    bool is_on;
};

/* Called a few times a second. inventory: of the board's devices. budget_w: for these watches; 0 or less: none. */
void budgeting_step(struct budgeting *b, struct watch *watches, unsigned n, const struct inventory *inventory,
                    double budget_w, int64_t now_ns);
