#include "client/cards_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/direct.h"
#include "client/gpu_list.h"
#include "client/rings.h"
#include "client/sim.h"
#include "model/budget.h"

enum { PATIENCE_MS = 5000 };

double cards_hottest_c(const struct inventory *i) {
    if (i->temp_slowdown_c > 0) return i->temp_slowdown_c;
    return i->temp_gpu_max_c > 0 ? i->temp_gpu_max_c : 110;
}

static double hottest_memory_c(const struct inventory *i) {
    return i->temp_memory_max_c > 0 ? i->temp_memory_max_c : 120;
}

/* Puts where a value came from before what is wrong with it. */
static int blame(const struct loaded *l, const char *key, struct error *e) {
    const struct option *o = option_find(settings_table, settings_count, key);
    const char *from = l->of[o - settings_table].from;
    size_t n = strlen(from);
    return *from ? fail_in(e, -EINVAL, "%s%s", n > 80 ? "..." : "", n > 80 ? from + n - 80 : from) : -EINVAL;
}

static int check_target(const struct loaded *l, const char *key, double target_c, double most_c,
                        const struct view_device *d, struct error *e) {
    if (isnan(target_c) || (target_c >= CARDS_LEAST_C && target_c <= most_c)) return 0;
    fail(e, -EINVAL, "%s: %g is not from %g to %g, which is what GPU %d (%.40s) allows", key, target_c, CARDS_LEAST_C,
         most_c, (int)d->inventory.index, view_short_name(d));
    return blame(l, key, e);
}

/* As the budget sees a card before anything was read back; one whose limit cannot be set counts at its default. */
static struct budget_card budget_card_of(const struct inventory *i) {
    double usual_w = i->limit_default_mw > 0 ? i->limit_default_mw / 1e3 : 0;
    return (struct budget_card){
        .min_w = i->limit_min_mw > 0 ? i->limit_min_mw / 1e3 : 0,
        .baseline_w = usual_w,
        .enforced_w = usual_w,
        .draw_w = NAN,
        .can_set = i->control & CONTROL_POWER,
        .is_there = true,
    };
}

static int check_budget(const struct loaded *l, const struct budget_card *cards, size_t n, struct error *e) {
    if (l->values.budget_w == 0 || budget_check(cards, n, l->values.budget_w, e) == 0) return 0;
    fail_in(e, -EINVAL, "guard.budget_w");
    return blame(l, "guard.budget_w", e);
}

int cards_check(const struct loaded *l, const struct view *v, struct error *e) {
    struct budget_card cards[GPU_MAX];
    size_t n = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct view_device *d = &v->of[i];
        bool is_known = *d->inventory.uuid || *d->inventory.name;
        if (view_is_instance(d) || !is_known || !gpu_list_has(l->values.gpus, v, i)) continue;
        int r = check_target(l, "guard.hot_c", l->values.hot_c, cards_hottest_c(&d->inventory), d, e);
        if (r == 0) r = check_target(l, "guard.memory_c", l->values.memory_c, hottest_memory_c(&d->inventory), d, e);
        if (r < 0) return r;
        if (n < GPU_MAX) cards[n++] = budget_card_of(&d->inventory);
    }
    return check_budget(l, cards, n, e);
}

static bool needs_cards(const struct settings *s) {
    return !isnan(s->hot_c) || !isnan(s->memory_c) || s->budget_w > 0 || strcmp(s->gpus, "all") != 0;
}

static void close_direct(struct direct *d) { direct_close(d); }

static int check_driver(const struct loaded *l, struct error *e) {
    AUTO(close_direct) struct direct d;
    AUTO(view_done) struct view v = {0};
    int r = direct_open(&d, l->values.gpu_library, PATIENCE_MS, e);
    if (r < 0) return r;
    if (direct_look(&d, DIRECT_INVENTORY, e) < 0) return 0;
    direct_fill(&d, &v);
    r = gpu_list_check(l, &v, e);
    return r < 0 ? r : cards_check(l, &v, e);
}

int cards_check_start(const struct loaded *l, struct error *e) {
    AUTO(view_done) struct view v = {0};
    if (!needs_cards(&l->values)) return 0;
    if (!l->values.sim) return check_driver(l, e);
    sim_view(l->values.sim_model, l->values.sim, &v);
    int r = gpu_list_check_indices(l, e);
    return r < 0 ? r : cards_check(l, &v, e);
}

int cards_check_running(const struct loaded *l, struct error *e) {
    AUTO(view_done) struct view v = {0};
    AUTO(rings_close) struct rings rings = {0};
    struct instance i;
    struct error none;
    if (!needs_cards(&l->values) || instance_find(l->values.dir, &i, &none) < 0 || !instance_holder(&i)) return 0;
    rings_open(&rings, &i);
    rings_fill(&rings, &v);
    return cards_check(l, &v, e);
}
