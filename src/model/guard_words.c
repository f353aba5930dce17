#include "model/guard_words.h"

#include <math.h>

static const struct {
    const char *words, *unit;
} levers[] = {
    [GUARD_BY_NONE] = {"none",               ""   },
    [GUARD_BY_POWER] = {"power limit",        "W"  },
    [GUARD_BY_CLOCKS] = {"locked clocks",      "MHz"},
    [GUARD_BY_APP_CLOCKS] = {"application clocks", "MHz"},
};

const char *guard_mode_word(const struct ring_guard *g) {
    static const char *const words[] = {
        [RING_GUARD_OFF] = "off", [RING_GUARD_OBSERVES] = "observes", [RING_GUARD_ACTS] = "acts"};
    return g->mode < ARRAY_LEN(words) ? words[g->mode] : "?";
}

const char *guard_lever_words(const struct ring_guard *g) {
    return g->lever < ARRAY_LEN(levers) ? levers[g->lever].words : "?";
}

const char *guard_unit(const struct ring_guard *g) { return g->lever < ARRAY_LEN(levers) ? levers[g->lever].unit : ""; }

const char *guard_sensor_word(enum guard_sensor s) {
    static const char *const words[] = {[GUARD_CORE] = "core", [GUARD_MEMORY] = "memory", [GUARD_MARGIN] = "margin"};
    return words[s];
}

bool guard_is_low(const struct ring_guard *g) { return g->lever != GUARD_BY_NONE && g->limit < g->baseline - 0.5; }

const char *guard_short_reason(const struct ring_guard *g) {
    static const char *const words[] = {[GUARD_CALM] = "calm",
                                        [GUARD_HOT_CORE] = "core hot",
                                        [GUARD_HOT_MEMORY] = "memory hot",
                                        [GUARD_LOW_MARGIN] = "margin low",
                                        [GUARD_BLIND] = "blind",
                                        [GUARD_COOLED] = "cooled"};
    if (guard_is_low(g) && g->held_by == RING_HELD_BY_HAND) return "by hand";
    if (guard_is_low(g) && g->held_by == RING_HELD_BY_BUDGET) return "budget";
    return g->reason < ARRAY_LEN(words) ? words[g->reason] : "?";
}

double guard_room_c(const struct ring_guard *g, enum guard_sensor s) {
    double room = g->target[s] - g->reading[s];
    return s == GUARD_MARGIN ? -room : room;
}

/* The input that the guard itself names: only it knows which one it went by. */
static bool is_named(const struct ring_guard *g, enum guard_sensor *ret) {
    switch (g->reason) {
    case GUARD_HOT_CORE: *ret = GUARD_CORE; return true;
    case GUARD_HOT_MEMORY: *ret = GUARD_MEMORY; return true;
    case GUARD_LOW_MARGIN: *ret = GUARD_MARGIN; return true;
    case GUARD_BLIND:
        for (int s = 0; s < GUARD_SENSORS; s++) {
            *ret = (enum guard_sensor)s;
            if (!isnan(g->target[s]) && isnan(g->reading[s])) return true;
        }
        return false;
    default: return false;
    }
}

bool guard_worst(const struct ring_guard *g, enum guard_sensor *ret) {
    double least = INFINITY;
    if (is_named(g, ret) && !isnan(g->target[*ret])) return true;
    for (int s = 0; s < GUARD_SENSORS; s++) {
        double room = guard_room_c(g, (enum guard_sensor)s);
        if (isnan(room) || room >= least) continue;
        least = room;
        *ret = (enum guard_sensor)s;
    }
    return least < INFINITY;
}
