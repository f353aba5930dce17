/* What people and programs are shown: tables that fit, values that are absent, memory of others that is not believed. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/nearest.h"
#include "client/status_json.h"
#include "client/status_table.h"
#include "client/text.h"

#define COMPLAIN(...) (print_error(__VA_ARGS__), assert_true(0))

static struct view_device *add_gpu(struct view *v, int index, const char *name) {
    struct view_device *d = view_add(v);
    d->inventory.index = index;
    d->inventory.parent = -1;
    snprintf(d->inventory.name, sizeof d->inventory.name, "%s", name);
    snprintf(d->inventory.uuid, sizeof d->inventory.uuid, "GPU-%08d", index);
    d->state.state = DEVICE_OK;
    d->processes.boot_ns = v->boot_ns;
    return d;
}

static void put(struct view *v, struct view_device *d, int metric, double value) {
    d->latest.of[metric].value = value;
    d->latest.of[metric].boot_ns = v->boot_ns;
    d->latest.of[metric].until_ns = v->boot_ns + NS_PER_S;
}

/* Eight GPUs of every kind, with everything that makes a line long. */
static void fill(struct view *v) {
    v->boot_ns = 1000 * NS_PER_S;
    v->real_ns = 1700000000 * NS_PER_S;
    v->driver.state = DRIVER_OK;
    for (int i = 0; i < 8; i++) {
        struct view_device *d = add_gpu(v, i, i & 1 ? "NVIDIA H200 NVL with a long name of 40 chars" : "NVIDIA H200");
        put(v, d, METRIC_TEMP_CORE, 84);
        put(v, d, METRIC_TEMP_MEMORY, 95);
        put(v, d, METRIC_POWER, 78.1);
        put(v, d, METRIC_POWER_LIMIT_ENFORCED, 1000);
        put(v, d, METRIC_UTIL_GPU, 1);
        put(v, d, METRIC_MEMORY_USED, 150e9);
        put(v, d, METRIC_MEMORY_TOTAL, 151e9);
        put(v, d, METRIC_CLOCK_SM, 1980e6);
        put(v, d, METRIC_CLOCK_MEMORY, 10501e6);
        put(v, d, METRIC_REASON_POWER_CAP, 1);
    }
    v->of[3].state = (struct ring_state){.state = DEVICE_LOST, .since_boot_ns = v->boot_ns - 5 * NS_PER_S};
    memset(v->of[3].state.text, 'w', sizeof v->of[3].state.text - 1);
    struct event ev = {.real_ns = v->real_ns, .severity = EVENT_ERROR, .device = 2, .kind = "xid"};
    memset(ev.text, 'e', sizeof ev.text - 1);
    view_add_event(v, &ev);
}

static void no_line_is_wider_than_the_screen(void **state) {
    AUTO(view_done) struct view v = {0};
    fill(&v);
    for (int width = 60; width <= 200; width++) {
        AUTO(buf_done) struct buf b = {0};
        struct status_look look = {
            .screen = {.width = width, .has_utf8 = width & 1},
              .hot_c = NAN
        };
        status_table(&v, &look, &b);
        assert_non_null(strstr(b.s, "lost since"));
        assert_non_null(strstr(b.s, "78/1000W"));
        char *rest = b.s;
        for (char *line; (line = strsep(&rest, "\n"));)
            if (text_width(line) > width) COMPLAIN("%d columns: %s", width, line);
    }
}

/* A card that is held below its baseline says so in a word, with the limit where there is room for it. */
static void a_held_card_says_so(void **state) {
    static const struct {
        const char *name;
        enum ring_guard_mode mode;
        enum ring_guard_hold held_by;
        double limit;
        int brake;
        const char *narrow, *wide;
    } rows[] = {
        {"by its guard",        RING_GUARD_ACTS,     RING_HELD_BY_GUARD,  640, 0, "guard",   "guard 640/700W"  },
        {"by hand",             RING_GUARD_ACTS,     RING_HELD_BY_HAND,   500, 0, "by hand", "by hand 500/700W"},
        {"by the budget",       RING_GUARD_ACTS,     RING_HELD_BY_BUDGET, 500, 0, "budget",  "budget 500/700W" },
        {"not held",            RING_GUARD_ACTS,     RING_HELD_BY_GUARD,  700, 0, "power",   "power"           },
        {"would hold",          RING_GUARD_OBSERVES, RING_HELD_BY_GUARD,  640, 0, "power",   "power"           },
        {"something is graver", RING_GUARD_ACTS,     RING_HELD_BY_GUARD,  640, 1, "brake!",  "brake!"          },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(view_done) struct view v = {0};
        fill(&v);
        for (size_t k = 0; k < v.count; k++) {
            struct view_device *d = &v.of[k];
            d->has_guard = true;
            d->guard = (struct ring_guard){.mode = rows[i].mode,
                                           .lever = 1, /* the power limit */
                                           .held_by = rows[i].held_by,
                                           .limit = rows[i].limit,
                                           .baseline = 700};
            put(&v, d, METRIC_REASON_POWER_BRAKE, rows[i].brake);
        }
        for (int width = 80; width <= 160; width++) {
            AUTO(buf_done) struct buf b = {0};
            struct status_look look = {.screen = {.width = width}, .hot_c = NAN};
            status_table(&v, &look, &b);
            if (!strstr(b.s, width < 110 ? rows[i].narrow : rows[i].wide)) COMPLAIN("%s: %s", rows[i].name, b.s);
            if (width < 110 && strstr(b.s, "/700W")) COMPLAIN("%s: %s", rows[i].name, b.s);
            char *rest = b.s;
            for (char *line; (line = strsep(&rest, "\n"));)
                if (text_width(line) > width) COMPLAIN("%d columns: %s", width, line);
        }
    }
}

static void absent_is_left_out(void **state) {
    AUTO(view_done) struct view v = {0};
    AUTO(buf_done) struct buf b = {0};
    v.boot_ns = 1000 * NS_PER_S;
    struct view_device *d = add_gpu(&v, 0, "NVIDIA H200");
    put(&v, d, METRIC_TEMP_CORE, 34);
    put(&v, d, METRIC_POWER, 78.1);
    put(&v, d, METRIC_UTIL_GPU, 0);
    put(&v, d, METRIC_PSTATE, 8);
    d->latest.of[METRIC_PSTATE].until_ns = v.boot_ns - 1; /* too old to show */
    d->processes.boot_ns = 0;                             /* this card cannot list them */
    status_json(&v, true, &b);
    assert_non_null(strstr(b.s, "\"metrics\":{\"gpu_utilization_ratio\":0,\"gpu_temperature_celsius\":34,"
                                "\"gpu_power_watts\":78.1}"));
    assert_null(strstr(b.s, "\"processes\""));
    assert_int_equal(b.s[b.len - 1], '\n');
}

static void other_peoples_memory_is_not_believed(void **state) {
    AUTO(view_done) struct view v = {0};
    AUTO(buf_done) struct buf b = {0}, table = {0};
    struct view_device *d = view_add(&v);
    memset(d, 0x7f, sizeof *d);
    memset(d->inventory.name, '\033', sizeof d->inventory.name);
    d->has_guard = true; /* ours, not theirs: it says that the guard was found */
    struct event ev;
    memset(&ev, 0x7f, sizeof ev);
    view_add_event(&v, &ev);
    view_make_safe(&v);
    view_order(&v);
    status_json(&v, true, &b);
    struct status_look look = {.screen = {.width = 80}, .hot_c = NAN};
    status_table(&v, &look, &table);
    assert_null(strchr(b.s, '\033'));
    assert_null(strchr(table.s, '\033'));
}

static void gpus_come_in_order_and_once(void **state) {
    AUTO(view_done) struct view v = {0};
    add_gpu(&v, 2, "NVIDIA A")->silent_ns = 1; /* an old worker's ring still names it */
    add_gpu(&v, 1, "NVIDIA B");
    add_gpu(&v, 2, "NVIDIA A");
    struct view_device *mig = add_gpu(&v, 0, "NVIDIA A MIG 1g.10gb");
    mig->inventory.parent = 2;
    snprintf(mig->inventory.uuid, sizeof mig->inventory.uuid, "MIG-1");
    add_gpu(&v, 0, "NVIDIA C");
    struct event ev = {.device = 1, .real_ns = 1};
    view_add_event(&v, &ev);
    view_order(&v);
    assert_int_equal(v.count, 4);
    for (int i = 0; i < 3; i++) assert_int_equal(v.of[i].inventory.index, i);
    assert_false(v.of[2].silent_ns);
    assert_int_equal(v.of[3].inventory.parent, 2);
    assert_string_equal(view_short_name(&v.of[3]), "1g.10gb");
    assert_string_equal(view_short_name(&v.of[1]), "B");
    assert_int_equal(v.events[0].device, 1);
}

static void events_stay_in_order_of_time(void **state) {
    struct view v = {0};
    for (int i = 0; i < 100; i++) view_add_event(&v, &(struct event){.real_ns = i * 37 % 100});
    assert_int_equal(v.event_count, VIEW_EVENTS_MAX);
    for (size_t i = 0; i < v.event_count; i++) assert_int_equal(v.events[i].real_ns, 100 - VIEW_EVENTS_MAX + i);
}

static void slips_are_understood(void **state) {
    static const struct {
        const char *typed, *want;
    } rows[] = {
        {"stauts",              "status" },
        {"statu",               "status" },
        {"statuss",             "status" },
        {"confg",               "config" },
        {"u",                   NULL     },
        {"launch",              NULL     },
        {"doctr",               "doctor" },
        {"",                    NULL     },
        {"completelydifferent", NULL     },
        {"wait-ms",             "wait_ms"},
    };
    static const char *const known[] = {"status", "config", "doctor", "sim", "node", "wait_ms"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nearest n = {.typed = rows[i].typed};
        for (size_t k = 0; k < ARRAY_LEN(known); k++) nearest_offer(&n, known[k]);
        if (rows[i].want)
            assert_string_equal(n.best, rows[i].want);
        else
            assert_null(n.best);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_wider_than_the_screen),
        cmocka_unit_test(absent_is_left_out),
        cmocka_unit_test(other_peoples_memory_is_not_believed),
        cmocka_unit_test(gpus_come_in_order_and_once),
        cmocka_unit_test(a_held_card_says_so),
        cmocka_unit_test(events_stay_in_order_of_time),
        cmocka_unit_test(slips_are_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
