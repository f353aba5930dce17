#include "bench/failing_life.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"

#define NS 1e9
#define DAY_S 86400.0

struct living {
    const struct life_plan *plan;
    struct life *life;
    struct month m;
    double over_s; /* above the target, the first card */
};

static void sample_fill(struct sample *s, const struct month_reading *r, bool has_rpm) {
    static const struct {
        int id;
        uint64_t bit;
    } reasons[] = {
        {METRIC_REASON_HW_SLOWDOWN, REASON_HW        },
        {METRIC_REASON_HW_THERMAL,  REASON_HW_THERMAL},
        {METRIC_REASON_POWER_BRAKE, REASON_BRAKE     }
    };
    memset(s, 0, sizeof *s);
    sample_put(s, METRIC_TEMP_CORE, r->temp_c);
    sample_put(s, METRIC_POWER, r->power_w);
    sample_put(s, METRIC_UTIL_MEMORY, r->memory);
    sample_put(s, METRIC_POWER_LIMIT_ENFORCED, r->enforced_w);
    sample_put(s, METRIC_POWER_LIMIT_DEFAULT, r->asked_w);
    for (size_t k = 0; k < ARRAY_LEN(reasons); k++) sample_put(s, reasons[k].id, r->reasons & reasons[k].bit ? 1 : 0);
    if (!r->has_fan) return;
    sample_put(s, METRIC_FAN_SPEED, round(r->fan * 100) / 100);
    if (has_rpm) sample_put(s, METRIC_FAN_RPM, round(r->rpm));
}

bool life_is_healthy(const struct life_plan *plan) {
    return plan->month.fault == MONTH_HEALTHY && plan->expect == FAILING_KINDS;
}

/* A verdict that something explains: of the card that broke, which may be called broken in more than one way, or of the
 * room. Overuse is judged by what is said alone: never before its share of a week. */
static bool is_right(const struct living *l, enum failing_kind kind, bool is_first, bool is_room) {
    const struct month_plan *p = &l->m.plan;
    if (kind == FAILING_OVERUSE)
        return l->plan->expect == kind && (!is_first || l->over_s >= failing_defaults.overuse_share * 7 * DAY_S);
    if (p->fault == MONTH_HEALTHY || l->m.at_s < p->fault_day * DAY_S) return false;
    return p->fault == MONTH_ROOM ? is_room : is_first;
}

static void edges(struct living *l, uint32_t before, uint32_t after, bool is_first, bool is_room) {
    for (int k = 0; k < FAILING_KINDS; k++) {
        struct life *o = l->life;
        bool is_raised = (after & ~before) >> k & 1;
        o->cleared[k] += (before & ~after) >> k & 1;
        if (!is_raised) continue;
        o->raised[k]++;
        if (!is_right(l, (enum failing_kind)k, is_first, is_room)) {
            if (isnan(o->wrong_day)) o->wrong_day = l->m.at_s / DAY_S;
            o->wrong[k]++;
        } else if (isnan(o->found_s[k])) {
            o->found_s[k] = k == FAILING_OVERUSE ? l->over_s : l->m.shown_s;
        }
    }
}

void life_live(const struct life_plan *plan, struct life *ret) {
    static struct living l;
    static struct failing f;
    static struct sample samples[MONTH_CARDS];
    struct failing_input in[MONTH_CARDS];
    uint32_t before[MONTH_CARDS] = {0}, before_room = 0;
    *ret = (struct life){.wrong_day = NAN};
    for (int k = 0; k < FAILING_KINDS; k++) ret->found_s[k] = NAN;
    memset(&f, 0, sizeof f);
    l = (struct living){.plan = plan, .life = ret};
    month_init(&l.m, &plan->month);
    while (l.m.at_s < plan->days * DAY_S) {
        month_step(&l.m);
        for (size_t i = 0; i < plan->month.cards; i++) {
            struct month_reading r = month_read(&l.m, i);
            sample_fill(&samples[i], &r, plan->has_rpm);
            in[i] = (struct failing_input){.s = &samples[i], .asked_w = r.asked_w, .hot_c = plan->hot_c};
            if (i == 0 && r.temp_c > plan->hot_c) l.over_s += MONTH_STEP_S;
        }
        failing_step(&f, &failing_defaults, in, plan->month.cards, (int64_t)((l.m.at_s + 1) * NS));
        for (size_t i = 0; i < plan->month.cards; i++) {
            edges(&l, before[i], f.card[i].up, i == 0, false);
            before[i] = f.card[i].up;
        }
        edges(&l, before_room, f.room_up, false, true);
        before_room = f.room_up;
    }
}
