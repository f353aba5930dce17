#include "bench/guard_scenarios.h"

#include <math.h>

#define TROUBLE_S 200.0
#define WARMING_S 60.0
#define FAILING_S 10.0 /* fans run down, filters clog slower */

static bool square(double t, double period_s) { return fmod(t, period_s) < period_s / 2; }

static void good_cooling(const struct rig_scenario *sc, double t, struct rig_world *w) {}
static void weak_cooling(const struct rig_scenario *sc, double t, struct rig_world *w) { w->cooling = 2.4; }
static void poor_fan(const struct rig_scenario *sc, double t, struct rig_world *w) { w->cooling = 1.8; }
static void dusty(const struct rig_scenario *sc, double t, struct rig_world *w) { w->cooling = 1.6; }
static void half_cooling(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->cooling = t < TROUBLE_S ? 1.3 : 2.6;
}
static void warm_air(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->cooling = 1.6;
    w->air_c = 27 + 15 * fmin(1, fmax(0, (t - TROUBLE_S) / WARMING_S));
}
static void fan_stops(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->cooling = 1.3;
    w->fans_dead = t >= TROUBLE_S ? 1 : 0;
}
static void fans_stop(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->fans_dead = t >= TROUBLE_S ? ~0u : 0;
}
static void square_load(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->cooling = 2.6;
    w->demand = w->demand > 0 && square(t - RIG_LOAD_S, sc->period_s);
}
static void hot_air_shared(const struct rig_scenario *sc, double t, struct rig_world *w) { w->cooling = 1.6; }
static void sensor_lost(const struct rig_scenario *sc, double t, struct rig_world *w) { w->is_blind = t >= TROUBLE_S; }
static void budget_halved(const struct rig_scenario *sc, double t, struct rig_world *w) {
    w->cooling = 1.6;
    w->budget_w = t < TROUBLE_S ? 5600 : 2800;
}
static void toy_troubles(const struct rig_scenario *sc, double t, struct rig_world *w) {
    const struct toy_traits *is = &sc->toy;
    w->cooling = 1 + (is->cooling - 1) * fmin(1, fmax(0, (t - TROUBLE_S) / FAILING_S));
    w->air_c = 27 + is->air_rise_c * fmin(1, fmax(0, (t - TROUBLE_S) / WARMING_S));
    if (is->period_s > 0) w->demand = w->demand > 0 && square(t - RIG_LOAD_S, is->period_s);
}

/* clang-format off */
#define AT_LOAD .trouble_s = RIG_LOAD_S
#define AT_TROUBLE .trouble_s = TROUBLE_S
const struct rig_scenario guard_scenarios[] = {
    {"idle to full load, well cooled",  "h200",    84, 1, good_cooling,   1, AT_LOAD},
    {"idle to full load, weak cooling", "h200",    84, 1, weak_cooling,   1, AT_LOAD},
    {"the same, power told as 1 s mean","h200",    84, 1, weak_cooling,   1, AT_LOAD, .is_averaged = true},
    {"the margin is the worst input",   "h200",    84, 1, weak_cooling,   1, AT_LOAD, .has_margin = true},
    {"cooling loses half its power",    "h200",    84, 1, half_cooling,   2, AT_TROUBLE},
    {"air 15 C warmer in a minute",     "h200",    84, 1, warm_air,       1, .trouble_s = TROUBLE_S + WARMING_S},
    {"one of two fans stops",           "rtx4090", 80, 1, fan_stops,      2, AT_TROUBLE},
    {"the fans stop",                   "rtx4090", 80, 1, fans_stop,      2, AT_TROUBLE},
    {"square-wave load, 1 s",           "h200",    84, 1, square_load,    1, AT_LOAD, .period_s = 1.01},
    {"square-wave load, 4 s",           "h200",    84, 1, square_load,    1, AT_LOAD, .period_s = 4},
    {"square-wave load, 10 s",          "h200",    84, 1, square_load,    1, AT_LOAD, .period_s = 10},
    {"square-wave load, 40 s",          "h200",    84, 1, square_load,    1, AT_LOAD, .period_s = 40},
    {"40 s, power told as 1 s mean",    "h200",    84, 1, square_load,    1, AT_LOAD, .period_s = 40, .is_averaged = true},
    {"eight share hot air",             "h200",    84, 8, hot_air_shared, 1, AT_LOAD},
    {"sensor lost under load",          "h200",    84, 1, sensor_lost,    1, AT_TROUBLE, .is_blind = true},
    {"eight, their budget halved",      "h200",    84, 8, budget_halved,  1, AT_TROUBLE, .has_budget = true},
    {"clocks only",                     "t1000",   80, 1, poor_fan,       1, AT_LOAD},
    {"application clocks only",         "p100",    77, 1, dusty,          1, AT_LOAD, .control = GUARD_BY_APP_CLOCKS},
};
/* clang-format on */

const size_t guard_scenario_count = sizeof guard_scenarios / sizeof *guard_scenarios;

struct rig_scenario guard_random_scenario(uint64_t seed) {
    struct toy t;
    toy_draw(&t, seed);
    bool is_failing = t.is.cooling > 1;
    return (struct rig_scenario){
        .name = "random",
        .target_c = t.is.target_c,
        .cards = 1,
        .at = toy_troubles,
        .allowed_c = is_failing ? 2 : 1,
        .trouble_s = is_failing            ? TROUBLE_S
                     : t.is.air_rise_c > 0 ? TROUBLE_S + WARMING_S
                                           : RIG_LOAD_S,
        .period_s = t.is.period_s,
        .seed = seed,
        .toy = t.is,
    };
}
