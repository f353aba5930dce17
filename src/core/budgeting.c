#include "core/budgeting.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sys/resource.h>

#include "base/clock.h"

#define PRIORITY_NS NS_PER_S

/* Nobody is there, or nobody can be asked: as if it were not nice at all. A process that ended meanwhile says nothing. */
static int priority_of(const struct watch *w) {
    static struct ring_processes p; /* large, and only the main thread comes here */
    int least = INT_MAX;
    if (w->device < 0 || !ring_processes(&w->common->board->ring, (unsigned)w->device, &p)) return 0;
    for (uint32_t i = 0; i < p.count && i < RING_PROCESSES_MAX; i++) {
        errno = 0;
        int nice = getpriority(PRIO_PROCESS, p.of[i].pid);
        if (errno == 0 && nice < least) least = nice;
    }
    return least == INT_MAX ? 0 : -least;
}

/* A card as the budget sees it. One whose power limit is not ours to set counts at the one it has, else at what it draws;
 * one that has not been opened at its default. */
static struct budget_card card_of(const struct watch *w, const struct inventory *inventory) {
    const struct guarding *g = &w->guard;
    if (!w->is_guarded) {
        double usual_mw = w->device >= 0 ? (double)inventory[w->device].limit_default_mw : 0;
        return (struct budget_card){.enforced_w = fmax(usual_mw / 1e3, 0), .draw_w = NAN};
    }
    double in_force = g->in_force, draw_w = g->draw_w;
    if (g->lever.kind != LEVER_POWER)
        return (struct budget_card){.enforced_w = !isnan(in_force) ? in_force
                                                  : !isnan(draw_w) ? draw_w
                                                                   : 0,
                                    .draw_w = draw_w};
    return (struct budget_card){.min_w = g->lever.floor,
                                .baseline_w = fmin(g->wish, g->lever.top),
                                .enforced_w = in_force,
                                .draw_w = draw_w,
                                .wants_more = g->is_held,
                                .can_set = g->acts,
                                .is_there = board_is_there(w->common->board, (unsigned)w->device)};
}

static void cap_set(struct watch *w, double limit_w) {
    w->guard.cap = limit_w;
    watch_look(w);
}

static void end(struct budgeting *b, struct watch *watches, unsigned n) {
    if (!b->is_on) return;
    *b = (struct budgeting){0};
    for (unsigned i = 0; i < n; i++)
        if (watches[i].is_guarded) cap_set(&watches[i], INFINITY);
}

void budgeting_step(struct budgeting *b, struct watch *watches, unsigned n, const struct inventory *inventory,
                    double budget_w, int64_t now_ns) {
    struct budget_card cards[GPU_MAX];
    if (budget_w <= 0) {
        end(b, watches, n);
        return;
    }
    bool is_due = !b->is_on || now_ns - b->priority_ns >= PRIORITY_NS;
    if (is_due) b->priority_ns = now_ns;
    b->is_on = true;
    for (unsigned i = 0; i < n; i++) {
        if (is_due) b->priority[i] = priority_of(&watches[i]);
        cards[i] = card_of(&watches[i], inventory);
        cards[i].priority = b->priority[i];
    }
    budget_step(&b->state, cards, n, budget_w, now_ns, &b->plan);
    for (size_t k = 0; k < b->plan.changes; k++) cap_set(&watches[b->plan.change[k].card], b->plan.change[k].limit_w);
}
