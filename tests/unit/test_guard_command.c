/* `gpumgr guard` without a guard: what people type, what a card can have, what is shown of what the ring says. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/amount.h"
#include "client/cards_check.h"
#include "client/gpu_pick.h"
#include "client/guard.h"
#include "client/text.h"
#include "model/guard_words.h"

#define COMPLAIN(...) (print_error(__VA_ARGS__), assert_true(0))

/* ---- amounts ---- */

static void amounts(void **state) {
    static const struct {
        const char *text, *unit;
        double want; /* NaN: refused */
    } rows[] = {
        {"500",                  "W",   500  },
        {"500W",                 "W",   500  },
        {"500 w",                "W",   500  },
        {"312.5W",               "W",   312.5},
        {"1400MHz",              "MHz", 1400 },
        {"1400mhz",              "MHz", 1400 },
        {"80C",                  "C",   80   },
        {"80°C",                "C",   80   },
        {"500MHz",               "W",   NAN  },
        {"500C",                 "W",   NAN  },
        {"80W",                  "C",   NAN  },
        {"500°W",               "W",   NAN  },
        {"5kW",                  "W",   NAN  },
        {"500WW",                "W",   NAN  },
        {"W",                    "W",   NAN  },
        {"",                     "W",   NAN  },
        {"-5",                   "W",   NAN  },
        {"+5",                   "W",   NAN  },
        {"1e3",                  "W",   NAN  },
        {"0x10",                 "W",   NAN  },
        {"inf",                  "W",   NAN  },
        {"nan",                  "W",   NAN  },
        {"1.2.3",                "W",   NAN  },
        {".",                    "W",   NAN  },
        {" 500",                 "W",   NAN  },
        {"99999999999999999999", "W",   NAN  },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        double got = 0;
        int r = amount_parse("limit", rows[i].text, rows[i].unit, &got, &e);
        if ((r < 0) != isnan(rows[i].want) || (r == 0 && got != rows[i].want))
            COMPLAIN("%s: %d, %g", rows[i].text, r, got);
        if (r < 0 && (r != -EINVAL || strncmp(e.text, "--limit: ", 9) != 0)) COMPLAIN("%s: %s", rows[i].text, e.text);
    }
}

static void times(void **state) {
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {
        {"1s",     1000   },
        {"90",     90000  },
        {"1500ms", 1500   },
        {"0.5m",   30000  },
        {"30m",    1800000},
        {"1h",     3600000},
        {"999ms",  -1     },
        {"0",      -1     },
        {"61m",    -1     },
        {"2h",     -1     },
        {"1d",     -1     },
        {"m",      -1     },
        {"",       -1     },
        {"-1s",    -1     },
        {"1S",     -1     },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        int64_t got = -1;
        int r = amount_time("for", rows[i].text, 1000, 3600000, &got, &e);
        if (got != rows[i].want || (r < 0) != (rows[i].want < 0))
            COMPLAIN("%s: %d, %lld", rows[i].text, r, (long long)got);
        if (r < 0) assert_non_null(strstr(e.text, "from 1s to 1h"));
    }
}

/* ---- wishes ---- */

static void wishes_on_the_command_line(void **state) {
    static const struct {
        const char *name;
        struct guard_words words;
        bool is_good;
    } rows[] = {
        {"a limit",                 {.limit = "500W"},                                      true },
        {"a clock for a while",     {.clock = "1400", .for_time = "30m"},                   true },
        {"a target, to confirm",    {.target = "80C", .confirm = "60s"},                    true },
        {"nothing",                 {.limit = NULL},                                        false},
        {"two at once",             {.limit = "500W", .target = "80C"},                     false},
        {"only a time",             {.for_time = "30m"},                                    false},
        {"the wrong unit",          {.clock = "500W"},                                      false},
        {"a time too long",         {.limit = "500W", .for_time = "169h"},                  false},
        {"confirmed after its end", {.limit = "500W", .for_time = "10s", .confirm = "11s"}, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct guard_wish wish;
        struct error e = {0};
        int r = guard_wish_parse(&rows[i].words, &wish, &e);
        if ((r == 0) != rows[i].is_good || (r < 0 && (r != -EINVAL || !*e.text)))
            COMPLAIN("%s: %s", rows[i].name, e.text);
    }
    struct guard_wish wish;
    struct error e;
    assert_int_equal(guard_wish_parse(&(struct guard_words){.limit = "500"}, &wish, &e), 0);
    assert_int_equal(wish.for_ms, 3600000);
    assert_int_equal(wish.confirm_ms, 0);
}

static struct view_device card(enum guard_control lever) {
    struct view_device d = {.has_guard = true};
    d.inventory.index = 3;
    d.inventory.parent = -1;
    d.inventory.temp_slowdown_c = 89;
    snprintf(d.inventory.name, sizeof d.inventory.name, "NVIDIA H200");
    d.guard = (struct ring_guard){
        .since_real_ns = 1,
        .mode = RING_GUARD_ACTS,
        .lever = lever,
        .target = {84, NAN, NAN},
        .reading = {81, NAN, NAN},
        .floor = lever == GUARD_BY_POWER ? 200 : 300,
        .baseline = lever == GUARD_BY_POWER ? 700 : 1530,
        .limit = lever == GUARD_BY_POWER ? 640 : 1530,
    };
    snprintf(d.guard.why, sizeof d.guard.why, "a reason");
    return d;
}

static void what_a_card_can_have(void **state) {
    static const struct {
        const char *name;
        enum guard_control lever;
        struct guard_wish wish;
        int want;
        const char *says;
    } rows[] = {
        {"a limit",                GUARD_BY_POWER,      {WISH_LIMIT_W, 500},    0,       NULL          },
        {"the floor",              GUARD_BY_POWER,      {WISH_LIMIT_W, 200},    0,       NULL          },
        {"the baseline",           GUARD_BY_POWER,      {WISH_LIMIT_W, 700},    0,       NULL          },
        {"below the floor",        GUARD_BY_POWER,      {WISH_LIMIT_W, 199},    -EINVAL, "200 to 700 W"},
        {"above the baseline",     GUARD_BY_POWER,      {WISH_LIMIT_W, 701},    -EINVAL, "200 to 700 W"},
        {"clocks of a power card", GUARD_BY_POWER,      {WISH_CLOCK_MHZ, 1000}, -EINVAL, "--limit"     },
        {"a clock",                GUARD_BY_CLOCKS,     {WISH_CLOCK_MHZ, 1000}, 0,       NULL          },
        {"an old card's clock",    GUARD_BY_APP_CLOCKS, {WISH_CLOCK_MHZ, 1000}, 0,       NULL          },
        {"a clock too high",       GUARD_BY_CLOCKS,     {WISH_CLOCK_MHZ, 1600}, -EINVAL, "300 to 1530" },
        {"power of a clock card",  GUARD_BY_CLOCKS,     {WISH_LIMIT_W, 500},    -EINVAL, "--clock"     },
        {"a target",               GUARD_BY_POWER,      {WISH_TARGET_C, 80},    0,       NULL          },
        {"a target too cold",      GUARD_BY_POWER,      {WISH_TARGET_C, 29},    -EINVAL, "30 to 89 C"  },
        {"a target too hot",       GUARD_BY_POWER,      {WISH_TARGET_C, 90},    -EINVAL, "30 to 89 C"  },
        {"no lever",               GUARD_BY_NONE,       {WISH_LIMIT_W, 500},    -EINVAL, "a reason"    },
        {"a target, no lever",     GUARD_BY_NONE,       {WISH_TARGET_C, 80},    -EINVAL, "a reason"    },
    };
    struct error e = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct view_device d = card(rows[i].lever);
        int r = guard_wish_check(&rows[i].wish, &d, &e);
        if (r != rows[i].want || (r < 0 && !strstr(e.text, rows[i].says)))
            COMPLAIN("%s: %d %s", rows[i].name, r, e.text);
        if (r < 0) assert_int_equal(strncmp(e.text, "GPU 3: ", 7), 0);
    }
    struct view_device d = card(GUARD_BY_POWER);
    d.guard.mode = RING_GUARD_OFF;
    assert_int_equal(guard_wish_check(&rows[0].wish, &d, &e), -EAGAIN);
    d.has_guard = false;
    assert_int_equal(guard_wish_check(&rows[0].wish, &d, &e), -EAGAIN);
}

/* ---- which GPU ---- */

static void add(struct view *v, int index, const char *uuid, int parent) {
    struct view_device *d = view_add(v);
    d->inventory.index = index;
    d->inventory.parent = parent;
    snprintf(d->inventory.uuid, sizeof d->inventory.uuid, "%s", uuid);
}

static void words_for_gpus(void **state) {
    static const struct {
        const char *word;
        int count, first; /* count 0: refused */
    } rows[] = {
        {"0",              1, 0},
        {"2",              1, 1},
        {"all",            2, 0},
        {"GPU-1f00aa",     1, 0},
        {"gpu-1f22",       1, 1},
        {"1f2",            1, 1},
        {"1F00AA",         1, 0},
        {"1f",             0, 0},
        {"GPU-",           0, 0},
        {"1",              0, 0},
        {"99999999999999", 0, 0},
        {"MIG-77",         0, 0},
        {"",               0, 0},
        {"ALL",            0, 0},
        {"-1",             0, 0},
    };
    AUTO(view_done) struct view v = {0};
    add(&v, 0, "GPU-1f00aa", -1);
    add(&v, 2, "GPU-1f22bb", -1);
    add(&v, 0, "MIG-77", 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gpu_picked got = {0};
        struct error e = {0};
        int r = gpu_pick(&v, rows[i].word, &got, &e);
        if ((r == 0) != (rows[i].count > 0) || (int)got.count != rows[i].count)
            COMPLAIN("%s: %s", rows[i].word, e.text);
        if (r == 0) assert_int_equal(got.of[0], rows[i].first);
    }
}

/* ---- what is shown ---- */

static void fill(struct view *v) {
    static const enum guard_control levers[] = {GUARD_BY_POWER, GUARD_BY_CLOCKS, GUARD_BY_APP_CLOCKS, GUARD_BY_NONE};
    v->boot_ns = 1000 * NS_PER_S;
    v->real_ns = 1700000000 * NS_PER_S;
    v->driver.state = DRIVER_OK;
    for (int i = 0; i < 8; i++) {
        struct view_device *d = view_add(v);
        *d = card(levers[i % 4]);
        d->inventory.index = i;
        d->state.state = DEVICE_OK;
        d->guard.since_real_ns = v->real_ns - 90 * NS_PER_S;
        d->guard.throttled_s = 4000;
        d->guard.reason = (uint64_t)(i % 6);
    }
    memset(v->of[5].inventory.name, 'n', 60);
    v->of[1].guard.target[GUARD_MEMORY] = 92;
    v->of[1].guard.reading[GUARD_MEMORY] = 95;
    v->of[1].guard.reason = GUARD_HOT_MEMORY;
    v->of[2].guard.reason = GUARD_LOW_MARGIN;
    v->of[2].guard.target[GUARD_MARGIN] = 3;
    v->of[2].guard.reading[GUARD_MARGIN] = 4;
    v->of[3].guard.mode = RING_GUARD_OBSERVES;
    v->of[4].guard.manual_until_ns = v->boot_ns + 1800 * NS_PER_S;
    v->of[4].guard.confirm_by_ns = v->boot_ns + 60 * NS_PER_S;
    v->of[6].has_guard = false;
    v->of[7].state.state = DEVICE_LOST;
}

static void a_table_that_fits(void **state) {
    static const char *const says[] = {"acts",
                                       "observes",
                                       "locked clocks",
                                       "81/84",
                                       "mem 95/92",
                                       "margin 4/3",
                                       "640/700 W",
                                       "1530/1530 MHz",
                                       "observes only: a reason",
                                       "set by hand until",
                                       "must be confirmed by",
                                       "nothing is said of its guard",
                                       "lost"};
    AUTO(view_done) struct view v = {0};
    fill(&v);
    for (int width = 80; width <= 200; width++) {
        AUTO(buf_done) struct buf b = {0};
        const struct screen screen = {.width = width, .has_utf8 = width & 1};
        guard_table(&v, &screen, &b);
        for (size_t i = 0; i < ARRAY_LEN(says); i++)
            if (!strstr(b.s, says[i])) COMPLAIN("%d columns: no \"%s\" in\n%s", width, says[i], b.s);
        char *rest = b.s;
        for (char *line; (line = strsep(&rest, "\n"));)
            if (text_width(line) > width) COMPLAIN("%d columns: %s", width, line);
    }
}

/* What the guard went by is shown, though another sensor may be nearer to its target by now. */
static void the_input_that_decides(void **state) {
    static const struct {
        const char *name;
        enum guard_reason reason;
        double core, memory, margin; /* readings; NaN: silent */
        enum guard_sensor want;
    } rows[] = {
        {"the least room",                   GUARD_CALM,       81,  80,  20,  GUARD_CORE  },
        {"the least room, memory",           GUARD_CALM,       60,  90,  20,  GUARD_MEMORY},
        {"the core decides",                 GUARD_HOT_CORE,   80,  90,  20,  GUARD_CORE  },
        {"the memory decides",               GUARD_HOT_MEMORY, 83,  88,  20,  GUARD_MEMORY},
        {"the margin decides",               GUARD_LOW_MARGIN, 83,  91,  7,   GUARD_MARGIN},
        {"the margin decides, not read now", GUARD_LOW_MARGIN, 83,  91,  NAN, GUARD_MARGIN},
        {"blind: the silent one",            GUARD_BLIND,      60,  NAN, 20,  GUARD_MEMORY},
        {"blind in the core",                GUARD_BLIND,      NAN, 90,  20,  GUARD_CORE  },
        {"cooled: the least room",           GUARD_COOLED,     60,  80,  4,   GUARD_MARGIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ring_guard g = {
            .reason = rows[i].reason, .target = {84,           92,             3             },
                 .reading = {rows[i].core, rows[i].memory, rows[i].margin}
        };
        enum guard_sensor got = GUARD_SENSORS;
        if (!guard_worst(&g, &got) || got != rows[i].want) COMPLAIN("%s: %d", rows[i].name, (int)got);
    }
    struct ring_guard none = {
        .reason = GUARD_LOW_MARGIN, .target = {NAN, NAN, NAN},
             .reading = {80,  80,  80 }
    };
    enum guard_sensor unused;
    assert_false(guard_worst(&none, &unused));
}

static void who_holds_it_lower(void **state) {
    static const struct {
        enum guard_reason reason;
        enum ring_guard_hold held_by;
        double limit;
        const char *want;
    } rows[] = {
        {GUARD_HOT_CORE, RING_HELD_BY_GUARD,  500, "core hot"},
        {GUARD_CALM,     RING_HELD_BY_HAND,   500, "by hand" },
        {GUARD_COOLED,   RING_HELD_BY_BUDGET, 500, "budget"  },
        {GUARD_CALM,     RING_HELD_BY_BUDGET, 700, "calm"    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ring_guard g = {.lever = GUARD_BY_POWER,
                               .reason = rows[i].reason,
                               .held_by = rows[i].held_by,
                               .limit = rows[i].limit,
                               .baseline = 700};
        assert_string_equal(guard_short_reason(&g), rows[i].want);
    }
}

static void json_leaves_out_what_is_not_known(void **state) {
    static const char *const absent[] = {"nan", "null", "memory\":", "\"manual\"", "withheld_watts\":nan"};
    AUTO(view_done) struct view v = {0};
    AUTO(buf_done) struct buf b = {0};
    v.boot_ns = v.real_ns = 1700000000 * NS_PER_S;
    *view_add(&v) = card(GUARD_BY_POWER);
    guard_json(&v, &b);
    for (size_t i = 0; i < ARRAY_LEN(absent); i++)
        if (strstr(b.s, absent[i])) COMPLAIN("\"%s\" in %s", absent[i], b.s);
    assert_non_null(strstr(b.s, "\"targets\":{\"core\":84}"));
    assert_non_null(strstr(b.s, "\"unit\":\"W\""));
    v.of[0].has_guard = false;
    buf_clear(&b);
    guard_json(&v, &b);
    assert_null(strstr(b.s, "\"mode\""));
}

/* ---- settings against cards ---- */

static void settings_that_the_cards_do_not_allow(void **state) {
    static const struct {
        const char *name, *gpus;
        double hot_c, memory_c, budget_w;
        const char *says; /* NULL: allowed */
    } rows[] = {
        {"nothing set",            "all", NAN, NAN, 0,   NULL                                  },
        {"a target for both",      "all", 85,  NAN, 0,   NULL                                  },
        {"too hot for one",        "all", 88,  NAN, 0,   "guard.hot_c: 88 is not from 30 to 85"},
        {"not that one",           "0",   88,  NAN, 0,   NULL                                  },
        {"too cold",               "all", 29,  NAN, 0,   "from 30 to"                          },
        {"memory too hot",         "all", NAN, 96,  0,   "guard.memory_c: 96"                  },
        {"a budget that does",     "all", NAN, NAN, 300, NULL                                  },
        {"a budget too small",     "all", NAN, NAN, 299, "guard.budget_w: "                    },
        {"enough for one of them", "1",   NAN, NAN, 100, NULL                                  },
    };
    AUTO(view_done) struct view v = {0};
    for (int i = 0; i < 2; i++) {
        struct view_device *d = view_add(&v);
        *d = card(GUARD_BY_POWER);
        d->inventory.index = i;
        d->inventory.temp_slowdown_c = i ? 85 : 89;
        d->inventory.temp_memory_max_c = 95;
        d->inventory.control = CONTROL_POWER;
        d->inventory.limit_min_mw = i ? 100000 : 200000;
        d->inventory.limit_default_mw = 700000;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct loaded l = {0};
        struct error e = {0};
        settings_init(&l.values);
        l.values.hot_c = rows[i].hot_c;
        l.values.memory_c = rows[i].memory_c;
        l.values.budget_w = rows[i].budget_w;
        snprintf(l.values.gpus, sizeof l.values.gpus, "%s", rows[i].gpus);
        for (size_t k = 0; k < settings_count; k++) snprintf(l.of[k].from, sizeof l.of[k].from, "/etc/gpumgr.json");
        int r = cards_check(&l, &v, &e);
        if ((r == 0) != !rows[i].says || (r < 0 && !strstr(e.text, rows[i].says)))
            COMPLAIN("%s: %s", rows[i].name, e.text);
        if (r < 0) assert_int_equal(strncmp(e.text, "/etc/gpumgr.json: ", 18), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts),
        cmocka_unit_test(times),
        cmocka_unit_test(wishes_on_the_command_line),
        cmocka_unit_test(what_a_card_can_have),
        cmocka_unit_test(words_for_gpus),
        cmocka_unit_test(a_table_that_fits),
        cmocka_unit_test(the_input_that_decides),
        cmocka_unit_test(who_holds_it_lower),
        cmocka_unit_test(json_leaves_out_what_is_not_known),
        cmocka_unit_test(settings_that_the_cards_do_not_allow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
