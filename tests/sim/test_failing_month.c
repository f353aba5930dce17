/* Weeks of simulated machines, healthy ones and ones in which a part fails: what is found, how soon, and what is said of
 * cards that are well. `script/bench failing` does the same over many card-months. */
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "model/failing.h"
#include "sim/month.h"
#include "tests/test.h"

#define NS 1e9
#define DAY_S 86400.0

struct outcome {
    double found_s[FAILING_KINDS]; /* seconds of work after it was broken; NaN: never */
    int wrong;                     /* said of what is well */
    int raised[FAILING_KINDS], cleared[FAILING_KINDS];
};

static void sample_fill(struct sample *s, const struct month_reading *r) {
    memset(s, 0, sizeof *s);
    sample_put(s, METRIC_TEMP_CORE, r->temp_c);
    sample_put(s, METRIC_POWER, r->power_w);
    sample_put(s, METRIC_UTIL_MEMORY, r->memory);
    sample_put(s, METRIC_POWER_LIMIT_ENFORCED, r->enforced_w);
    sample_put(s, METRIC_POWER_LIMIT_DEFAULT, r->enforced_w);
    sample_put(s, METRIC_REASON_HW_SLOWDOWN, r->reasons & REASON_HW ? 1 : 0);
    sample_put(s, METRIC_REASON_HW_THERMAL, r->reasons & REASON_HW_THERMAL ? 1 : 0);
    sample_put(s, METRIC_REASON_POWER_BRAKE, r->reasons & REASON_BRAKE ? 1 : 0);
    if (!r->has_fan) return;
    sample_put(s, METRIC_FAN_SPEED, r->fan);
    sample_put(s, METRIC_FAN_RPM, r->rpm);
}

static void edges(struct outcome *o, const struct month *m, uint32_t before, uint32_t after, bool is_its_own) {
    bool is_broken = m->plan.fault != MONTH_HEALTHY && m->at_s >= m->plan.fault_day * DAY_S;
    for (int k = 0; k < FAILING_KINDS; k++) {
        bool is_raised = (after & ~before) >> k & 1, is_cleared = (before & ~after) >> k & 1;
        o->raised[k] += is_raised;
        o->cleared[k] += is_cleared;
        if (!is_raised) continue;
        if (!is_broken || !is_its_own)
            o->wrong++;
        else if (isnan(o->found_s[k]))
            o->found_s[k] = m->shown_s;
    }
}

static void live(const struct month_plan *plan, double days, struct outcome *o) {
    static struct month m;
    static struct failing f;
    static struct sample samples[MONTH_CARDS];
    struct failing_input in[MONTH_CARDS];
    uint32_t before[MONTH_CARDS] = {0}, before_room = 0;
    *o = (struct outcome){0};
    for (int k = 0; k < FAILING_KINDS; k++) o->found_s[k] = NAN;
    memset(&f, 0, sizeof f);
    for (month_init(&m, plan); m.at_s < days * DAY_S;) {
        month_step(&m);
        for (size_t i = 0; i < plan->cards; i++) {
            struct month_reading r = month_read(&m, i);
            sample_fill(&samples[i], &r);
            in[i] = (struct failing_input){.s = &samples[i], .asked_w = r.enforced_w, .hot_c = 84};
        }
        failing_step(&f, &failing_defaults, in, plan->cards, (int64_t)((m.at_s + 1) * NS));
        for (size_t i = 0; i < plan->cards; i++) {
            edges(o, &m, before[i], f.card[i].up, i == 0 && plan->fault != MONTH_ROOM);
            before[i] = f.card[i].up;
        }
        edges(o, &m, before_room, f.room_up, plan->fault == MONTH_ROOM);
        before_room = f.room_up;
    }
}

static void weeks(void **state) {
    static const struct {
        const char *name;
        struct month_plan plan;
        double days;
        enum failing_kind want; /* FAILING_KINDS: nothing */
        double within_s;
    } rows[] = {
        {"healthy, no fans",   {"h200", 4, 0.6, 3, 0.002, MONTH_HEALTHY, 0, 11},     14, FAILING_KINDS,   0    },
        {"healthy, fans",      {"rtx4090", 2, 0.4, 3, 0.004, MONTH_HEALTHY, 0, 12},  10, FAILING_KINDS,   0    },
        {"clogged cooler",     {"h200", 4, 0.6, 3, 0.002, MONTH_CLOG, 6, 13},        13, FAILING_COOLING, DAY_S},
        {"stopped fan",        {"rtx4090", 2, 0.9, 3, 0.004, MONTH_FAN_STOP, 1, 14}, 2,  FAILING_FAN,     3600 },
        {"power brake",        {"h200", 2, 0.9, 3, 0.002, MONTH_BRAKE, 1, 15},       2,  FAILING_BRAKE,   3600 },
        {"the room is warmer", {"h200", 4, 0.6, 3, 0.002, MONTH_ROOM, 6, 16},        8,  FAILING_ROOM,    DAY_S},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct outcome o;
        live(&rows[i].plan, rows[i].days, &o);
        if (o.wrong) fail_msg("%s: %d false alarms", rows[i].name, o.wrong);
        if (rows[i].want == FAILING_KINDS) continue;
        if (!(o.found_s[rows[i].want] <= rows[i].within_s))
            fail_msg("%s: found after %g minutes of work", rows[i].name, o.found_s[rows[i].want] / 60);
        if (rows[i].want == FAILING_COOLING && (o.raised[FAILING_COOLING] != 1 || o.cleared[FAILING_COOLING] != 0))
            fail_msg("%s: raised %d times", rows[i].name, o.raised[FAILING_COOLING]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(weeks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
