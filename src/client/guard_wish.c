#include <errno.h>
#include <stdio.h>

#include "client/amount.h"
#include "client/cards_check.h"
#include "client/guard.h"
#include "model/guard_words.h"

enum { SECOND_MS = 1000, HOUR_MS = 3600 * 1000 };

static const struct {
    const char *flag, *unit;
    size_t word; /* where it lies in struct guard_words */
} kinds[] = {
    [WISH_LIMIT_W] = {"limit",  "W",   offsetof(struct guard_words, limit) },
    [WISH_CLOCK_MHZ] = {"clock",  "MHz", offsetof(struct guard_words, clock) },
    [WISH_TARGET_C] = {"target", "C",   offsetof(struct guard_words, target)},
};

static const char *word_of(const struct guard_words *w, size_t kind) {
    return *(const char *const *)((const char *)w + kinds[kind].word);
}

int guard_wish_parse(const struct guard_words *w, struct guard_wish *ret, struct error *e) {
    struct guard_wish wish = {.for_ms = HOUR_MS};
    int given = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!word_of(w, i)) continue;
        wish.what = i;
        given++;
    }
    if (given != 1) return fail(e, -EINVAL, "set: one of --limit WATTS, --clock MHZ and --target DEGREES is needed");
    const char *flag = kinds[wish.what].flag;
    int r = amount_parse(flag, word_of(w, wish.what), kinds[wish.what].unit, &wish.value, e);
    if (r == 0 && w->for_time) r = amount_time("for", w->for_time, SECOND_MS, 168 * HOUR_MS, &wish.for_ms, e);
    if (r == 0 && w->confirm) r = amount_time("confirm", w->confirm, SECOND_MS, HOUR_MS, &wish.confirm_ms, e);
    if (r == 0 && wish.confirm_ms > wish.for_ms)
        r = fail(e, -EINVAL, "--confirm: longer than --for: there would be nothing left to confirm");
    if (r == 0) *ret = wish;
    return r;
}

static int check_lever(const struct guard_wish *w, const struct view_device *d, struct error *e) {
    const struct ring_guard *g = &d->guard;
    int index = d->inventory.index;
    if (g->lever == GUARD_BY_NONE)
        return fail(e, -EINVAL, "GPU %d: nothing of this card can be set (%s)", index, g->why);
    if (w->what == WISH_LIMIT_W && g->lever != GUARD_BY_POWER)
        return fail(e, -EINVAL, "GPU %d: no power limit of this card can be set, its guard moves %s: give --clock",
                    index, guard_lever_words(g));
    if (w->what == WISH_CLOCK_MHZ && g->lever == GUARD_BY_POWER)
        return fail(e, -EINVAL, "GPU %d: its guard moves the power limit, not the clocks: give --limit", index);
    return 0;
}

int guard_wish_check(const struct guard_wish *w, const struct view_device *d, struct error *e) {
    const struct ring_guard *g = &d->guard;
    int index = d->inventory.index;
    if (!d->has_guard)
        return fail(e, -EAGAIN, "GPU %d: nothing is known of its guard: it is off, or not ready yet", index);
    if (g->mode == RING_GUARD_OFF) return fail(e, -EAGAIN, "GPU %d: its guard is off (guard.mode)", index);
    int r = check_lever(w, d, e);
    if (r < 0) return r;
    double least = w->what == WISH_TARGET_C ? CARDS_LEAST_C : g->floor;
    double most = w->what == WISH_TARGET_C ? cards_hottest_c(&d->inventory) : g->baseline;
    if (w->value >= least && w->value <= most) return 0;
    return fail(e, -EINVAL, "GPU %d: --%s %g is not from %g to %g %s (%s)", index, kinds[w->what].flag, w->value, least,
                most, kinds[w->what].unit,
                w->what == WISH_TARGET_C ? "where the card slows down by itself"
                                         : "its lowest setting to its baseline");
}
